"""Tests of LocalServer, as test runners other than pytest use it."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit

import pytest

import tinkerwire as tw
from tinkerwire.local import Quirks
from tinkerwire.testing import LocalServer

PARAMS = tw.SamplingParams(max_tokens=4)
PROMPT = tw.ModelInput.from_ints([1, 2])


def sample(service: tw.ServiceClient, model: str = "tinkerwire/byte-nano") -> list[int]:
    """Return the tokens of one sample."""
    sampling = service.create_sampling_client(base_model=model)
    return list(sampling.sample(PROMPT, num_samples=1, sampling_params=PARAMS).result().sequences[0].tokens)


def test_server_is_reachable_in_process_and_over_http() -> None:
    """Both ways lead to the same server, which has the models and quirks that it was given."""
    quirks = Quirks(missing=["telemetry"])
    with LocalServer(wire="0.25.0", models=["org/model"], quirks=quirks, seed=3) as server:
        assert repr(server) == f"<LocalServer {server.url}, wire 0.25.0>"
        with server.create_client() as inner, tw.ServiceClient(base_url=server.url) as outer:
            assert len(sample(inner, "org/model")) == len(sample(outer, "org/model")) == 4
            sessions = inner.create_rest_client().list_sessions().result().sessions
            assert len(sessions) == 2


def test_closed_server_leaves_nothing() -> None:
    """After close, the port, the thread and the folder are gone; a second call does nothing."""
    server = LocalServer()
    address = urlsplit(server.url)
    folder = server.embedded.folder
    server.close()
    server.close()
    assert not folder.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "tinkerwire-testing"]
    with pytest.raises(OSError):
        socket.create_connection((address.hostname, address.port), timeout=10)


def test_environment_names_the_server_and_hides_the_users_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without arguments reaches the server, whatever the variables were."""
    monkeypatch.setenv("TINKER_WIRE_VERSION", "0.9.0")
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "exit 1")
    with LocalServer() as server:
        for name, value in server.environment.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        with tw.ServiceClient() as service:
            assert len(sample(service)) == 4
            assert server.url in repr(service)


@pytest.mark.parametrize(
    ("setting", "value", "error", "text"),
    [
        ("models", {"a": "b"}, ValueError, "unknown model 'b'"),
        ("models", ["a b"], ValueError, "alias 'a b' .* blanks"),
        ("models", [""], ValueError, "alias '' .* must not be empty"),
        ("models", 3, TypeError, "models: expected a str or several of them, got 3"),
        ("models", [3], TypeError, "models: expected a str, got 3"),
        ("models", {3: "b"}, TypeError, "alias: expected a str, got 3"),
        ("models", {"a": ["b"]}, TypeError, "alias 'a': expected a str"),
        ("quirks", 3, TypeError, "quirks: expected a str or several of them, got 3"),
        ("quirks", ["nope"], ValueError, "unknown option 'nope'"),
        ("seed", "x", TypeError, "seed: expected a whole number, got 'x'"),
        ("seed", 1.5, TypeError, "seed: expected a whole number, got 1.5"),
        ("seed", True, TypeError, "seed: expected a whole number, got True"),
        ("wire", 0.3, TypeError, "wire_version: expected a str, got 0.3"),
        ("wire", "", ValueError, "wire version: expected numbers"),
    ],
)
def test_invalid_settings_leave_nothing(setting: str, value: object, error: type[Exception], text: str) -> None:
    """An error of a setting reaches the caller before a thread starts."""
    with pytest.raises(error, match=text):
        LocalServer(**{setting: value})  # type: ignore[arg-type]
    assert not [thread for thread in threading.enumerate() if thread.name == "tinkerwire-testing"]
