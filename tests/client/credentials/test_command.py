"""The command that prints a credential: when it runs, and what goes wrong with it."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, open_client
from support.scripted import PATIENCE_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order, seq_ids
from support.tokens import token
from tinkerwire._credentials import command as command_module
from tinkerwire._credentials.command import run_command

pytestmark = pytest.mark.timeout(60)
REFUSED = ScriptedResponse({"detail": "who are you"}, status=401)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (f"echo {KEY}; exit 3", "exit status 3"),
        (f"echo {KEY} {KEY}", "more than one word"),
        (f"printf '{KEY}\\351'", "beyond printable ASCII"),
        ("true", "printed nothing"),
        (f"echo {token(-5)}", "printed an expired token"),
        (f"{KEY} 2>/dev/null", "exit status 127"),
    ],
)
def test_a_failing_command(command: str, why: str) -> None:
    """The error says what is wrong, and shows neither the command nor what it printed, in its text or frames."""
    with pytest.raises(tw.TinkerError, match=f"TINKER_CREDENTIAL_CMD: .*{why}") as caught:
        asyncio.run(run_command(command))
    assert KEY not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None


def test_a_command_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is stopped in the end, and not waited for."""
    monkeypatch.setattr(command_module, "COMMAND_TIMEOUT_S", 0.1)
    with pytest.raises(tw.TinkerError, match=r"ran for 0.1 s and was stopped; it must not wait for input"):
        asyncio.run(run_command(f"sleep 100; touch {tmp_path / 'went-on'}"))
    assert not (tmp_path / "went-on").exists()


def test_it_runs_when_it_is_needed(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not before the first request, and once; again when what it printed is refused, and the request goes once more."""
    runs = tmp_path / "runs"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {runs}; echo {KEY}-$(wc -l < {runs} | tr -d ' ')")
    server.rules["get_server_capabilities"] = in_order(
        server.healthy_response, server.healthy_response, REFUSED, server.healthy_response, REFUSED
    )
    with open_client(server.url, api_key=None) as client:
        assert not runs.exists()
        for _ in range(3):
            client.get_server_capabilities()
        with pytest.raises(tw.AuthenticationError, match="who are you"):
            client.get_server_capabilities()
    asked = server.named("get_server_capabilities")
    assert [each.headers["x-api-key"][-1] for each in asked] == ["1", "1", "1", "2", "2", "3"]


def test_one_run_for_all(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many requests at once wait for one run."""
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {tmp_path / 'runs'}; sleep 0.2; echo {KEY}")
    with open_client(server.url, api_key=None) as client:
        rest = client.create_rest_client()
        for future in [rest.get_server_capabilities() for _ in range(20)]:
            future.result(PATIENCE_S)
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_command_that_fails_is_not_retried(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its error surfaces at once, nothing is sent, and the next request tries again."""
    runs = tmp_path / "runs"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo x >> {runs}; exit 1")
    with open_client(server.url, api_key=None, retry=FAST) as client:
        for number in (1, 2):
            with pytest.raises(tw.TinkerError, match="exit status 1"):
                client.get_server_capabilities()
            assert runs.read_text() == "x\n" * number
    assert server.asked == []


def test_a_number_that_may_be_taken_is_not_given_out_again(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A step whose first try may have arrived keeps its number, although the command fails for the second."""
    broken = tmp_path / "broken"
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"test ! -e {broken} && echo {KEY}")

    def refuse(_: RecordedRequest) -> ScriptedResponse:
        broken.touch()
        return REFUSED

    server.rules["optim_step"] = in_order(ScriptedResponse(status=500), refuse, server.healthy_response)
    with open_client(server.url, api_key=None) as client:
        training = client.create_lora_training_client("base")
        with pytest.raises(tw.TinkerError, match="exit status 1"):
            training.optim_step(ADAM).result(PATIENCE_S)
        broken.unlink()
        training.optim_step(ADAM).result(PATIENCE_S)
    assert seq_ids(server) == [1, 1, 2]
