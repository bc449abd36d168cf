"""Clients and servers of the gateway's rig, and one run of the flow between them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.rigs.official.process import ServerProcess
from tests.rigs.official.steps_numbers import STATE_NAME
from tests.rigs.official.venv import ROOT, ensure_official_python
from tests.rigs.third_party.skyrl import SKYRL
from tests.rigs.third_party.skyrl_tx import SKYRL_TX

BUILD = ROOT / "build" / "gateway"
OUR_CLIENT = "tinkerwire"
OUR_WIRE = "0.38.0"
"""Wire version of the embedded server that shows what our client can do."""
CLIENTS = ("0.4.1", "0.7.0", "0.16.1", "0.18.2", "0.24.1", "0.25.0", "0.30.4", "0.38.0", OUR_CLIENT)
"""Versions of the official SDK, and our client."""
WIRES = ("0.4.1", "0.9.0", "0.16.1", "0.25.0", "0.30.4", "0.38.0")
"""Wire versions of the embedded server."""
THIRD_PARTY = {server.name: server for server in (SKYRL_TX, SKYRL)}
SERVERS = (*WIRES, *THIRD_PARTY)
URL = re.compile(r"http://[\w.\-]+:\d+")
MAX_FLOW_S = 1500
Steps = list[dict[str, Any]]


class RunningServer(NamedTuple):
    """A server that runs, and the folder in which it keeps its checkpoints."""

    url: str
    folder: Path


def best_official_version(server: str) -> str:
    """Return the version of the official SDK that works best directly with a server."""
    return THIRD_PARTY[server].official if server in THIRD_PARTY else server


def own_server(client: str) -> str:
    """Return the wire version of the embedded server that has all that a client can do."""
    return OUR_WIRE if client == OUR_CLIENT else client


def server_title(server: str) -> str:
    """Return the name of a server for reports."""
    return THIRD_PARTY[server].title if server in THIRD_PARTY else f"embedded {server}"


@contextlib.contextmanager
def run_command(command: Sequence[str], log: str) -> Iterator[str]:
    """Run a command of tinkerwire that listens, and yield its URL."""
    full = [sys.executable, "-u", "-m", "tinkerwire", *command]
    # Another rig may run at the same time.
    with ServerProcess(full, log=BUILD / f"{log}-{os.getpid()}.log") as process:
        process.wait_until("listening", lambda: bool(URL.search(process.output())), timeout_s=120)
        match = URL.search(process.output())
        assert match is not None
        yield match.group()


@contextlib.contextmanager
def run_server(server: str) -> Iterator[RunningServer]:
    """Run a server of an empty folder."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tinkerwire-gateway-")))
        if server in THIRD_PARTY:
            url = stack.enter_context(THIRD_PARTY[server].running(folder))
        else:
            command = ["serve", "--port", "0", "--wire", server, "--folder", str(folder)]
            url = stack.enter_context(run_command(command, "server"))
        yield RunningServer(url, folder)


def run_gateway(to: str, *options: str) -> contextlib.AbstractContextManager[str]:
    """Run a gateway to a server, which it has to find out about, and yield its URL."""
    return run_command(["gateway", "--to", to, "--port", "0", *options], "gateway")


def run_flow(client: str, server: str, *, through_gateway: bool, timeout_s: float) -> Steps:
    """Run all steps with a client against a new server; return their records, with the saved weights."""
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(run_server(server))
        url = stack.enter_context(run_gateway(running.url)) if through_gateway else running.url
        is_ours = client == OUR_CLIENT
        python = sys.executable if is_ours else str(ensure_official_python(client))
        command = [python, "-m", "tests.rigs.official.flow", "--client", OUR_CLIENT if is_ours else "tinker"]
        command += ["--base-url", url, "--timeout", str(timeout_s), "--numbers"]
        try:
            completed = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=MAX_FLOW_S
            )
            output, errors = completed.stdout, completed.stderr
        except subprocess.TimeoutExpired as expired:
            output, errors = (expired.stdout or b"").decode(), f"no end within {MAX_FLOW_S} s"
        steps: Steps = [json.loads(line) for line in output.splitlines()]
        if not steps:
            raise RuntimeError(f"flow with {client} against {server}: no step was run\n{errors[-3000:]}")
        for step in steps:
            if step.get("numbers"):
                step["numbers"]["weights"] = _digest_weights(running.folder)
    return steps


def _digest_weights(folder: Path) -> list[str]:
    """Return digests of all arrays that the step of numbers has saved."""
    digests = []
    # The embedded server saves weights, optimizer and weights for sampling like this, the others those for sampling.
    for file in folder.rglob(f"{STATE_NAME}*.npz"):
        with np.load(file) as arrays:
            digests += [_digest(f"{file.name} {name}", arrays[name].tobytes()) for name in arrays.files]
    for file in folder.rglob(f"{STATE_NAME}-sampler.tar.gz"):
        with tarfile.open(file) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member)
                # Other files hold the ids of a run.
                if content is not None and member.name.endswith(".safetensors"):
                    digests.append(_digest(Path(member.name).name, content.read()))
    if not digests:
        raise RuntimeError(f"no saved weights {STATE_NAME} in the folder of the server")
    return sorted(digests)


def _digest(name: str, content: bytes) -> str:
    return f"{name} {hashlib.sha256(content).hexdigest()}"
