"""Findings of calibrations: kept from run to run, and rendered as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.rigs.official.venv import ROOT

Finding = dict[str, Any]
FINDINGS = ROOT / "build" / "conformance" / "calibration.json"
MAX_WORDS = 200


def load_findings() -> list[Finding]:
    """Return the findings of all runs so far."""
    findings: list[Finding] = json.loads(FINDINGS.read_text()) if FINDINGS.exists() else []
    return findings


def store_findings(new: Iterable[Finding]) -> None:
    """Keep findings, in place of earlier ones on the same pairs."""
    by_pair = {(finding["server"], finding["client"]): finding for finding in (*load_findings(), *new)}
    FINDINGS.parent.mkdir(parents=True, exist_ok=True)
    FINDINGS.write_text(json.dumps(list(by_pair.values()), indent=1))


def render(findings: Sequence[Finding], versions: Sequence[str]) -> str:
    """Return the section of the report."""
    wrong = [finding for finding in findings if finding["wrong"]]
    clients = sorted({finding["client"] for finding in findings}, key=_order)
    lines = [
        "Made by `make calibrate`: for each pair of a server and a client, the prediction from the requirements `VER`, "
        "and whether each feature (connect, train, sample, save, manage) then works in a real run of that client. "
        "Servers are `tinkerwire serve --wire`, after a `+` with the `--quirks`, and the third-party servers.",
        "",
        f"{len(findings)} pairs ran with {len(clients)} clients; {len(wrong)} predictions are wrong. Releases of the "
        f"official SDK without a run: {', '.join(v for v in versions if v not in clients) or 'none'}.",
        "",
        "| server | client | prediction | requirements | real run |",
        "|---|---|---|---|---|",
    ]
    for finding in sorted(findings, key=lambda finding: (_order(finding["server"]), _order(finding["client"]))):
        run = f"**wrong**: {'; '.join(finding['wrong'])}" if finding["wrong"] else "as predicted"
        cells = (finding["server"], finding["client"], finding["predicted"], ", ".join(finding["reasons"]), run)
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    short = text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]} ..."
    return short.replace("|", "/").replace("<", "&lt;").replace("\n", " ")


def _order(name: str) -> tuple[tuple[int, ...], str]:
    version = name.partition("+")[0]
    is_version = version.replace(".", "").isdigit()
    return (tuple(map(int, version.split("."))) if is_version else (99,), name)
