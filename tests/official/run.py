"""The official SDK 0.16.1, in an environment of its own, and our client walk the flow against our embedded server.

python -m tests.official.run
python -m tests.official.run --client tinkerwire --base-url http://127.0.0.1:8000   # any client, any server
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests.official.process import ServerProcess
from tests.official.report import DOCS, write_section
from tests.official.venv import ROOT, official_python

TITLES = {"tinker": "official SDK 0.16.1", "tinkerwire": "tinkerwire"}
LOG = ROOT / "build" / "official" / "server.log"
URL = re.compile(r"https?://[\w.\-]+:\d+")


@contextlib.contextmanager
def embedded_server() -> Iterator[str]:
    """Run `tinkerwire serve` as a user would and yield the URL that it prints."""
    command = [sys.executable, "-u", "-m", "tinkerwire", "serve", "--port", "0"]
    with ServerProcess(command, log=LOG, cwd=LOG.parent) as server:
        server.wait_until("listening", lambda: bool(URL.search(server.output())), timeout_s=60)
        match = URL.search(server.output())
        assert match is not None
        yield match.group()


def walk(client: str, base_url: str | None = None, timeout_s: float = 60.0) -> list[dict[str, Any]]:
    """Run the flow and return the record of every step; the embedded server answers when no URL is given."""
    python = str(official_python()) if client == "tinker" else sys.executable
    with contextlib.ExitStack() as stack:
        url = base_url or stack.enter_context(embedded_server())
        command = [python, "-m", "tests.official.flow", "--client", client, "--base-url", url]
        done = subprocess.run(
            [*command, "--timeout", str(timeout_s)], cwd=ROOT, capture_output=True, text=True, check=False
        )
    records: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    if not records:
        raise RuntimeError(f"flow with {client}: exit code {done.returncode}, no step was run\n{done.stderr[-3000:]}")
    return records


def section(walks: dict[str, list[dict[str, Any]]]) -> str:
    """Return what the report says of the embedded server: how much works through each client, and what does not."""
    lines = ["## The embedded server", "", "Made by `make test-official`, over HTTP; the steps are those below.", ""]
    for client, records in walks.items():
        failed = [f"{record['step']} ({record['detail']})" for record in records if not record["ok"]]
        missing = f"; not: {', '.join(failed)}" if failed else ""
        lines.append(f"- {TITLES[client]}: {len(records) - len(failed)} of {len(records)} steps work{missing}.")
    return "\n".join(lines)


def main() -> int:
    """Walk with each client, print a line for each step, and return 1 when one did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=list(TITLES), help="only this one; the report is left as it is then")
    parser.add_argument("--base-url", help="of a server that runs already; the embedded one is started by default")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    options = parser.parse_args()
    clients = [options.client] if options.client else list(TITLES)
    walks = {client: walk(client, options.base_url, options.timeout) for client in clients}
    for client, records in walks.items():
        for record in records:
            sys.stdout.write(f"{client:12}{record['outcome']:8}{record['step']}: {record['detail']}\n")
    if not options.client and not options.base_url:
        write_section(DOCS / "compatibility.md", "embedded", section(walks), title="Compatibility")
    sys.stdout.write(section(walks) + "\n")
    return int(any(not record["ok"] for records in walks.values() for record in records))


if __name__ == "__main__":
    sys.exit(main())
