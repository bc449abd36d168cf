"""Signal handlers may use clients at any point of the client's code: no lock causes a deadlock."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, ScriptedServer
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._telemetry.reporter import Telemetry

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="raises signals"),
]
CLIENT = os.path.dirname(tw.__file__)  # noqa: PTH120


class SignalAtLine:
    """Raises SIGUSR1 at one line of the client's code, the first being 0."""

    def __init__(self, number: int) -> None:
        self._remaining = number

    def __call__(self, frame: FrameType, event: str, argument: object) -> SignalAtLine | None:
        """Count a line; the interface of sys.settrace."""
        if not frame.f_code.co_filename.startswith(CLIENT):
            return None
        if event == "line":
            self._remaining -= 1
            if self._remaining == -1:
                signal.raise_signal(signal.SIGUSR1)
        return self


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Set the handler of SIGUSR1."""
    monkeypatch.setenv("TINKER_TELEMETRY", "1")
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda work: signal.signal(signal.SIGUSR1, lambda *_: work()) and None
    signal.signal(signal.SIGUSR1, before)


def find_reporter(client: tw.ServiceClient) -> Telemetry:
    """Return the reporter of a client, which these tests enable."""
    telemetry_client = client.get_telemetry()
    assert telemetry_client is not None
    return telemetry_client


def list_calls(client: tw.ServiceClient, server: ScriptedServer) -> dict[str, Callable[[], object]]:
    """Return the public methods that are interrupted, and that the handler calls."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    telemetry = find_reporter(client)

    def open_and_use() -> None:
        with open_client(server.url) as second_client:
            second_client.get_server_capabilities()

    return {
        "log": lambda: telemetry.log("event", {"key": "value"}),
        "log_exception": lambda: telemetry.log_exception(ValueError("text")),
        "operation": lambda: training.optim_step(ADAM).result(TEST_TIMEOUT_S),
        "sample": lambda: sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S),
        "gather": lambda: tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(2)]).result(TEST_TIMEOUT_S),
        "as_completed": lambda: list(tw.as_completed([sampling.sample(PROMPT, 1, PARAMS)], progress=True)),
        "handle": lambda: tw.SamplingClient.from_sampler_handle(sampling.get_sampler_handle(), api_key="tml-x"),
        "usage": lambda: (client.usage, training.usage, sampling.load, repr(client)),
        "open": open_and_use,
    }


@pytest.mark.parametrize(
    "name", ["log", "log_exception", "operation", "sample", "gather", "as_completed", "handle", "usage", "open"]
)
def test_handler_may_call_interrupted_method(
    server: ScriptedServer, name: str, handle: Callable[[Callable[[], object]], None]
) -> None:
    """A handler that calls the same method at each line of it gets the result, and so does the interrupted call."""
    with open_client(server.url) as client:
        call = list_calls(client, server)[name]
        handled: list[Any] = []

        def work() -> None:
            call()
            handled.append(None)

        handle(work)
        call()
        before = sys.gettrace()
        for number in itertools.count():
            number_before = len(handled)
            sys.settrace(SignalAtLine(number))
            try:
                call()
            finally:
                sys.settrace(before)
            if len(handled) == number_before:
                break
        assert number > 3


def test_handler_may_open_client_while_client_is_opened(
    server: ScriptedServer, handle: Callable[[Callable[[], object]], None]
) -> None:
    """Opening the first client is interrupted at each line by a client that is opened, used and closed."""
    used: list[None] = []

    def use() -> None:
        with open_client(server.url) as client:
            for call in list_calls(client, server).values():
                call()
        used.append(None)

    handle(use)
    before = sys.gettrace()
    # Every third line: each opens and uses a client.
    for number in itertools.count(0, 3):
        number_before = len(used)
        sys.settrace(SignalAtLine(number))
        try:
            client = tw.ServiceClient(base_url=server.url, api_key="tml-x", wire_version="0.16.1")
        finally:
            sys.settrace(before)
        client.get_server_capabilities()
        client.close().result(TEST_TIMEOUT_S)
        wait_until(lambda: LOOP._loop is None, "the loop ends with its last user")
        if len(used) == number_before:
            break
    assert number > 10


def test_sources_have_reentrant_locks_only() -> None:
    """The sources have no threading.Lock, and no Condition or Semaphore made from one."""
    non_reentrant = re.compile(r"threading\.(Lock|Semaphore|BoundedSemaphore|Barrier)\(|queue\.(Queue|LifoQueue)\(")
    places = [
        f"{path.name}:{number}"
        for folder in ("tinkerwire", "tinkerwire_base")
        for path in (Path(CLIENT).parent / folder).rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if non_reentrant.search(line)
    ]
    assert not places
