"""Tests of TINKER_CREDENTIAL_CMD: the runs of the command, its failures, and the requests that wait for it."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import traceback
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order, seq_ids
from support.tokens import token
from tinkerwire._credentials import command as command_module
from tinkerwire._credentials.command import run_command

pytestmark = pytest.mark.timeout(60)
UNAUTHORIZED = ScriptedResponse({"detail": "who are you"}, status=401)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (f"echo {KEY}; exit 3", "exit status 3"),
        (f"echo {KEY} {KEY}", "more than one word"),
        (f"printf '{KEY}\\351'", "beyond printable ASCII"),
        ("true", "got nothing"),
        (f"echo {token(-5)}", "printed an expired token"),
        (f"{KEY} 2>/dev/null", "exit status 127"),
    ],
)
def test_failed_command_raises_without_showing_its_output(command: str, reason: str) -> None:
    """The error names the variable and the reason, and shows neither the command nor its output."""
    with pytest.raises(tw.TinkerError, match=f"TINKER_CREDENTIAL_CMD: .*{reason}") as caught:
        asyncio.run(run_command(command))
    assert KEY not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None


def test_command_is_stopped_at_its_timeout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the timeout, and the command does not continue."""
    monkeypatch.setattr(command_module, "COMMAND_TIMEOUT_S", 0.1)
    with pytest.raises(tw.TinkerError, match=r"ran for 0.1 s and was stopped; it must not wait for input"):
        asyncio.run(run_command(f"sleep 100; touch {tmp_path / 'went-on'}"))
    assert not (tmp_path / "went-on").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a FIFO")
def test_timed_out_command_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The shell and the processes that it started are dead when the error arrives."""
    monkeypatch.setattr(command_module, "COMMAND_TIMEOUT_S", 1.0)
    fifo = tmp_path / "open-while-the-command-runs"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(tw.TinkerError, match="was stopped"):
            asyncio.run(run_command(f"exec 3>{fifo}; echo running >&3; sleep 30 & sleep 30"))
        assert os.read(reader, 100) == b"running\n"
        # The end of the file: every process that had it open has ended.
        assert select.select([reader], [], [], 10) == ([reader], [], [])
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_command_runs_at_first_need_and_after_a_401(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A request that gets a 401 is resent once with the credential of a new run."""
    runs = tmp_path / "runs"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {runs}; echo {KEY}-$(wc -l < {runs} | tr -d ' ')")
    server.rules["get_server_capabilities"] = in_order(
        server.healthy_response, server.healthy_response, UNAUTHORIZED, server.healthy_response, UNAUTHORIZED
    )
    with open_client(server.url, api_key=None) as client:
        assert not runs.exists()
        for _ in range(3):
            client.get_server_capabilities()
        with pytest.raises(tw.AuthenticationError, match="who are you"):
            client.get_server_capabilities()
    requests = server.named("get_server_capabilities")
    assert [request.headers["x-api-key"][-1] for request in requests] == ["1", "1", "1", "2", "2", "3"]


def test_concurrent_requests_share_one_run(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Twenty requests wait for the same run of the command."""
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {tmp_path / 'runs'}; sleep 0.2; echo {KEY}")
    with open_client(server.url, api_key=None) as client:
        rest = client.create_rest_client()
        for future in [rest.get_server_capabilities() for _ in range(20)]:
            future.result(TEST_TIMEOUT_S)
    assert (tmp_path / "runs").read_text() == "x\n"


def test_failed_command_is_not_retried(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The request raises at once, nothing is sent, and the next request runs the command again."""
    runs = tmp_path / "runs"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {runs}; exit 1")
    with open_client(server.url, api_key=None, retry=FAST) as client:
        for number in (1, 2):
            with pytest.raises(tw.TinkerError, match="exit status 1"):
                client.get_server_capabilities()
            assert runs.read_text() == "x\n" * number
    assert server.requests == []


def test_failed_command_does_not_free_a_seq_id_that_may_be_used(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A step whose first attempt may have arrived keeps its seq_id if the command fails before the second."""
    failure_flag = tmp_path / "fail"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"test ! -e {failure_flag} && echo {KEY}")

    def reject(_: RecordedRequest) -> ScriptedResponse:
        failure_flag.touch()
        return UNAUTHORIZED

    server.rules["optim_step"] = in_order(ScriptedResponse(status=500), reject, server.healthy_response)
    with open_client(server.url, api_key=None) as client:
        training = client.create_lora_training_client("base")
        with pytest.raises(tw.TinkerError, match="exit status 1"):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        failure_flag.unlink()
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2]
