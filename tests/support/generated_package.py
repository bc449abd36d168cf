"""Contracts to change, packages generated from them, and programs that use the packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCHEMA, GENERATED = ROOT / "schema", ROOT / "generated"
RANK_FIELD = """        rank: {type: integer, description: Inner dimension of the adapter.}
"""
"""The text of a field in training.yaml."""


def read_package_files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def run_codegen(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "tinkerwire_codegen", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=100
    )


def run_python(program: str, path: Path) -> str:
    """Run a program that imports the package generated into ``path``; return its output."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(path), *filter(None, sys.path)]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, (file, old)
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
