"""Reports of the conformance kit on third-party servers: docs/conformance/NAME-VERSION.md.

    python -m tests.rigs.conformance.third_party                    both servers
    python -m tests.rigs.conformance.third_party --server skyrl
    python -m tests.rigs.conformance.third_party --server skyrl --only FUT    printed only

Each server is installed in an environment of its own, started with a tiny random model on a free port, tested by
``tinkerwire conformance URL`` without further options, and stopped. The page is made from the JSON report, which stays
in build/conformance. A must that fails is a finding about the server; the exit code is 1 if the kit itself fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.rigs.conformance.page import render_page
from tests.rigs.official.report import DOCS
from tests.rigs.official.venv import ROOT
from tests.rigs.third_party.run import SERVERS
from tests.rigs.third_party.server import ThirdPartyServer

from tinkerwire._conformance.outcome import Outcome, Status
from tinkerwire._conformance.prediction import predict
from tinkerwire._conformance.report.json_report import describe_prediction
from tinkerwire._conformance.report.run_report import describe_breakage
from tinkerwire.conformance import load_requirements

BUILD = ROOT / "build" / "conformance"
COMMAND = "python -m tests.rigs.conformance.third_party"
PUBLIC_URL = "http://127.0.0.1:8000"
"""Address of the server in the page; each run has another port."""
MAX_MINUTES = 45.0
"""Minutes after which a run ends, by default; a whole run on two loaded cores takes less."""
FINISHED = (0, 1)
"""Exit codes of a run that tested the server."""


def run_kit(server: ThirdPartyServer, only: Sequence[str], max_minutes: float) -> dict[str, Any]:
    """Start a server, run the kit against it, stop the server, and return the JSON report, with the load average."""
    BUILD.mkdir(parents=True, exist_ok=True)
    file = BUILD / f"{server.name}-{server.version}.json"
    file.unlink(missing_ok=True)
    with server.running() as url:
        command = [sys.executable, "-m", "tinkerwire", "conformance", url, "--json", str(file)]
        command += ["--max-minutes", str(max_minutes), *(word for name in only for word in ("--only", name))]
        # Standard error shows the progress.
        completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if completed.returncode not in FINISHED:
        raise SystemExit(f"{' '.join(command)}: exit code {completed.returncode}")
    report = json.loads(file.read_text()) | {"load": os.getloadavg()[2], "cores": os.cpu_count()}
    file.write_text(json.dumps(report))
    return read_report(file)


def read_report(file: Path) -> dict[str, Any]:
    """Return a JSON report, in which values that differ between runs have names in their place."""
    text = file.read_text()
    url = json.loads(text)["url"]
    for pattern, name in (
        (re.escape(url), PUBLIC_URL),
        (r"/[\w/.-]*/tinkerwire-peer-\w+", "/srv"),
    ):
        text = re.sub(pattern, name, text)
    report: dict[str, Any] = json.loads(text)
    _take_current_texts(report)
    return report


def _take_current_texts(report: dict[str, Any]) -> None:
    """Replace texts of requirements and predictions by current ones, which the kit may have changed after the run."""
    requirements = load_requirements()
    outcomes: list[Outcome] = []
    for item in report["requirements"]:
        current = requirements[item["id"]]
        breaks = [{"text": describe_breakage(breakage)} for breakage in current.breaks]
        item |= {"sentence": current.sentence, "remedy": current.remedy, "breaks": breaks}
        parts = tuple((part["name"], part["reason"]) for part in item["parts"])
        received = item["received"] or ""
        outcomes.append(Outcome(requirement=current, status=Status(item["status"]), received=received, parts=parts))
    if report["predictions"]:
        report["predictions"] = [describe_prediction(found) for found in predict(outcomes, report["wire"])]


def main() -> int:
    """Test the servers, write the pages, and return 1 if the kit failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=list(SERVERS), action="append", help="only this one; repeatable")
    parser.add_argument("--only", action="append", default=[], help="area or id to test; prints the page only")
    parser.add_argument("--max-minutes", type=float, default=MAX_MINUTES, help="end each run after this time")
    parser.add_argument("--from-json", action="store_true", help="make the pages from the reports of the last run")
    options = parser.parse_args()
    has_errors = False
    for name in options.server or SERVERS:
        server = SERVERS[name]
        file = BUILD / f"{server.name}-{server.version}.json"
        report = read_report(file) if options.from_json else run_kit(server, options.only, options.max_minutes)
        page = render_page(server.title, f"{COMMAND} --server {name}", report)
        if options.only:
            sys.stdout.write(page)
        else:
            (DOCS / "conformance" / f"{server.name}-{server.version}.md").write_text(page)
        sys.stdout.write(f"{server.title}: {report['verdict']}, {report['seconds']:.0f} s\n")
        has_errors = has_errors or report["counts"]["error"] > 0
    return int(has_errors)


if __name__ == "__main__":
    sys.exit(main())
