"""The flow against each peer server, with the official SDK that works with it as the measure for ours.

    python -m tests.rigs.third_party.run                     both clients; writes docs/compatibility.md
    python -m tests.rigs.third_party.run --peer skyrl        one peer only
    python -m tests.rigs.third_party.run --clients tinker    the official SDK alone, printed only

Records of every step, and all that went over the wire, are left in build/peers. Exit code 1 when a step that
works with the official SDK does not work with our client.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from typing import Any

from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_official_python
from tests.rigs.third_party.recorder import Record, record_requests
from tests.rigs.third_party.server import BUILD, ThirdPartyServer
from tests.rigs.third_party.skyrl import SKYRL
from tests.rigs.third_party.skyrl_tx import SKYRL_TX

OUR_CLIENT, OFFICIAL_CLIENT = "tinkerwire", "tinker"
CLIENTS = (OFFICIAL_CLIENT, OUR_CLIENT)
SERVERS = {peer.name: peer for peer in (SKYRL_TX, SKYRL)}
MAX_RESPONSE_CHARACTERS = 220
Steps = list[dict[str, Any]]


def run_flow(peer: ThirdPartyServer, client: str, timeout_s: float) -> Steps:
    """Run the flow with one client against a new server; return the steps with the server's rejections."""
    python = str(ensure_official_python(peer.official)) if client == OFFICIAL_CLIENT else sys.executable
    command = [python, "-m", "tests.rigs.official.flow", "--client", client, "--timeout", str(timeout_s)]
    with peer.running() as server, record_requests(server) as (url, wire):
        completed = subprocess.run([*command, "--base-url", url], cwd=ROOT, capture_output=True, text=True, check=False)
        steps: Steps = [json.loads(line) for line in completed.stdout.splitlines()]
        if not steps:
            raise SystemExit(f"flow with {client}: exit code {completed.returncode}\n{completed.stderr[-3000:]}")
    for step in steps:
        step["refusals"] = _list_rejections(step, wire)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{peer.name}-{client}-steps.json").write_text(json.dumps(steps, indent=1))
    (BUILD / f"{peer.name}-{client}-wire.jsonl").write_text("".join(json.dumps(record) + "\n" for record in wire))
    return steps


def _list_rejections(step: dict[str, Any], wire: list[Record]) -> list[str]:
    """Return the requests that the server rejected during the step, each once."""
    end = step["start"] + step["seconds"]
    lines = [
        f"{record['method']} {record['path'].removeprefix('/api/v1/')}: {record['status']} "
        f"{json.dumps(record['answer'])}"
        for record in wire
        if step["start"] <= record["start"] <= end and record.get("status", 0) >= 400
    ]
    return list(dict.fromkeys(_remove_ids(line) for line in lines))


def _remove_ids(text: str) -> str:
    """Replace values that differ between runs, so that the table stays the same."""
    for pattern, name in (
        (r"\b(model|sampling|session)_[0-9a-f]{6,}\b", r"\1_ID"),
        (r" object at 0x[0-9a-f]+", ""),
        (r"(?<=ForwardBackwardOutput\().*", "..."),
        (r"datetime\.datetime\([^)]*\)", "a datetime"),
        (r"(?<=['\" ])/[^ '\"]*/(?=checkpoints/)", ""),
    ):
        text = re.sub(pattern, name, text)
    return text if len(text) <= MAX_RESPONSE_CHARACTERS else text[:MAX_RESPONSE_CHARACTERS] + "..."


def render_table(peer: ThirdPartyServer, steps_by_client: dict[str, Steps]) -> str:
    """Return the Markdown section: one line per step, one column per client, and the server's response."""
    clients = [client for client in CLIENTS if client in steps_by_client]
    titles = {OFFICIAL_CLIENT: f"official SDK {peer.official}", OUR_CLIENT: "tinkerwire"}
    lines = [
        f"## {peer.title}",
        "",
        "Made by `make test-third-party`: the same steps (tests/rigs/official/steps_*.py) through each client. "
        "`works`: done and checked; `wrong`: the check of the response failed; `error`: an exception; "
        "`blocked`: a step that it needs had failed; `timeout`: no end; `skipped`: "
        "the client lacks the step.",
        "",
        f"| step | {' | '.join(titles[client] for client in clients)} | finding |",
        f"|---|{'---|' * len(clients)}---|",
    ]
    for steps in zip(*(steps_by_client[client] for client in clients), strict=True):
        outcomes = " | ".join(step["outcome"] for step in steps)
        lines.append(f"| {steps[0]['step']} | {outcomes} | {_render_finding(list(steps))} |")
    counts = [f"{_count_working(steps_by_client[client])} with {titles[client]}" for client in clients]
    lines += ["", f"Of {len(steps_by_client[clients[0]])} steps there work: {', '.join(counts)}."]
    return "\n".join(lines) + "\n"


def _count_working(steps: Steps) -> int:
    return sum(step["outcome"] == "works" for step in steps)


def _render_finding(steps: Steps) -> str:
    """Return the server's rejection, or the finding of a failed check."""
    refusals = list(dict.fromkeys(line for step in steps for line in step["refusals"]))
    if not refusals:
        failed = [step for step in steps if not step["ok"]]
        refusals = list(dict.fromkeys(_remove_ids(step["detail"]) for step in failed))
    return "<br>".join(f"`{line.replace('|', '/').replace('`', chr(39))}`" for line in refusals[:3])


def find_losses(steps_by_client: dict[str, Steps]) -> list[str]:
    """Return one line for every step where tinkerwire falls behind the official client."""
    return [
        f"{our_step['step']}: {our_step['outcome']}: {our_step['detail']}"
        for official_step, our_step in zip(steps_by_client[OFFICIAL_CLIENT], steps_by_client[OUR_CLIENT], strict=True)
        if official_step["outcome"] == "works" and not our_step["ok"]
    ]


def measure(peer: ThirdPartyServer, clients: list[str], timeout_s: float) -> int:
    """Run the flow, report for one server, and return the number of steps where tinkerwire is behind."""
    steps_by_client = {client: run_flow(peer, client, timeout_s) for client in clients}
    text = render_table(peer, steps_by_client)
    if len(steps_by_client) < len(CLIENTS):
        sys.stdout.write(text)
        return 0
    write_section(DOCS / "compatibility.md", peer.title, text, title="Compatibility")
    failures = find_losses(steps_by_client)
    sys.stdout.write("".join(f"FAILED {peer.title}: {line}\n" for line in failures))
    sys.stdout.write(f"{peer.title}: {_count_working(steps_by_client[OUR_CLIENT])} passed, {len(failures)} failed\n")
    return len(failures)


def main() -> int:
    """Run all, report, and return 1 if tinkerwire is behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(SERVERS), help="only this one")
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    options = parser.parse_args()
    peers = [SERVERS[options.peer]] if options.peer else list(SERVERS.values())
    failures = [measure(peer, options.clients, options.timeout) for peer in peers]
    return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
