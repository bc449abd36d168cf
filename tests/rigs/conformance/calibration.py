"""The predictions of the conformance kit beside what real releases of the official SDK do, on many servers.

    python -m tests.rigs.conformance.calibration                    the embedded server; writes docs/conformance
    python -m tests.rigs.conformance.calibration --server 0.38.0 --sdk 0.16.1
    python -m tests.rigs.conformance.calibration --server 0.16.1+metrics=null
    python -m tests.rigs.conformance.calibration --server skyrl     a third-party server

Every pair of a server and a release runs the flow of `tests/rigs/official`, whose steps show which features work.
A feature of which the prediction is wrong is a failure: the exit code is 1. Findings of earlier runs are kept in
build/conformance, and the table has them all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
from tests.rigs.conformance.steps import compare, drop_unclaimed, features_of
from tests.rigs.conformance.table import FINDINGS, load_findings, render, store_findings
from tests.rigs.official.process import ServerProcess, find_free_port
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_official_python
from tests.rigs.third_party.run import SERVERS as THIRD_PARTY
from tests.rigs.third_party.server import BASE_MODEL

from tinkerwire._conformance.areas.client_versions import AREA, VERSIONS
from tinkerwire._conformance.client.wire_client import WireClient
from tinkerwire._conformance.prediction import TINKERWIRE, Prediction, predict
from tinkerwire._conformance.runner import run_requirements
from tinkerwire._conformance.subject.server import Server
from tinkerwire._wire.dialect import Dialect

KEY = "tml-flow"
EMBEDDED_MODEL = "tinkerwire/byte-nano"
INSTALLABLE = ("0.9.0", "0.14.0", "0.16.1", "0.18.2", "0.22.7", "0.24.1", "0.25.0", "0.30.4", "0.36.0", "0.38.0")
"""Releases of the official SDK that install in a minute."""
WITH_TORCH = ("0.3.0", "0.4.1", "0.6.0", "0.7.0")
"""Releases that need torch, a gigabyte each; they run if they are named, or with ``--torch``."""
CLIENTS = (*WITH_TORCH, *INSTALLABLE, TINKERWIRE)
WIRES = ("0.4.1", "0.6.0", *INSTALLABLE)
"""Twelve wire versions of the embedded server."""
QUIRK_WIRES = ("0.16.1", "0.24.1", "0.38.0")
"""Wire versions on which each quirk is tried, with the release of the same version."""
QUIRKS = (
    *("result_delay_s=0.5", "not_ready=try_again,result_delay_s=0.5"),
    *(f"failure={form}" for form in ("detail", "object", "category", "400", "404", "409", "422", "500")),
    *("batches=json", "batches=protobuf", "batches=json,rejection=500"),
    *("flags=absent", "results=protobuf", "results=json"),
    *("missing=optional", "missing=optional,missing_status=405", "missing=retrieve_futures+cancel_future"),
    *("short_paths", "prompt_logprobs=short", "prompt_logprobs=absent", "topk=ignored", "topk=rejected"),
    *("metrics=empty", "metrics=null", "load_first", "counts_rejected", "ids=integer", "ids=uuid"),
)
THIRD_PARTY_WIRES = {"skyrl-tx": "0.16.1", "skyrl": "0.25.0"}
THIRD_PARTY_CLIENTS = {
    "skyrl-tx": ("0.7.0", "0.9.0", "0.16.1", "0.18.2", TINKERWIRE),
    "skyrl": ("0.16.1", "0.25.0", "0.30.4", "0.38.0", TINKERWIRE),
}
STEP_TIMEOUT_S = 20.0
COMPILED_STEP_TIMEOUT_S = 120.0
"""Time limit of a step at a third-party server, which compiles for each new shape."""
FLOW_TIMEOUT_S = 1800.0


@attrs.frozen
class Case:
    """A server: the embedded one at a wire version, with quirks or without, or a third-party one."""

    name: str

    @property
    def wire(self) -> str:
        """The wire version that the server speaks."""
        return THIRD_PARTY_WIRES.get(self.name) or self.name.partition("+")[0]

    @property
    def is_plain(self) -> bool:
        """True for the embedded server without quirks."""
        return self.name in VERSIONS

    @property
    def base_model(self) -> str:
        """The model that clients use."""
        return BASE_MODEL if self.name in THIRD_PARTY else EMBEDDED_MODEL

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Run a new server and yield its URL."""
        if self.name in THIRD_PARTY:
            with THIRD_PARTY[self.name].running() as url:
                yield url
            return
        quirks = self.name.partition("+")[2]
        port = find_free_port()
        folder = FINDINGS.parent / f"server-{port}"
        command = [sys.executable, "-u", "-m", "tinkerwire", "serve", "--port", str(port), "--wire", self.wire]
        command += ["--folder", str(folder), *(["--quirks", quirks] if quirks else [])]
        with ServerProcess(command, log=folder.with_suffix(".log")) as server:
            server.wait_until("listening", lambda: "serves" in server.output(), timeout_s=60)
            yield f"http://127.0.0.1:{port}"


async def _predict(url: str, case: Case) -> list[Prediction]:
    server = Server(WireClient(url, KEY, Dialect.for_version(case.wire)), KEY, case.base_model)
    outcomes = await run_requirements(server, AREA.requirements)
    await server.close()
    return predict(outcomes, case.wire)


def run_flow(url: str, client: str, case: Case) -> list[dict[str, Any]]:
    """Run the flow with a client and return the record of every step; none if it could not start."""
    is_ours = client == TINKERWIRE
    python = sys.executable if is_ours else str(ensure_official_python(client))
    command = [python, "-m", "tests.rigs.official.flow", "--client", TINKERWIRE if is_ours else "tinker"]
    timeout_s = COMPILED_STEP_TIMEOUT_S if case.name in THIRD_PARTY else STEP_TIMEOUT_S
    command += ["--base-url", url, "--base-model", case.base_model, "--timeout", str(timeout_s)]
    if is_ours and case.is_plain:
        # As in the flow of test-official: discovery does not find out the exact version.
        command += ["--settings", json.dumps({"wire_version": case.wire})]
    # Without telemetry: the SDK holds each error back until its telemetry is sent.
    env = {**os.environ, "TINKER_TELEMETRY": "0"}
    with contextlib.suppress(subprocess.TimeoutExpired):
        completed = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=FLOW_TIMEOUT_S
        )
        return [json.loads(line) for line in completed.stdout.splitlines()]
    return [{"step": "flow", "outcome": "timeout", "detail": f"no end within {FLOW_TIMEOUT_S:.0f} s"}]


def calibrate(case: Case, clients: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Compare the predictions for one server with what clients do; yield one finding for each client."""
    with case.running() as url:
        predictions = {prediction.client.split()[-1]: prediction for prediction in asyncio.run(_predict(url, case))}
    for client in clients:
        # A new server for each: what one client leaves behind must not matter to the next.
        with case.running() as url:
            records = run_flow(url, client, case)
        if client == TINKERWIRE:
            # It speaks all versions, and the server claims one of them.
            records = drop_unclaimed(records, case.wire)
        yield {
            "server": case.name,
            "client": client,
            "predicted": predictions[client].describe(),
            "reasons": list(predictions[client].reasons),
            "seen": {feature.value: works for feature, works in features_of(records).items()},
            "records": {record["step"]: f"{record['outcome']}: {record['detail'][:120]}" for record in records},
            "wrong": compare(predictions[client], records),
        }


def choose_cases(servers: Sequence[str], sdks: Sequence[str], *, torch: bool) -> list[tuple[Case, list[str]]]:
    """Return servers with the clients to try on each; without names all that belong to the embedded server."""
    cases: list[tuple[Case, list[str]]] = []
    if servers:
        for name in servers:
            cases.append((Case(name), list(THIRD_PARTY_CLIENTS.get(name, CLIENTS))))
    else:
        cases.extend((Case(wire), list(CLIENTS)) for wire in WIRES)
        cases.extend((Case(f"{wire}+{quirk}"), [wire, TINKERWIRE]) for quirk in QUIRKS for wire in QUIRK_WIRES)
    chosen = set(sdks) or {client for client in CLIENTS if torch or client not in WITH_TORCH}
    return [(case, [client for client in clients if client in chosen]) for case, clients in cases]


def main() -> int:
    """Calibrate, print a line for each pair, and return 1 if a prediction is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", default=[], help="WIRE, WIRE+QUIRKS or a third-party server")
    parser.add_argument("--sdk", action="append", default=[], choices=CLIENTS, help="only this client; repeatable")
    parser.add_argument("--torch", action="store_true", help="also the releases that need torch")
    parser.add_argument("--missing", action="store_true", help="only pairs without a finding of an earlier run")
    parser.add_argument("--jobs", type=int, default=2, help="servers that run at the same time")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no further flow after this time")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    cases = choose_cases(options.server, options.sdk, torch=options.torch)
    if options.missing:
        found = {(finding["server"], finding["client"]) for finding in load_findings()}
        cases = [(case, [client for client in clients if (case.name, client) not in found]) for case, clients in cases]
    lock = threading.Lock()

    def work(chosen: tuple[Case, list[str]]) -> bool:
        """Calibrate one server; each finding is kept at once, and those of an interrupted run remain."""
        case, clients = chosen
        is_wrong = False
        if not clients or time.monotonic() > end:
            return False
        for finding in calibrate(case, clients):
            is_wrong = is_wrong or bool(finding["wrong"])
            mark = f"WRONG {'; '.join(finding['wrong'])}" if finding["wrong"] else "right"
            with lock:
                store_findings([finding])
                sys.stdout.write(f"{finding['server']:36} {finding['client']:11} {mark}: {finding['predicted']}\n")
                sys.stdout.flush()
            if time.monotonic() > end:
                break
        return is_wrong

    with ThreadPoolExecutor(options.jobs) as pool:
        is_wrong = any(list(pool.map(work, cases)))
    page = DOCS / "conformance" / "predictions.md"
    write_section(page, "calibration", render(load_findings(), VERSIONS), title="Predictions")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
