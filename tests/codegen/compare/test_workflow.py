"""The CI workflow that users copy: its commands exist, parse and work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.release import write_contract
from support.workflows import check_shell_syntax
from tinkerwire_codegen.cli import build_parser

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docs" / "ci" / "contract.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["contract"]["steps"]
COMMAND = re.compile(r"python -m tinkerwire_codegen ((?:[^\n\\]|\\\n)*)")


def read_commands() -> list[list[str]]:
    """Return the arguments of each call of the generator in the workflow."""
    texts = [match for step in STEPS for match in COMMAND.findall(step.get("run", ""))]
    commands = []
    for text in texts:
        words = shlex.split(text.replace("\\\n", " "))
        ends = [index for index, token in enumerate(words) if token.startswith((">", "|", "&"))]
        commands.append(words[: min(ends, default=len(words))])
    return commands


def test_commands_of_workflow_are_valid() -> None:
    """The parser accepts every call of the generator."""
    parsed = [build_parser().parse_args(words) for words in read_commands()]
    assert [arguments.command for arguments in parsed] == ["generate", "diff"]
    assert parsed[1].fail_on == "breaking"
    assert parsed[1].format == "markdown"


def test_workflow_runs_on_pull_requests_and_may_comment() -> None:
    """YAML reads the key `on` as true; the comment needs write permission."""
    assert "pull_request" in WORKFLOW[True]
    assert WORKFLOW["permissions"]["pull-requests"] == "write"


@pytest.mark.parametrize("step", [step for step in STEPS if "run" in step], ids=lambda step: str(step["name"]))
def test_each_script_is_valid_shell(step: dict[str, Any]) -> None:
    """The shell accepts the syntax of every step."""
    check_shell_syntax(step["run"])


def read_script(name: str) -> str:
    return str(next(step["run"] for step in STEPS if step.get("name") == name))


def run_shell(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    bins = folder.parent / "bin"
    bins.mkdir(exist_ok=True)
    if not (bins / "python").exists():
        (bins / "python").symlink_to(sys.executable)
    path = [str(ROOT / folder_name) for folder_name in ("codegen", "generated", "overlay")]
    env = {
        **os.environ,
        "PATH": f"{bins}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)]),
        "SCHEMA": "schema",
        "GENERATED": "generated",
        "RUNNER_TEMP": str(folder.parent),
        "GITHUB_OUTPUT": str(folder.parent / "output"),
        **variables,
    }
    command = ["bash", "-eo", "pipefail", "-c", text]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def run_git(folder: Path, *arguments: str) -> None:
    configuration = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *configuration, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with a contract, whose base branch is known as origin/main."""
    folder = tmp_path / "repository"
    write_contract(folder / "schema")
    (folder / "generated").mkdir()
    (folder / "generated" / "a.py").write_text("A = 1\n")
    run_git(folder, "init")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-m", "base")
    run_git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


@pytest.mark.parametrize(("old", "new", "status"), [("", "", "0"), ("enum: [fast, slow]", "enum: [fast]", "1")])
def test_comparison_step_writes_comment_and_status(repository: Path, old: str, new: str, status: str) -> None:
    """The step writes the comment and the status, and succeeds even for a breaking change."""
    file = repository / "schema" / "jobs.yaml"
    file.write_text(file.read_text().replace(old, new, 1))
    run = run_shell(read_script("Compare with the base branch"), repository, GITHUB_BASE_REF="main")
    assert run.returncode == 0, run.stderr
    assert (repository.parent / "output").read_text() == f"status={status}\n"
    assert (repository.parent / "contract.md").read_text().startswith("## Contract ")


def test_unusable_contract_fails_the_comparison(repository: Path) -> None:
    """A contract that cannot be compared is an error."""
    (repository / "schema" / "jobs.yaml").write_text("paths: [")
    assert run_shell(read_script("Compare with the base branch"), repository, GITHUB_BASE_REF="main").returncode != 0


@pytest.mark.parametrize(("name", "clean"), [(None, True), ("a.py", False), ("new.py", False)])
def test_changed_generated_files_fail(repository: Path, name: str | None, clean: bool) -> None:
    """Changed and new files in the generated folder both fail."""
    if name:
        (repository / "generated" / name).write_text("A = 2\n")
    run = run_shell(read_script("Check that the committed code is current"), repository)
    assert (run.returncode == 0) is clean
