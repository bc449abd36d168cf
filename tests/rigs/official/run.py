"""The flow against the embedded server, with several releases of the official SDK and with tinkerwire.

python -m tests.rigs.official.run
python -m tests.rigs.official.run --only 0.38.0
python -m tests.rigs.official.run --client tinkerwire --base-url http://127.0.0.1:8000   # any client, any server
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.rigs.official.process import ServerProcess
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import OFFICIAL_VERSION, ROOT, ensure_official_python

LOG = ROOT / "build" / "official" / "server.log"
URL = re.compile(r"https?://[\w.\-]+:\d+")
# Chunks that are small enough for the flow to send several at once.
SMALL_CHUNKS = "fwdbwd_max_chunk_len=16"
MESSAGE_FLAGS = ("proto_write_fwdbwd=true", "proto_compress_fwdbwd=true", "fwd_via_fwdbwd=true")
ALL_FLAGS = (
    SMALL_CHUNKS,
    "proto_compress_fwdbwd=true",
    "sample_use_retrieve_futures=true",
    "pjwt_auth_enabled=true",
    "sample_cancel_enabled=true",
)
ALWAYS_REQUESTED = {"sample_cancel_enabled"}
"""Flags that a client requests even if they are set, because they may change."""


class ClientRun(NamedTuple):
    """Client, and the embedded server that it uses.

    Args:
        client: tinker or tinkerwire.
        version: wire version that the server serves, and of the official SDK.
        flags: flags of the server's client/config.
    """

    client: str
    version: str
    flags: tuple[str, ...] = ()
    has_settings: bool = False
    """True if our client gets the version and the flags, instead of discovering them."""

    @property
    def title(self) -> str:
        """Return the name for the report."""
        name = f"official SDK {self.version}" if self.client == "tinker" else f"tinkerwire, wire {self.version} served"
        return f"{name} with {', '.join(self.flags)}" if self.flags else name

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of the client."""
        flags = {name: json.loads(value) for name, _, value in (flag.partition("=") for flag in self.flags)}
        settings = {name: value for name, value in flags.items() if name not in ALWAYS_REQUESTED}
        return {"wire_version": self.version, "client_config": settings} if self.has_settings else {}


CLIENT_RUNS = [
    ClientRun("tinker", "0.16.1"),
    ClientRun("tinker", "0.25.0", (SMALL_CHUNKS,)),
    ClientRun("tinker", "0.38.0"),
    ClientRun("tinker", "0.38.0", ALL_FLAGS),
    ClientRun("tinkerwire", OFFICIAL_VERSION),
    ClientRun("tinkerwire", "0.6.3", has_settings=True),
    ClientRun("tinkerwire", "0.22.7", MESSAGE_FLAGS, has_settings=True),
    ClientRun("tinkerwire", "0.25.0", (SMALL_CHUNKS,), has_settings=True),
    ClientRun("tinkerwire", "0.38.0", has_settings=True),
    ClientRun("tinkerwire", "0.38.0", ALL_FLAGS, has_settings=True),
]


@contextlib.contextmanager
def embedded_server(version: str, flags: Sequence[str] = ()) -> Iterator[str]:
    """Run `tinkerwire serve` as a user would and yield its URL."""
    command = [sys.executable, "-u", "-m", "tinkerwire", "serve", "--port", "0", "--wire", version]
    for flag in flags:
        command += ["--flag", flag]
    if "pjwt_auth_enabled=true" in flags:
        # Only then are tokens looked at.
        command += ["--api-key", "tml-flow"]
    with tempfile.TemporaryDirectory() as folder, ServerProcess([*command, "--folder", folder], log=LOG) as server:
        server.wait_until("listening", lambda: bool(URL.search(server.output())), timeout_s=60)
        match = URL.search(server.output())
        assert match is not None
        yield match.group()


def run_flow(client_run: ClientRun, base_url: str | None = None, timeout_s: float = 60.0) -> list[dict[str, Any]]:
    """Run the flow and return the record of every step; without a URL, against the embedded server."""
    python = str(ensure_official_python(client_run.version)) if client_run.client == "tinker" else sys.executable
    with contextlib.ExitStack() as stack:
        url = base_url or stack.enter_context(embedded_server(client_run.version, client_run.flags))
        command = [python, "-m", "tests.rigs.official.flow", "--client", client_run.client, "--base-url", url]
        command += ["--settings", json.dumps(client_run.settings)]
        completed = subprocess.run(
            [*command, "--timeout", str(timeout_s)], cwd=ROOT, capture_output=True, text=True, check=False
        )
    records: list[dict[str, Any]] = [json.loads(line) for line in completed.stdout.splitlines()]
    if not records:
        reason = f"exit code {completed.returncode}, no step was run\n{completed.stderr[-3000:]}"
        raise RuntimeError(f"flow with {client_run.title}: {reason}")
    return records


def render_section(records_by_run: dict[ClientRun, list[dict[str, Any]]]) -> str:
    """Return the section of the report on the embedded server."""
    lines = [
        "## The embedded server",
        "",
        "Made by `make test-official`, over HTTP, each client against `tinkerwire serve --wire` of the same "
        "version; tinkerwire discovers 0.16.1 and is set to the other versions. The steps are those below, and "
        "some for newer versions. Skipped: steps that the client, or the served wire, does not have.",
        "",
    ]
    for client_run, records in records_by_run.items():
        skipped = [record["step"] for record in records if record["outcome"] == "skipped"]
        failed = [f"{record['step']} ({record['detail']})" for record in records if not record["ok"]]
        count = len(records) - len(skipped)
        line = f"- {client_run.title}: {count - len(failed)} of {count} steps work"
        line += f"; not: {', '.join(failed)}" if failed else ""
        line += f"; skipped: {', '.join(skipped)}" if skipped else ""
        lines.append(f"{line}.")
    return "\n".join(lines)


def main() -> int:
    """Run the flow with each client, print a line for each step, and return 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="VERSION", help="only this version; the report is left as it is then")
    parser.add_argument("--client", choices=["tinker", "tinkerwire"], help="only this client, likewise")
    parser.add_argument("--base-url", help="of a server that runs already; the embedded one is started by default")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    options = parser.parse_args()
    chosen = [
        client_run
        for client_run in CLIENT_RUNS
        if options.only in (None, client_run.version) and options.client in (None, client_run.client)
    ]
    records_by_run = {client_run: run_flow(client_run, options.base_url, options.timeout) for client_run in chosen}
    for client_run, records in records_by_run.items():
        for record in records:
            name = f"{client_run.client} {client_run.version}{'+' if client_run.flags else ''}"
            sys.stdout.write(f"{name:20}{record['outcome']:8}{record['step']}: {record['detail']}\n")
    if len(chosen) == len(CLIENT_RUNS) and not options.base_url:
        write_section(DOCS / "compatibility.md", "embedded", render_section(records_by_run), title="Compatibility")
    sys.stdout.write(render_section(records_by_run) + "\n")
    return int(any(not record["ok"] for records in records_by_run.values() for record in records))


if __name__ == "__main__":
    sys.exit(main())
