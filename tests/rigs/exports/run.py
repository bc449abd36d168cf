"""Generators of clients, each run on the documents of several wire versions.

python -m tests.rigs.exports.run [TOOL ...]     writes the section "measured" of docs/exports.md
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.rigs.exports.material import write_documents
from tests.rigs.exports.step import Outcome, StepError, Workplace, run_program
from tests.rigs.exports.tools import TOOLS
from tests.rigs.official.process import ServerProcess, find_free_port
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv

VERSIONS = ("0.4.1", "0.16.1", "0.25.0", "0.38.0")
BUILD = ROOT / "build" / "exports"
HERE = Path(__file__).parent
GO_PACKAGES = ("golang-1.19-go", "golang-1.19-src", "golang-gopkg-validator.v2-dev")
"""Debian's packages of Go, and of the library that generated clients import."""


def main(names: list[str]) -> int:
    """Run the generators, all or those of the given names, and write the report; return 1 if one fails."""
    unknown = set(names) - TOOLS.keys()
    if unknown:
        raise SystemExit(f"exports: {', '.join(sorted(unknown))} is unknown; give some of {', '.join(TOOLS)}")
    npm, python, go = install_npm(), ensure_venv("exports", HERE / "requirements.txt"), install_go()
    outcomes = []
    for version in VERSIONS:
        documents = BUILD / version
        write_documents(documents, version)
        port = find_free_port()
        command = [sys.executable, "-m", "tinkerwire", "serve", "--wire", version, "--port", str(port)]
        command += ["--folder", str(documents / "data"), "--seed", "1"]
        shutil.rmtree(documents / "data", ignore_errors=True)
        with ServerProcess(command, log=documents / "server.log") as server:
            server.wait_until("listening", lambda server=server: "http://" in server.output(), timeout_s=60)
            work = Workplace(npm, python, go, f"http://127.0.0.1:{port}", documents, version)
            outcomes += [prove(name, work) for name in names or TOOLS]
    for outcome in outcomes:
        if not outcome.is_good:
            print(f"\n{outcome.tool} {outcome.version}:\n{outcome.failure}")  # noqa: T201
    if not names:
        write_section(DOCS / "exports.md", "measured", render_table(outcomes), title="Documents for generators")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def prove(name: str, work: Workplace) -> Outcome:
    """Run one generator; the outcome has the failure of the first step that failed."""
    outcome = Outcome(name, work.version)
    try:
        TOOLS[name](work, outcome)
    except StepError as error:
        outcome.failure = str(error)
    print(render_row(outcome), flush=True)  # noqa: T201
    return outcome


def render_table(outcomes: list[Outcome]) -> str:
    """Render one row per generator and version."""
    head = [
        "| generator | wire | generated | compiled | captured bodies read | calls to the server |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(render_row(outcome) for outcome in outcomes)])


def render_row(outcome: Outcome) -> str:
    """Render the row of one outcome; the step after the last good one failed."""
    steps = [outcome.generated, outcome.compiled, outcome.read, outcome.talked]
    if outcome.failure:
        steps[next(index for index, step in enumerate(steps) if not step)] = "failed"
    return f"| {' | '.join([outcome.tool, outcome.version, *(step or '-' for step in steps)])} |"


def install_npm() -> Path:
    """Install the generators of package-lock.json; return the folder of node_modules."""
    BUILD.mkdir(parents=True, exist_ok=True)
    lock = BUILD / "node_modules" / ".package-lock.json"
    changed = (
        not lock.exists() or (BUILD / "package-lock.json").read_bytes() != (HERE / "package-lock.json").read_bytes()
    )
    if changed:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, BUILD / name)
        run_program(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], BUILD)
    return BUILD


def install_go() -> Path | None:
    """Unpack Debian's Go below the build folder; return its folder, or None without Debian's package tools."""
    folder = BUILD / "go"
    root = folder / "usr" / "lib" / "go-1.19"
    if root.exists():
        return folder
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return None
    packages = BUILD / "debian"
    packages.mkdir(parents=True, exist_ok=True)
    try:
        run_program(["apt-get", "download", *GO_PACKAGES], packages)
    except StepError:
        return None
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True, env=dict(os.environ))
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
