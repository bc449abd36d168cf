"""The retry policy: decisions, delays and numbers of attempts, as functions and as a server sees them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection.retry import retry_after
from tinkerwire._connection.retry_rules import Decision, Loop, find_rule
from tinkerwire._futures import operation_record
from tinkerwire_base.errors import ResponseInfo, status_error

pytestmark = pytest.mark.timeout(60)
POLICIES = st.builds(
    tw.RetryConfig,
    retry_delay_base=st.floats(0, 10),
    retry_delay_max=st.floats(0, 100),
    jitter_factor=st.floats(0, 1),
    max_attempts=st.integers(1, 20),
    max_elapsed=st.floats(0, 1000),
    progress_timeout=st.floats(0, 1000),
    retry_after_max=st.floats(0, 100),
)


def make_status_error(status: int, **headers: str) -> tw.APIStatusError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status_error(status)("x", response=ResponseInfo(status_code=status, headers=names))


def is_retryable(error: tw.TinkerError) -> bool:
    return find_rule(Loop.REQUEST, error).decision is Decision.RETRY


ERRORS = st.one_of(
    st.just(tw.APIConnectionError(message="x")),
    st.just(tw.APITimeoutError(message="x")),
    st.integers(400, 599).map(make_status_error),
    st.builds(lambda s: make_status_error(429, retry_after=str(s)), st.floats(0, 1e6)),
)


@given(POLICIES, ERRORS, st.integers(1, 30), st.floats(0, 2000))
def test_delay_respects_all_limits(policy: tw.RetryConfig, error: tw.TinkerError, attempt: int, elapsed: float) -> None:
    """No delay is negative, too long, past max_attempts, or past the time limit of the operation."""
    wait = policy.wait_before_retry(error, attempt, elapsed)
    if wait is None:
        return
    assert 0 <= wait <= max(policy.retry_delay_max, policy.retry_after_max)
    assert attempt < policy.max_attempts
    assert elapsed + wait <= min(policy.max_elapsed, policy.progress_timeout)
    assert is_retryable(error)


@given(POLICIES, st.integers(1, 2000))
def test_delays_double_up_to_maximum_with_jitter(policy: tw.RetryConfig, attempt: int) -> None:
    """The delay is base x 2^(n-1), at most the maximum, and shortened by at most the jitter."""
    full = min(policy.retry_delay_base * 2.0 ** min(attempt - 1, 60), policy.retry_delay_max)
    assert full * (1 - policy.jitter_factor) <= policy.delay(attempt) <= full


def test_default_delays() -> None:
    """The delays are 0.5, 1, 2, 4, 8 and then 10 s, each up to a quarter shorter, at random."""
    policy = tw.RetryConfig()
    waits = [policy.delay(attempt) for attempt in range(1, 8)]
    for wait, full in zip(waits, [0.5, 1, 2, 4, 8, 10, 10], strict=True):
        assert full * 0.75 <= wait <= full
    assert len({policy.delay(7) for _ in range(20)}) > 1


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 452), *range(500, 512), 599])
def test_retryable_statuses(status: int) -> None:
    """The client retries 408, 409, 429 and 5xx only, unless the header x-should-retry decides."""
    assert is_retryable(make_status_error(status)) == (status in (408, 409, 429) or status >= 500)
    assert is_retryable(make_status_error(status, x_should_retry="true"))
    assert is_retryable(make_status_error(status, x_should_retry="TRUE"))
    assert not is_retryable(make_status_error(status, x_should_retry="false"))
    assert is_retryable(make_status_error(status, x_should_retry="perhaps")) == is_retryable(make_status_error(status))


@pytest.mark.parametrize("category", list(tw.RequestErrorCategory))
def test_reported_failures_are_not_retried(category: tw.RequestErrorCategory) -> None:
    """An operation that the server reports as failed is final."""
    assert not is_retryable(tw.RequestFailedError("x", "r", category))
    assert not is_retryable(tw.RequestTimeoutError("x"))
    assert not is_retryable(tw.ClientClosedError("x"))
    assert is_retryable(tw.APITimeoutError())


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "20", "retry-after": "7"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_formats(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds take precedence over seconds and HTTP dates; invalid values are ignored."""
    assert retry_after(headers) == seconds


def test_retry_after_date_is_relative_to_now() -> None:
    """A date means the time until then, with or without a time zone."""
    then = datetime.now(timezone.utc) + timedelta(seconds=100)
    for text in (format_datetime(then, usegmt=True), format_datetime(then.replace(tzinfo=None))):
        found = retry_after({"retry-after": text})
        assert found is not None
        assert 60 < found <= 100


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text(max_size=40)))
def test_any_retry_after_header_is_parsed(headers: dict[str, str]) -> None:
    """Any header text leads to a number of seconds or None."""
    found = retry_after(headers)
    assert found is None or found >= 0


def test_retry_after_overrides_delay_up_to_limit() -> None:
    """A Retry-After header sets the delay, up to retry_after_max; zero is ignored."""
    policy = tw.RetryConfig(retry_delay_base=3.0, jitter_factor=0.0, retry_after_max=20.0)
    assert policy.wait_before_retry(make_status_error(429, retry_after="7"), 1, 0.0) == 7.0
    assert policy.wait_before_retry(make_status_error(503, retry_after="7000"), 1, 0.0) == 20.0
    assert policy.wait_before_retry(make_status_error(429, retry_after="0"), 1, 0.0) == 3.0
    assert policy.wait_before_retry(make_status_error(429), 1, 0.0) == 3.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_connections": 0},
        {"max_connections": -1},
        {"max_attempts": 0},
        {"jitter_factor": 1.5},
        {"jitter_factor": -0.1},
        {"progress_timeout": -1},
        {"retry_delay_base": -1},
    ],
)
def test_invalid_setting_is_named(wrong: dict[str, Any]) -> None:
    """An invalid policy raises an error that names the setting."""
    with pytest.raises(ValueError, match=f"RetryConfig.{next(iter(wrong))}"):
        tw.RetryConfig(**wrong)


def optim_step(client: tw.ServiceClient) -> Any:
    return client.create_lora_training_client("base").result(PATIENCE_S).optim_step(ADAM)


def sample(client: tw.ServiceClient) -> Any:
    return client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)


def model(client: tw.ServiceClient) -> Any:
    return client.create_lora_training_client("base")


def runs(client: tw.ServiceClient) -> Any:
    # A connection that is kept alive, over which aiohttp would resend a GET.
    client.get_server_capabilities()
    return client.create_rest_client().list_training_runs()


def delete(client: tw.ServiceClient) -> Any:
    client.get_server_capabilities()
    return client.create_rest_client().delete_checkpoint("m1", "weights/a")


def archive(client: tw.ServiceClient) -> Any:
    client.get_server_capabilities()
    return client.create_rest_client().get_checkpoint_archive_url("m1", "weights/a")


OPERATIONS: dict[str, Callable[[tw.ServiceClient], Any]] = {
    "optim_step": optim_step,
    "save_weights_for_sampler": lambda client: model(client).save_weights_and_get_sampling_client(),
    "asample": sample,
    "create_session": model,
    "create_model": model,
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base"),
    "training_runs": runs,
    "training_runs/m1/checkpoints/weights/a": delete,
    "training_runs/m1/checkpoints/weights/a/archive": archive,
}
ALWAYS = {
    "500": ScriptedResponse({"detail": "broken"}, status=500),
    "dropped": ScriptedResponse(drop=True),
    "409": ScriptedResponse(status=409),
    "408": ScriptedResponse(status=408),
}


@pytest.mark.parametrize("answer", ALWAYS.values(), ids=ALWAYS)
@pytest.mark.parametrize(("name", "operation"), OPERATIONS.items(), ids=OPERATIONS)
def test_failing_operation_makes_max_attempts_requests(
    server: ScriptedServer, name: str, operation: Callable[[tw.ServiceClient], Any], answer: ScriptedResponse
) -> None:
    """All requests have the same bytes and the same idempotency key."""
    server.rules[name] = lambda _: answer
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=3)) as client, pytest.raises(tw.APIError):
        operation(client).result(PATIENCE_S)
    asked = server.named(name)
    assert len(asked) == 3
    assert len({str(one.body) for one in asked}) == 1
    keys = {one.headers.get("x-idempotency-key") for one in asked}
    assert len(keys) == 1
    assert (keys == {None}) == (asked[0].method == "GET")


def test_resends_consume_no_seq_id(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """An operation that is sent three times has one seq_id, and the next operations have the next ones."""
    for name in ("save_weights_for_sampler", "create_sampling_session", "asample"):
        server.rules[name] = in_order(
            ScriptedResponse(drop=True), ScriptedResponse(status=500), server.healthy_response
        )
    training = client.create_lora_training_client("base")
    for _ in range(2):
        training.save_weights_and_get_sampling_client().result(PATIENCE_S)
    sampling = client.create_sampling_client(base_model="base")
    for _ in range(2):
        sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    saved = [(body["seq_id"], body["sampling_session_seq_id"]) for body in server.bodies("save_weights_for_sampler")]
    assert saved == [(1, 0)] * 3 + [(2, 1)]
    assert [body["sampling_session_seq_id"] for body in server.bodies("create_sampling_session")] == [2] * 3
    assert [body["seq_id"] for body in server.bodies("asample")] == [0] * 3 + [1]


@pytest.mark.parametrize("name", ["client/config", "create_session", "create_model", "optim_step"])
def test_402_raises_billing_error_without_losing_work(server: ScriptedServer, name: str) -> None:
    """At any stage a 402 raises BillingError with the server's text, and the client can continue."""
    server.rules["client/config"] = lambda _: ScriptedResponse({}, status=404)
    server.rules[name] = in_order(
        ScriptedResponse({"detail": "add funds first"}, status=402), *[server.rules.get(name, server.healthy_response)]
    )
    with open_client(server.url, wire_version=None) as client:
        with pytest.raises(tw.BillingError, match="add funds first") as caught:
            client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
        assert caught.value.status_code == 402
        client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)


def test_operations_have_distinct_idempotency_keys(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Equal operations have different keys, too."""
    training = client.create_lora_training_client("base")
    sampling = client.create_sampling_client(base_model="base")
    futures: list[Any] = [training.optim_step(ADAM) for _ in range(10)]
    futures += [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
    for future in futures:
        future.result(PATIENCE_S)
    keys = [asked.headers["x-idempotency-key"] for asked in server.asked]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 422])
@pytest.mark.parametrize("name", ["optim_step", "asample", "create_session"])
def test_4xx_is_not_retried(server: ScriptedServer, client: tw.ServiceClient, name: str, status: int) -> None:
    """A 4xx other than 408, 409 and 429 fails the operation after one request."""
    server.rules[name] = lambda _: ScriptedResponse({"detail": "your mistake"}, status=status)
    with pytest.raises(tw.TinkerError, match="your mistake") as caught:
        OPERATIONS[name](client).result(PATIENCE_S)
    is_expired = status == 410 and name != "create_session"
    assert isinstance(caught.value, tw.SessionExpiredError if is_expired else tw.APIStatusError)
    error = caught.value.__cause__ if is_expired else caught.value
    assert isinstance(error, tw.APIStatusError)
    assert error.status_code == status
    assert len(server.named(name)) == 1


@pytest.mark.parametrize("category", ["user", "server", "unknown"])
def test_failed_operation_is_submitted_once(server: ScriptedServer, client: tw.ServiceClient, category: str) -> None:
    """An operation that the server reports as failed is not resent, in any error category."""
    server.rules["retrieve_future"] = in_order(
        server.healthy_response, ScriptedResponse({"error": "no", "category": category})
    )
    with pytest.raises(tw.RequestFailedError):
        optim_step(client).result(PATIENCE_S)
    assert len(server.named("optim_step")) == 1


def test_should_retry_header_overrides_status(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The header x-should-retry makes a 500 final and a 404 retryable."""
    server.rules["optim_step"] = lambda _: ScriptedResponse({}, status=500, headers={"x-should-retry": "false"})
    with pytest.raises(tw.InternalServerError):
        optim_step(client).result(PATIENCE_S)
    assert len(server.named("optim_step")) == 1
    server.rules["asample"] = in_order(
        ScriptedResponse({}, status=404, headers={"x-should-retry": "true"}), server.healthy_response
    )
    sample(client).result(PATIENCE_S)
    assert len(server.named("asample")) == 2


@pytest.mark.parametrize(("name", "operation"), OPERATIONS.items(), ids=OPERATIONS)
def test_disabled_retries_send_once(
    server: ScriptedServer, name: str, operation: Callable[[tw.ServiceClient], Any]
) -> None:
    """With enable_retry_logic=False every operation is sent once."""
    server.rules[name] = lambda _: ScriptedResponse({}, status=503)
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.InternalServerError):
        operation(client).result(PATIENCE_S)
    assert len(server.named(name)) == 1


def test_resend_after_lost_response_keeps_seq_id_and_key(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A server that accepted the first request does not train twice."""
    server.rules["optim_step"] = in_order(ScriptedResponse(drop=True), server.healthy_response)
    optim_step(client).result(PATIENCE_S)
    first, second = server.named("optim_step")
    assert first.body == second.body
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]


def test_repeated_retries_are_logged(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names a server that keeps failing; a single failure is not logged."""
    client.get_server_capabilities()
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        server.rules["optim_step"] = in_order(ScriptedResponse({}, status=500), server.healthy_response)
        optim_step(client).result(PATIENCE_S)
        assert not caplog.records
        server.rules["optim_step"] = in_order(
            *[ScriptedResponse({"detail": "disk full"}, status=500)] * 3, server.healthy_response
        )
        optim_step(client).result(PATIENCE_S)
    assert len(caplog.records) == 1
    assert "disk full" in caplog.messages[0]
    assert "attempt 3 follows" in caplog.messages[0]


def test_missing_response_is_logged_after_ten_seconds(
    server: ScriptedServer,
    client: tw.ServiceClient,
    caplog: pytest.LogCaptureFixture,
    pass_time: Callable[[float], None],
) -> None:
    """A request without a response for ten seconds is logged long before its timeout."""
    assert operation_record.FIRST_WAIT_LOG_S == 10.0
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        training = client.create_lora_training_client("base")
        server.wait_for_requests("create_session")
        assert not caplog.records
        pass_time(10.0)
        hold.release()
        training.result(PATIENCE_S)
    silence = f"POST {server.url}/api/v1/create_session: no response yet to attempt 1"
    assert re.search(rf"CreateModel: no result after \d+ s; {silence}", caplog.text)


def test_client_waits_for_retry_after(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Between two attempts lies at least the time of Retry-After."""

    def rule(asked: RecordedRequest) -> ScriptedResponse:
        is_first = len(server.named("optim_step")) == 1
        return (
            ScriptedResponse({}, status=503, headers={"retry-after": "0.3"})
            if is_first
            else server.healthy_response(asked)
        )

    server.rules["optim_step"] = rule
    optim_step(client).result(PATIENCE_S)
    first, second = server.named("optim_step")
    assert second.time - first.time >= 0.3


def test_retryable_exceptions_extend_or_limit_retries(server: ScriptedServer) -> None:
    """An error class in ``retryable_exceptions`` is retried; without APIConnectionError, a lost response is not."""
    lost = ScriptedResponse(drop=True)
    for exceptions, rule, is_retried in (
        ((tw.APIConnectionError, tw.NotFoundError), ScriptedResponse({"detail": "not yet"}, status=404), True),
        ((tw.APIConnectionError,), lost, True),
        ((), lost, False),
        ((), ScriptedResponse({"detail": "busy"}, status=503), True),
    ):
        before = len(server.named("optim_step"))
        server.rules["optim_step"] = in_order(rule, server.healthy_response)
        policy = tw.RetryConfig(retry_delay_base=0.001, retryable_exceptions=exceptions)
        with open_client(server.url, retry=policy) as client:
            step = client.create_lora_training_client("base").optim_step(tw.AdamParams())
            if is_retried:
                step.result(PATIENCE_S)
            else:
                with pytest.raises(tw.APIConnectionError):
                    step.result(PATIENCE_S)
        assert len(server.named("optim_step")) - before == 1 + is_retried, exceptions


def test_disabled_stuck_detection_ignores_progress_timeout(
    server: ScriptedServer, pass_time: Callable[[float], None]
) -> None:
    """A result that arrives after progress_timeout is returned."""
    released: list[bool] = []
    server.on_poll(
        "OptimStep", lambda asked: server.healthy_response(asked) if released else ScriptedResponse(status=408)
    )
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50, enable_stuck_detection=False)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= 2, "polls")
        pass_time(50)
        asked = len(server.polls("OptimStep"))
        server.wait_for(lambda: len(server.polls("OptimStep")) >= asked + 2, "polls after the limit")
        released.append(True)
        step.result(PATIENCE_S)
