"""The official SDK 0.16.1, in an environment of its own, walks the whole flow against our embedded server.

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
from tests.official.venv import ROOT, official_python

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


def main() -> int:
    """Walk, print a line for each step, and return 1 when one did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default="tinker", choices=["tinker", "tinkerwire"])
    parser.add_argument("--base-url", help="of a server that runs already; the embedded one is started by default")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    options = parser.parse_args()
    records = walk(options.client, options.base_url, options.timeout)
    for record in records:
        sys.stdout.write(f"{record['outcome']:8}{record['step']}: {record['detail']}\n")
    failed = sum(not record["ok"] for record in records)
    sys.stdout.write(f"{len(records) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
