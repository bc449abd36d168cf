"""Tests of a release: one version everywhere, and a workflow that builds, tests, attests and publishes."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rigs.dist.release import OPEN_SECTION, PLACES, RELEASED_SECTION, set_version
from support.workflows import check_shell_syntax
from tinkerwire import __version__

ROOT = Path(__file__).parents[2]
DATE = datetime.date(2030, 1, 2)
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / "docs" / "ci" / "release.yml").read_text())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in (*PLACES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def read_versions(root: Path) -> set[str]:
    return {line.search((root / name).read_text())[2] for name, line in PLACES.items()}  # type: ignore[index]


def test_package_and_contract_have_one_version() -> None:
    assert read_versions(ROOT) == {__version__}


def test_changelog_begins_with_open_section_or_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    first = re.findall(r"^## .*$", text, re.MULTILINE)[0]
    assert OPEN_SECTION.fullmatch(first) or first.startswith(f"## {__version__} (")


def test_release_sets_all_places(repository: Path) -> None:
    set_version(repository, "7.8.9", DATE)
    assert read_versions(repository) == {"7.8.9"}
    assert RELEASED_SECTION.findall((repository / "CHANGELOG.md").read_text())[0] == "7.8.9"


def test_release_needs_changes_and_a_higher_version(repository: Path) -> None:
    set_version(repository, "7.8.9", DATE)
    files = {name: (repository / name).read_text() for name in (*PLACES, "CHANGELOG.md")}
    for version, error in {
        "7.9.0": "nothing to release",
        "7.8.9": "above the last release 7.8.9",
        "7.10": "three numbers",
        "": "three numbers",
    }.items():
        with pytest.raises(ValueError, match=error):
            set_version(repository, version, DATE)
    assert files == {name: (repository / name).read_text() for name in files}


def test_nothing_is_written_if_a_place_is_missing(repository: Path) -> None:
    (repository / "schema" / "openapi.yaml").write_text("openapi: 3.1.0\n")
    before = (repository / "overlay" / "tinkerwire" / "version.py").read_text()
    with pytest.raises(ValueError, match=r"schema/openapi\.yaml does not state"):
        set_version(repository, "7.8.9", DATE)
    assert (repository / "overlay" / "tinkerwire" / "version.py").read_text() == before


def test_workflow_publishes_only_what_was_built_and_tested() -> None:
    """Publishing needs the jobs before it, and only that job may write to the index."""
    jobs = WORKFLOW["jobs"]
    assert jobs["build"]["needs"] == "test"
    assert jobs["publish"]["needs"] == "build"
    assert [name for name, job in jobs.items() if job.get("permissions", {}).get("id-token") == "write"] == [
        "build",
        "publish",
    ]
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_scripts_of_the_workflow_are_valid_shell() -> None:
    scripts = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    assert scripts
    for script in scripts:
        check_shell_syntax(script)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", "\n".join(scripts))) == {"test", "dist"} <= targets


def test_tag_must_be_the_version() -> None:
    """The workflow ends before it builds if the tag names another version."""
    script = next(step["run"] for step in WORKFLOW["jobs"]["build"]["steps"] if step.get("name") == "Compare the tag")
    outcomes = [
        subprocess.run(["bash", "-e", "-c", script], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False)
        for tag in (f"v{__version__}", "v0.0.9", __version__)
    ]
    assert [outcome.returncode for outcome in outcomes] == [0, 1, 1]
