"""Tests of ``tinkerwire gateway`` as a separate process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tinkerwire.testing import LocalServer

TIMEOUT_S = 60.0


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start a gateway; return its process and the first line of its output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tinkerwire", "gateway", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline()


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a gateway as its user does, and return its further output."""
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    return output


def test_gateway_prints_its_address_and_ends_on_sigterm(tmp_path: Path) -> None:
    tape, trace = tmp_path / "gateway.tape", tmp_path / "trace.jsonl"
    with LocalServer(wire="0.16.1") as server:
        process, line = start("--to", server.url, "--record", str(tape), "--trace", str(trace))
        url = line.split(" at ")[1].split()[0]
        assert line.endswith(f" translates to {server.url}\n")
        headers = {"x-stainless-package-version": "0.38.0", "x-api-key": "tml-secret-of-a-client"}
        response = httpx.get(f"{url}/api/v1/get_server_capabilities", headers=headers)
        assert response.status_code == 200
        output = stop(process)
    assert output == ("", "")
    assert "get_server_capabilities" in tape.read_text()
    assert json.loads(trace.read_text().splitlines()[0])["wire"] == "0.38.0"
    assert "tml-secret-of-a-client" not in tape.read_text() + trace.read_text()


def test_generated_key_is_printed_once() -> None:
    with LocalServer() as server:
        process, line = start("--to", server.url, "--api-key", "tml-secret-of-upstream", "--json")
        found = json.loads(line)
        url = f"{found['address']}/api/v1/get_server_capabilities"
        assert found["to"] == server.url
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"x-api-key": found["client_key"]}).status_code == 200
        output = stop(process)
    assert "tml-secret-of-upstream" not in line + "".join(output)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "argument --to is missing"),
        (("--to", "nowhere"), "to: 'nowhere' is not an http(s) URL"),
        (("--to", "http://127.0.0.1:1", "--to-wire", "9.9.9"), "9.9.9 is unknown"),
        (("--to", "http://127.0.0.1:1", "--speak", "0.1.0"), "0.3.0 or newer"),
        (("--to", "http://127.0.0.1:1", "--allow-host", "http://a"), "is not a host"),
        (("--to", "http://127.0.0.1:1", "--inject-faults", "p=1"), "unknown option"),
        (("--to", "http://192.0.2.1:1"), "plain http"),
    ],
)
def test_wrong_usage_is_named(arguments: tuple[str, ...], text: str) -> None:
    process, line = start(*arguments)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode != 0, line) == (True, "")
    assert text in errors
    assert "Traceback" not in errors
