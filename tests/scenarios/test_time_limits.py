"""Tests of time limits: every wait of an operation ends at its deadline, for any number of seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, datum, open_client
from support.scripted import (
    TEST_TIMEOUT_S,
    Gate,
    RecordedRequest,
    ScriptedResponse,
    ScriptedServer,
    in_order,
    scripted_server,
)
from tinkerwire._futures.deadline import clamp_timeout
from tinkerwire._transport import backpressure
from tinkerwire._transport.backpressure import Traffic

pytestmark = pytest.mark.timeout(110)
EXTREME_SECONDS = [0, 0.0, -0.0, 5e-324, 1e-9, 1e-4, -1, -1e300, -(10**400), math.nan, math.inf, -math.inf]
ANY_SECONDS = st.one_of(
    st.sampled_from(EXTREME_SECONDS),
    st.floats(max_value=0.02),
    st.integers(max_value=0),
)
"""Short limits, limits without effect, and invalid limits."""
ENDLESS = [1e300, 2**63, 10**300, math.inf]


@pytest.fixture(scope="module")
def silent_server() -> Iterator[ScriptedServer]:
    """Run a server that accepts every request and never responds."""
    gate = Gate()
    with scripted_server() as scripted:
        scripted.healthy_response = lambda _: ScriptedResponse({}, gate=gate)  # type: ignore[method-assign]
        yield scripted
        gate.release()


def send_single_request(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Return an operation of one request."""
    return client.create_rest_client().list_training_runs()


@pytest.mark.parametrize("kind", ["builtin", "httpx"])
@given(seconds=ANY_SECONDS)
@example(seconds=0)
@example(seconds=1e-9)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_progress_timeout_ends_an_operation_on_a_silent_server(
    silent_server: ScriptedServer, kind: str, seconds: float
) -> None:
    """Any number as the limit raises RequestTimeoutError, or is rejected as an argument."""
    try:
        policy = tw.RetryConfig(progress_timeout=seconds, retry_delay_base=0.001, retry_delay_max=0.001)
    except (ValueError, TypeError) as error:
        assert "progress_timeout" in str(error) or "integer string conversion" in str(error)
        assert not seconds >= 0
        return
    if seconds == math.inf:
        return
    http = httpx.AsyncClient() if kind == "httpx" else None
    with (
        open_client(silent_server.url, retry=policy, http_client=http) as client,
        pytest.raises(tw.RequestTimeoutError, match=r"RetryConfig\.progress_timeout="),
    ):
        send_single_request(client).result(TEST_TIMEOUT_S)


@given(seconds=ANY_SECONDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_timeout_of_a_future_expires_or_is_rejected(silent_server: ScriptedServer, seconds: float) -> None:
    """``result``, ``exception``, ``as_completed`` and ``sample`` time out or reject the number."""
    with open_client(silent_server.url) as client:
        future = send_single_request(client)
        if seconds != math.inf:
            for wait in (future.result, future.exception, lambda s: list(tw.as_completed([future], timeout=s))):
                with pytest.raises((TimeoutError, ValueError)):
                    wait(seconds)
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises((TimeoutError, ValueError)):
                sampling.sample(PROMPT, 1, PARAMS, timeout=seconds).result(TEST_TIMEOUT_S)
        assert not future.done()


@pytest.mark.parametrize("seconds", ENDLESS)
@pytest.mark.parametrize("kind", ["builtin", "httpx"])
def test_infinite_limits_never_expire(server: ScriptedServer, kind: str, seconds: float) -> None:
    """Infinity and numbers beyond the range of threads and timers work as no limit."""
    policy = tw.RetryConfig(progress_timeout=seconds, max_elapsed=seconds, retry_delay_base=0.001)
    http = httpx.AsyncClient() if kind == "httpx" else None
    server.rules["asample"] = in_order(ScriptedResponse({}, status=500), server.healthy_response)
    with open_client(server.url, retry=policy, http_client=http) as client:
        sampling = client.create_sampling_client(base_model="base").result(seconds)
        future = sampling.sample(PROMPT, 1, PARAMS, timeout=seconds)
        assert len(list(tw.as_completed([future], timeout=seconds))) == 1
        assert future.result(seconds).sequences
        assert future.exception(seconds) is None


@given(st.one_of(st.none(), st.floats(), st.integers(), st.sampled_from(EXTREME_SECONDS)))
def test_libraries_receive_only_finite_positive_timeouts(seconds: float | None) -> None:
    """Libraries never receive zero, negative, infinite or NaN seconds; None stands only for no limit."""
    clamped = clamp_timeout(seconds)
    if clamped is None:
        assert seconds is None or seconds > 1e9
    else:
        assert 0 < clamped < 1e12
        assert isinstance(clamped, float)


@pytest.mark.parametrize("kind", ["builtin", "httpx"])
def test_wait_for_connection_ends_at_deadline_of_operation(
    server: ScriptedServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred calls over two connections to a silent server all end at their own limit."""
    monkeypatch.setitem(backpressure.CONNECTIONS, Traffic.REST, 2)
    gate = Gate()
    server.rules["training_runs"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    policy = tw.RetryConfig(progress_timeout=1.0, enable_retry_logic=False)
    http = httpx.AsyncClient() if kind == "httpx" else None
    with open_client(server.url, retry=policy, http_client=http) as client:
        start = time.monotonic()
        futures = [send_single_request(client) for _ in range(100)]
        for future in futures:
            assert isinstance(future.exception(TEST_TIMEOUT_S), tw.RequestTimeoutError)
        # One after the other they would take 50 s.
        assert time.monotonic() - start < 25.0
        assert server.peak["training_runs"] == 2
        gate.release()
        # The places come back: later calls have both connections.
        server.rules.clear()
        for future in [send_single_request(client) for _ in range(10)]:
            assert future.result(TEST_TIMEOUT_S) is not None


def hold_responses(name: str) -> Callable[[ScriptedServer, Gate], None]:
    """Return a rule that holds the responses to one path."""

    def prepare(server: ScriptedServer, gate: Gate) -> None:
        server.rules[name] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)

    return prepare


def hold_polls(kind: str) -> Callable[[ScriptedServer, Gate], None]:
    """Return a rule that holds the polls of one kind of request."""
    return lambda server, gate: server.on_poll(kind, lambda _: ScriptedResponse({}, gate=gate))


def make_pending_poll_rules(server: ScriptedServer, _: Gate) -> None:
    """Return rules of a server that never has a result."""
    server.on_poll("Sample", lambda _: ScriptedResponse({"type": "try_again"}))


def make_busy_rule(name: str, status: int, wait_s: str) -> Callable[[ScriptedServer, Gate], None]:
    """Return a rule that always requests a long wait."""
    return lambda server, _: server.rules.update(
        {name: lambda _: ScriptedResponse({}, status=status, headers={"retry-after": wait_s})}
    )


def make_batched_rules(server: ScriptedServer, gate: Gate) -> None:
    """Return rules of a server that offers batched polling and never reports a finished sample."""

    def config(_: RecordedRequest) -> ScriptedResponse:
        return ScriptedResponse({"sample_use_retrieve_futures": True})

    server.rules["client/config"] = config
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse({}, gate=gate)


def sample_once(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Sample from a new sampling client."""
    return client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)


def step_once(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Run a step of a new model."""
    return client.create_lora_training_client("base").optim_step(ADAM)


def submit_batch_once(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Run a batch of a new model."""
    return client.create_lora_training_client("base").forward_backward([datum()], "cross_entropy")


def sample_behind_another(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Sample while another sample holds the only slot."""
    sampling = client.create_sampling_client(base_model="base")
    sampling.sample(PROMPT, 1, PARAMS).mark_retrieved()
    return sampling.sample(PROMPT, 1, PARAMS)


WAITS: dict[str, tuple[Callable[[ScriptedServer, Gate], None], Callable[[tw.ServiceClient], tw.APIFuture[Any]]]] = {
    "discovery": (hold_responses("client/config"), send_single_request),
    "discovery, for a batch": (hold_responses("client/config"), submit_batch_once),
    "the session": (hold_responses("create_session"), sample_once),
    "the sampler": (hold_responses("create_sampling_session"), sample_once),
    "the model": (hold_polls("CreateModel"), step_once),
    "a submission": (hold_responses("optim_step"), step_once),
    "a sample's submission": (hold_responses("asample"), sample_once),
    "a poll": (hold_polls("ForwardBackward"), submit_batch_once),
    "polls without a result": (make_pending_poll_rules, sample_once),
    "batched polls": (make_batched_rules, sample_once),
    "a place in flight": (hold_polls("Sample"), sample_behind_another),
    "resends": (make_busy_rule("optim_step", 503, "0.4"), step_once),
    "a busy sampler": (make_busy_rule("asample", 429, "0.4"), sample_once),
    "a busy poll": (lambda server, _: server.on_poll("Sample", make_busy_response), sample_once),
}


def make_busy_response(_: RecordedRequest) -> ScriptedResponse:
    """Return a response that requests a long wait."""
    return ScriptedResponse({}, status=503, headers={"retry-after": "50"})


@pytest.mark.parametrize("name", WAITS)
def test_every_wait_ends_at_the_deadline(server: ScriptedServer, name: str) -> None:
    """At any stage, an operation ends at its deadline with an error that names the stage."""
    prepare, operation = WAITS[name]
    gate = Gate()
    prepare(server, gate)
    policy = tw.RetryConfig(
        progress_timeout=1.0, retry_delay_base=0.3, max_connections=1, max_attempts=1000, max_elapsed=10_000
    )
    try:
        with open_client(server.url, retry=policy, wire_version=None) as client:
            start = time.monotonic()
            error = operation(client).exception(TEST_TIMEOUT_S)
            assert time.monotonic() - start < 20.0
    finally:
        gate.release()
    # A wait that would end after the deadline is not begun: then it is the server's own error, and it is there sooner.
    is_refused = name in ("resends", "a busy sampler") and isinstance(error, tw.APIStatusError)
    assert isinstance(error, tw.RequestTimeoutError) or is_refused
    assert isinstance(error, TimeoutError) or is_refused


def test_slow_credential_ends_at_deadline_of_operation(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow credential command ends with the operation that waits for it, and no seq_id is lost."""
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "sleep 30")
    policy = tw.RetryConfig(progress_timeout=0.5)
    with (
        tw.ServiceClient(base_url=server.url, wire_version="0.16.1", retry=policy) as client,
        pytest.raises(tw.RequestTimeoutError),
    ):
        send_single_request(client).result(TEST_TIMEOUT_S)
    assert not server.requests


def test_deadline_loses_no_seq_id(server: ScriptedServer) -> None:
    """After a submission without a response, the next operation has the number that the server expects."""
    gate = Gate()
    server.rules["optim_step"] = in_order(ScriptedResponse({}, gate=gate), server.healthy_response)
    with ExitStack() as stack:
        policy = tw.RetryConfig(progress_timeout=1.0, enable_retry_logic=False)
        client = stack.enter_context(open_client(server.url, retry=policy))
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        with pytest.raises(tw.RequestTimeoutError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        gate.release()
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert [body["seq_id"] for body in server.bodies("optim_step")] == [1, 2]


def test_deadline_does_not_cancel_a_shared_session_creation(server: ScriptedServer) -> None:
    """A sample without a limit gets the session that a sample with a short limit requested first."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with open_client(server.url, retry=FAST) as client:
        sampling = client.create_sampling_client(base_model="base")
        patient = sampling.sample(PROMPT, 1, PARAMS)
        with pytest.raises(tw.RequestTimeoutError, match=r"timeout=0\.2 s"):
            sampling.sample(PROMPT, 1, PARAMS, timeout=0.2).result(TEST_TIMEOUT_S)
        assert not patient.done()
        gate.release()
        assert patient.result(TEST_TIMEOUT_S).sequences


def test_error_names_request_setting_and_queue(server: ScriptedServer) -> None:
    """The error names the request, the limit, the queue state, and that the server may continue."""
    paused = ScriptedResponse({"type": "try_again", "queue_state": "paused_capacity", "queue_state_reason": "no GPUs"})
    server.on_poll("OptimStep", lambda _: paused)
    policy = tw.RetryConfig(progress_timeout=0.5)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.RequestTimeoutError) as caught:
        step_once(client).result(TEST_TIMEOUT_S)
    assert caught.value.request_id.startswith("optim_step/")
    for part in (
        "OptimStep optim_step/",
        "RetryConfig.progress_timeout=0.5 s",
        "paused_capacity: no GPUs",
        "may still",
    ):
        assert part in str(caught.value)
