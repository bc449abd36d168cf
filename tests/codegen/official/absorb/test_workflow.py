"""The CI workflow that absorbs new releases: its commands parse, and it opens one pull request for a version."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.workflows import check_shell_syntax
from tinkerwire_codegen.cli import build_parser

FILE = Path(__file__).parents[4] / "docs" / "ci" / "upstream.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["upstream"]["steps"]
GH = '#!/bin/sh\necho "$@" >> "$RUNNER_TEMP/gh"\n'


def read_script(name: str) -> str:
    return str(next(step["run"] for step in STEPS if step.get("name") == name))


def run_git(folder: Path, *arguments: str) -> str:
    configuration = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *configuration, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_workflow_runs_daily_and_may_open_pull_requests() -> None:
    """YAML reads the key `on` as true; the branch and the pull request need write permissions."""
    assert WORKFLOW[True]["schedule"]
    assert WORKFLOW["permissions"] == {"contents": "write", "pull-requests": "write"}


def test_commands_of_workflow_are_valid() -> None:
    """The parser accepts every call of the generator."""
    names = ("Absorb the newest release", "Describe the change")
    texts = [read_script(name).replace("\\\n", " ").splitlines() for name in names]
    lines = [line for text in texts for line in text if "python -m tinkerwire_codegen" in line]
    words = [shlex.split(line.partition(" > ")[0])[3:] for line in lines]
    parsed = [build_parser().parse_args(arguments) for arguments in words]
    assert [arguments.command for arguments in parsed] == ["upstream", "diff"]
    assert parsed[0].write


@pytest.mark.parametrize("step", [step for step in STEPS if "run" in step], ids=lambda step: str(step["name"]))
def test_each_script_is_valid_shell(step: dict[str, Any]) -> None:
    """The shell accepts the syntax of every step."""
    check_shell_syntax(step["run"])


def test_generator_is_installed_from_a_folder_or_file() -> None:
    """Both workflows install what TINKERWIRE names, because no index has the package."""
    for name in ("upstream.yml", "contract.yml"):
        text = (FILE.parent / name).read_text()
        assert 'pip install "${TINKERWIRE}[codegen]"' in text
        assert yaml.safe_load(text)["env"]["TINKERWIRE"] == "."


def test_one_pull_request_is_opened_for_a_version(tmp_path: Path) -> None:
    """The step pushes the contract and the code to a branch; a second run leaves the branch as it is."""
    remote, folder, bins = tmp_path / "remote", tmp_path / "repository", tmp_path / "bin"
    run_git(tmp_path, "init", "--bare", str(remote))
    run_git(tmp_path, "clone", str(remote), str(folder))
    for name in ("schema", "generated", "other"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("1\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-m", "base")
    run_git(folder, "push", "origin", "HEAD")
    bins.mkdir()
    (bins / "gh").write_text(GH)
    (bins / "gh").chmod(0o755)
    variables = {"VERSION": "0.39.0", "SCHEMA": "schema", "GENERATED": "generated", "CHANGELOG": "CHANGELOG.md"}
    path = f"{bins}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **variables, "RUNNER_TEMP": str(tmp_path), "PATH": path}
    for number in ("2\n", "3\n"):
        for name in ("schema", "generated", "other"):
            (folder / name / "a.txt").write_text(number)
        script = read_script("Open a pull request")
        subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=environment, check=True, timeout=30)
    assert run_git(remote, "show", "contract-0.39.0:schema/a.txt") == "2\n"
    assert run_git(remote, "show", "contract-0.39.0:other/a.txt") == "1\n"
    (call,) = (tmp_path / "gh").read_text().splitlines()
    assert call.startswith("pr create --head contract-0.39.0 --title Absorb wire version 0.39.0")
