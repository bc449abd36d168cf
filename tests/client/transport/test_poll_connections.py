"""Connections for the polls of samples: their number, their reservation, and errors at the machine's limits."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support import virtual_time
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._transport import poll_connections
from tinkerwire._transport.backpressure import InFlightLimit
from tinkerwire._transport.errors import connection_error
from tinkerwire._transport.poll_connections import PollConnections, PollLimit, find_poll_limit, poll_connections_of
from tinkerwire_base.call import WireRequest

LIMITED_FILES = 400


def start_samples(client: tw.ServiceClient, number: int) -> list[tw.APIFuture[Any]]:
    """Start samples and return their futures."""
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    return [sampling.sample(PROMPT, 1, PARAMS) for _ in range(number)]


def start_steps(client: tw.ServiceClient, number: int) -> list[tw.APIFuture[Any]]:
    """Start optimizer steps and return their futures."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    return [training.optim_step(ADAM) for _ in range(number)]


@pytest.mark.parametrize(("kind", "number", "start"), [("Sample", 300, start_samples), ("OptimStep", 150, start_steps)])
def test_finished_operations_do_not_wait_for_unfinished_ones(
    server: ScriptedServer, kind: str, number: int, start: Callable[[tw.ServiceClient, int], list[tw.APIFuture[Any]]]
) -> None:
    """With hundreds of polls held, the result of the operation that is polled last arrives at once."""
    gate = Gate()
    polled: list[str] = []

    def poll(request: RecordedRequest) -> ScriptedResponse:
        polled.append(request.body["request_id"])
        response = server.healthy_response(request)
        return response if len(set(polled)) == number else ScriptedResponse(response.body, gate=gate)

    server.on_poll(kind, poll)
    with open_client(server.url) as client:
        futures = start(client, number)
        server.wait_for(lambda: sum(future.done() for future in futures) == 1, "the finished operation")
        gate.release()
        for future in futures:
            future.result(TEST_TIMEOUT_S)


def test_samples_in_flight_do_not_slow_polls_of_training(server: ScriptedServer) -> None:
    """Steps keep their own pauses between polls, and do not show whether the server holds polls of samples."""
    server.on_poll("OptimStep", in_order(*[ScriptedResponse(status=408)] * 3, server.healthy_response))
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        sample_polls = client._connection.poll_connections
        sample_polls.reserved = 10**9
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert sample_polls.are_held


PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import tinkerwire as tw
with tw.ServiceClient(base_url=sys.argv[1], api_key="tml-test") as client:
    sampling = client.create_sampling_client(base_model="base").result()
    prompt = tw.ModelInput.from_ints([1])
    futures = [sampling.sample(prompt, 1, tw.SamplingParams(max_tokens=1)) for _ in range(int(sys.argv[3]))]
    for future in futures:
        future.result()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files per process")
def test_samples_in_flight_stay_within_the_open_files(server: ScriptedServer) -> None:
    """A process that may open few files submits as many samples as it can poll, completes all, and names the limit."""
    in_flight = peak = 0

    def submit(request: RecordedRequest) -> ScriptedResponse:
        nonlocal in_flight, peak
        in_flight += 1
        peak = max(peak, in_flight)
        return server.healthy_response(request)

    def poll(request: RecordedRequest) -> ScriptedResponse:
        nonlocal in_flight
        in_flight -= 1
        return ScriptedResponse(server.healthy_response(request).body, delay_s=0.5)

    server.rules["asample"] = submit
    server.on_poll("Sample", poll)
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.url, str(LIMITED_FILES), str(LIMITED_FILES)],
        capture_output=True,
        text=True,
        timeout=TEST_TIMEOUT_S,
        check=True,
        env={**os.environ, "TINKER_TELEMETRY": "0"},
    )
    assert f"a process may open {LIMITED_FILES} files" in process.stderr
    assert 0 < peak < LIMITED_FILES
    assert len(server.named("asample")) == LIMITED_FILES


@given(
    number=st.integers(1, 5),
    samples=st.lists(st.tuples(st.integers(0, 1), st.floats(0, 5), st.floats(0, 5), st.booleans()), max_size=30),
)
def test_clients_share_the_reservations_of_a_transport(
    number: int, samples: list[tuple[int, float, float, bool]]
) -> None:
    """Two limits never have more samples in flight than there are connections, and every sample has its turn."""
    peak = done = 0

    async def run() -> None:
        polls = PollConnections(PollLimit(number, "a test"))
        limits = [InFlightLimit(4), InFlightLimit(None)]

        async def sample(limit: InFlightLimit, arrives: float, runs: float) -> None:
            nonlocal peak, done
            await asyncio.sleep(arrives)
            async with limit.slot(polls) as slot:
                slot.sent()
                peak = max(peak, polls.reserved)
                await asyncio.sleep(runs)
            done += 1

        tasks = []
        for index, arrives, runs, is_cancelled in samples:
            task = asyncio.ensure_future(sample(limits[index], arrives, runs))
            tasks.append(task)
            if is_cancelled:
                asyncio.get_running_loop().call_later(arrives + runs / 2, task.cancel)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        cancelled = sum(isinstance(result, asyncio.CancelledError) for result in results)
        assert done + cancelled == len(samples)
        assert (polls.reserved, limits[0].in_flight, limits[1].in_flight) == (0, 0, 0)

    virtual_time.run(run())
    assert peak <= number


def test_servers_that_do_not_hold_polls_need_no_reservation() -> None:
    """The first poll that returns at once without a result admits the samples that waited for a connection."""

    async def run() -> list[int]:
        polls, limit = PollConnections(PollLimit(1, "a test")), InFlightLimit(None)
        in_flight = []

        async def sample() -> None:
            async with limit.slot(polls):
                await asyncio.sleep(100)

        tasks = [asyncio.ensure_future(sample()) for _ in range(5)]
        for was_held in (True, False):
            polls.observe(was_held=was_held)
            await asyncio.sleep(1)
            in_flight.append(limit.in_flight)
        await asyncio.gather(*tasks)
        return in_flight

    assert virtual_time.run(run()) == [1, 5]


@pytest.mark.parametrize(
    ("files", "open_files", "ports", "expected", "words"),
    [
        (1024, 21, "32768\t60999\n", 670, "1,024 files"),
        (1_048_576, 100, "32768\t60999\n", 25_408, "28,232 ports"),
        (None, 0, "", 14_745, "16,384 ports"),
        (256, 50, "32768\t60999\n", 16, "256 files"),
    ],
)
def test_poll_limit_is_the_smallest_limit_of_the_machine(
    files: int | None,
    open_files: int,
    ports: str,
    expected: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Nine tenths of the files or ports, without those in use or kept for other requests, can carry polls."""
    (tmp_path / "range").write_text(ports)
    monkeypatch.setattr(poll_connections, "PORT_RANGE", tmp_path / "range")
    monkeypatch.setattr(poll_connections, "_max_open_files", lambda: files)
    monkeypatch.setattr(poll_connections, "_count_open_files", lambda: open_files)
    limit = find_poll_limit(230)
    assert limit.number == expected
    assert words in limit.reason


@pytest.mark.parametrize(("number", "words"), [(errno.EMFILE, "ulimit -n"), (errno.EADDRNOTAVAIL, "free port")])
def test_errors_at_the_limits_of_the_machine_name_the_way_out(number: int, words: str) -> None:
    """The error of a connection without a file or a port names how to get one."""
    request = WireRequest(method="POST", path="/x", query=(), headers={}, content=None)
    error = connection_error(request, "http://h", OSError(number, os.strerror(number)))
    assert words in str(error)
    assert isinstance(error.__cause__, OSError)


def test_transports_of_users_have_no_limit() -> None:
    """A transport without poll connections carries any number of samples."""
    polls = poll_connections_of(object())
    for _ in range(100_000):
        assert polls.has_free
        polls.reserve()
