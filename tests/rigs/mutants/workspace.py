"""Folder in which mutmut works on one package: sources, tests and settings in the layout that it expects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.rigs.mutants.packages import Package
from tests.rigs.official.venv import ROOT

STATUSES = {0: "survived", 1: "killed", 3: "killed", 5: "no tests", 33: "no tests", 36: "timeout", 255: "timeout"}
"""Statuses of mutants by mutmut's exit codes; further codes are signals that end a mutant that hangs."""


class Workspace:
    """Folder `build/mutants/PACKAGE`, made anew."""

    def __init__(self, package: Package, python: Path) -> None:
        self._package = package
        self._python = python
        self._folder = ROOT / "build" / "mutants" / package.name
        shutil.rmtree(self._folder, ignore_errors=True)
        source = self._folder / "src"
        source.mkdir(parents=True)
        # Python looks up the folders of PYTHONPATH once, when it starts.
        (self._folder / "mutants" / "src").mkdir(parents=True)
        for parent in ("codegen", "generated", "overlay"):
            shutil.copytree(ROOT / parent, source, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        for name in ("tests", "schema", "docs", "pyproject.toml"):
            (self._folder / name).symlink_to(ROOT / name)
        self._files = [
            str(file.relative_to(self._folder))
            for name in package.sources
            for file in (sorted((source / name).rglob("*.py")) if (source / name).is_dir() else [source / name])
        ]
        settings = {
            "source_paths": ["src"],
            "only_mutate": self._files,
            "also_copy": ["schema", "docs"],
            "pytest_add_cli_args_test_selection": [f"tests/{name}" for name in package.tests],
            # A mutant that never ends fails as a test that takes too long.
            "pytest_add_cli_args": [
                "--timeout=30",
                "-p",
                "no:cacheprovider",
                *(f"--deselect=tests/{name}" for name in package.deselected),
            ],
            # The client's threads and processes do not outlive a fork.
            "process_isolation": ["forkserver"],
            "timeout_multiplier": ["5"],
            "timeout_constant": ["10"],
            "use_git_change_detection": ["false"],
            # Without it nothing shows why the tests fail on the unchanged code.
            "debug": ["true"],
        }
        lines = [f"{key} =\n    " + "\n    ".join(values) for key, values in settings.items() if len(values) > 1]
        lines += [f"{key} = {values[0]}" for key, values in settings.items() if len(values) == 1]
        (self._folder / "setup.cfg").write_text("[mutmut]\n" + "\n".join(lines) + "\n")

    def list_mutants(self) -> dict[str, str]:
        """Return the diffs of all mutants, by name."""
        script = Path(__file__).with_name("list_mutants.py")
        command = [str(self._python), str(script), *self._files]
        completed = subprocess.run(command, cwd=self._folder, stdout=subprocess.PIPE, check=True, timeout=300)
        diffs: dict[str, str] = json.loads(completed.stdout)
        return diffs

    def run(self, names: list[str], limit_s: float) -> dict[str, str]:
        """Run the package's tests on each mutant, one at a time, and return the statuses of those that ran in time."""
        environment = os.environ | {"PYTHONPATH": str(self._folder / "mutants" / "src")}
        command = [str(self._python.with_name("mutmut")), "run", "--max-children", "1", *names]
        log = self._folder / "log.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = 0
            finally:
                _stop_group(process)
        statuses = self._read_statuses(names)
        if code or not statuses:
            raise SystemExit(f"mutants: {self._package.name}: exit code {code}\n{log.read_text()[-3000:]}")
        return statuses

    def _read_statuses(self, names: list[str]) -> dict[str, str]:
        codes: dict[str, int | None] = {}
        for file in self._files:
            meta = self._folder / "mutants" / f"{file}.meta"
            if meta.exists():
                codes |= json.loads(meta.read_text())["exit_code_by_key"]
        return {name: STATUSES.get(code, "timeout") for name in names if (code := codes.get(name)) is not None}


def _stop_group(process: subprocess.Popen[bytes]) -> None:
    """End the program and all that it started."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return
    process.wait()
