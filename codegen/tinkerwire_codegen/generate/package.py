"""The generated package; every run on every machine gives the same bytes."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..contract.bundle import families_of_schemas
from ..contract.lint import check_contract
from .availability import generate_availability
from .constants import generate_constants
from .endpoints import generate_endpoints
from .model_families import split_models
from .models import generate_models
from .protobuf import DESCRIPTORS, generate_protobuf

PACKAGE = "tinkerwire_generated"
NOTE = "# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.\n"


def generate(schema: Path, out: Path) -> None:
    """Write the package ``tinkerwire_generated`` into the folder ``out`` and replace an older one.

    Raises:
        ValueError: the contract has errors.
        RuntimeError: a generator fails on the contract. The old package stays in both cases.
    """
    document = check_contract(schema)
    with tempfile.TemporaryDirectory() as name:
        _replace(out / PACKAGE, _build(document, schema, Path(name)))


def find_outdated_files(schema: Path, out: Path) -> list[str]:
    """List the files of ``out`` that differ from a fresh generation, each with its difference."""
    with tempfile.TemporaryDirectory() as name:
        generate(schema, Path(name))
        return _differences(Path(name) / PACKAGE, out / PACKAGE)


def _replace(target: Path, fresh: Path) -> None:
    # Copy first, so that a full disk leaves the old package in place.
    target.parent.mkdir(parents=True, exist_ok=True)
    copy = target.parent / f".{PACKAGE}.new"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(fresh, copy)
    if target.exists():
        shutil.rmtree(target)
    copy.rename(target)


def _build(document: dict[str, Any], schema: Path, work: Path) -> Path:
    package = work / "package" / PACKAGE
    package.mkdir(parents=True)
    _write(package / "__init__.py", '"""Models and endpoint stubs of the Tinker wire."""\n')
    _write(package / "py.typed", "")
    (package / "models").mkdir()
    for name, text in split_models(generate_models(document, work), families_of_schemas(schema)).items():
        _write(package / "models" / f"{name}.py", text)
    shutil.copytree(generate_endpoints(document, work), package / "api")
    _write(package / "availability.py", generate_availability(document))
    _write(package / "constants.py", generate_constants(document))
    messages, descriptors = generate_protobuf(schema)
    _write(package / "protobuf.py", messages)
    (package / DESCRIPTORS).write_bytes(descriptors)
    _write(package / "operations.py", _operations_table(package / "api"))
    _write(package / "contract.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    _format(package)
    for source in sorted(package.rglob("*.py")):
        _write(source, NOTE + source.read_text(encoding="utf-8"))
    _check_import(package)
    return package


def _write(path: Path, text: str) -> None:
    # The bytes must not depend on the system's encoding and line ends.
    path.write_bytes(text.encode())


def _check_import(package: Path) -> None:
    path = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import {PACKAGE}.availability, {PACKAGE}.constants; from {PACKAGE} import models, operations, protobuf; "
            "[getattr(models, name) for name in models.__all__]; "
            "[(row.request, row.results) for row in operations.OPERATIONS.values()]; "
            "[protobuf.message_class(name) for name in protobuf.MESSAGE_VERSIONS]",
        ],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if run.returncode:
        raise RuntimeError(f"the generated package cannot be imported:\n{run.stderr}")


def _operations_table(api: Path) -> str:
    modules = sorted((p.parent.name, p.stem) for p in api.glob("*/*.py") if p.stem != "__init__")
    lines = ['"""Endpoints of the wire by name."""', "", "from __future__ import annotations", ""]
    lines += ["from collections.abc import Mapping", "", "from tinkerwire_base.call import Operation", ""]
    lines += [f"from .api.{tag}.{name} import OPERATION as {name}" for tag, name in modules]
    lines += ["", "OPERATIONS: Mapping[str, Operation] = {"]
    lines += [f'    "{name}": {name},' for name in sorted(name for _, name in modules)] + ["}", ""]
    return "\n".join(lines)


def _format(package: Path) -> None:
    # The user's own ruff settings and cache must not reach the output.
    isolated = [
        "--isolated",
        "--config",
        "line-length=120",
        "--config",
        'target-version="py310"',
        "--quiet",
        ".",
    ]
    for action in (["check", "--fix-only", "--select", "F401,I,UP"], ["format"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *action, *isolated],
            check=True,
            cwd=package,
            env=os.environ | {"RUFF_NO_CACHE": "true"},
        )


def _differences(fresh: Path, committed: Path) -> list[str]:
    names = {str(p.relative_to(root)) for root in (fresh, committed) for p in root.rglob("*") if _is_source(p)}
    lines = []
    for name in sorted(names):
        if not (committed / name).exists():
            lines.append(f"missing: {name}")
        elif not (fresh / name).exists():
            lines.append(f"not generated: {name}")
        elif not filecmp.cmp(fresh / name, committed / name, shallow=False):
            lines.append(f"differs: {name}")
    return lines


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
