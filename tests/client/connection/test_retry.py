"""Tests of resends: the requests that a server receives, their number, keys and seq_ids, and the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, Pending, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)


def run_step(client: tw.ServiceClient) -> Pending:
    return client.create_lora_training_client("base").result(TEST_TIMEOUT_S).optim_step(ADAM)


def sample(client: tw.ServiceClient) -> Pending:
    return client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)


def create_model(client: tw.ServiceClient) -> tw.TrainingClient:
    return client.create_lora_training_client("base")


def list_runs(client: tw.ServiceClient) -> Pending:
    # Over a connection that is kept alive, many HTTP clients would resend a GET on their own.
    client.get_server_capabilities()
    return client.create_rest_client().list_training_runs()


def delete_checkpoint(client: tw.ServiceClient) -> Pending:
    client.get_server_capabilities()
    return client.create_rest_client().delete_checkpoint("m1", "weights/a")


def get_archive_url(client: tw.ServiceClient) -> Pending:
    client.get_server_capabilities()
    return client.create_rest_client().get_checkpoint_archive_url("m1", "weights/a")


Operation = Callable[[tw.ServiceClient], Pending]
OPERATIONS: dict[str, Operation] = {
    "optim_step": run_step,
    "save_weights_for_sampler": lambda client: create_model(client).save_weights_and_get_sampling_client(),
    "asample": sample,
    "create_session": create_model,
    "create_model": create_model,
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base"),
    "training_runs": list_runs,
    "training_runs/m1/checkpoints/weights/a": delete_checkpoint,
    "training_runs/m1/checkpoints/weights/a/archive": get_archive_url,
}
"""Operation by the path of the request that fails."""
FAILURES = {
    "500": ScriptedResponse({"detail": "broken"}, status=500),
    "dropped": ScriptedResponse(drop=True),
    "409": ScriptedResponse(status=409),
    "408": ScriptedResponse(status=408),
}


@pytest.mark.parametrize("response", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize(("name", "operation"), OPERATIONS.items(), ids=OPERATIONS)
def test_failing_operation_makes_max_attempts_requests(
    server: ScriptedServer, name: str, operation: Operation, response: ScriptedResponse
) -> None:
    """All requests have the same bytes and the same idempotency key."""
    server.rules[name] = lambda _: response
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=3)) as client, pytest.raises(tw.APIError):
        operation(client).result(TEST_TIMEOUT_S)
    requests = server.named(name)
    assert len(requests) == 3
    assert len({str(request.body) for request in requests}) == 1
    keys = {request.headers.get("x-idempotency-key") for request in requests}
    assert len(keys) == 1
    assert (keys == {None}) == (requests[0].method == "GET")


def test_resends_consume_no_seq_id(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """An operation that is sent three times has one seq_id, and the next operations have the next ones."""
    for name in ("save_weights_for_sampler", "create_sampling_session", "asample"):
        server.rules[name] = in_order(
            ScriptedResponse(drop=True), ScriptedResponse(status=500), server.healthy_response
        )
    training = client.create_lora_training_client("base")
    for _ in range(2):
        training.save_weights_and_get_sampling_client().result(TEST_TIMEOUT_S)
    sampling = client.create_sampling_client(base_model="base")
    for _ in range(2):
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
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
            client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert caught.value.status_code == 402
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_operations_have_distinct_idempotency_keys(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Equal operations have different keys as well."""
    training = client.create_lora_training_client("base")
    sampling = client.create_sampling_client(base_model="base")
    futures: list[Pending] = [training.optim_step(ADAM) for _ in range(10)]
    futures += [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    keys = [request.headers["x-idempotency-key"] for request in server.requests]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 422])
@pytest.mark.parametrize("name", ["optim_step", "asample", "create_session"])
def test_4xx_is_not_retried(server: ScriptedServer, client: tw.ServiceClient, name: str, status: int) -> None:
    """A 4xx other than 408, 409 and 429 fails the operation after one request."""
    server.rules[name] = lambda _: ScriptedResponse({"detail": "your mistake"}, status=status)
    with pytest.raises(tw.TinkerError, match="your mistake") as caught:
        OPERATIONS[name](client).result(TEST_TIMEOUT_S)
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
        run_step(client).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 1


def test_should_retry_header_overrides_status(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The header x-should-retry makes a 500 final and a 404 retryable."""
    server.rules["optim_step"] = lambda _: ScriptedResponse({}, status=500, headers={"x-should-retry": "false"})
    with pytest.raises(tw.InternalServerError):
        run_step(client).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 1
    server.rules["asample"] = in_order(
        ScriptedResponse({}, status=404, headers={"x-should-retry": "true"}), server.healthy_response
    )
    sample(client).result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == 2


@pytest.mark.parametrize(("name", "operation"), OPERATIONS.items(), ids=OPERATIONS)
def test_disabled_retries_send_once(server: ScriptedServer, name: str, operation: Operation) -> None:
    """With enable_retry_logic=False every operation is sent once."""
    server.rules[name] = lambda _: ScriptedResponse({}, status=503)
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.InternalServerError):
        operation(client).result(TEST_TIMEOUT_S)
    assert len(server.named(name)) == 1


def test_resend_after_lost_response_keeps_seq_id_and_key(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A server that accepted the first request does not train twice."""
    server.rules["optim_step"] = in_order(ScriptedResponse(drop=True), server.healthy_response)
    run_step(client).result(TEST_TIMEOUT_S)
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
        run_step(client).result(TEST_TIMEOUT_S)
        assert not caplog.records
        server.rules["optim_step"] = in_order(
            *[ScriptedResponse({"detail": "disk full"}, status=500)] * 3, server.healthy_response
        )
        run_step(client).result(TEST_TIMEOUT_S)
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
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        training = client.create_lora_training_client("base")
        server.wait_for_requests("create_session")
        assert not caplog.records
        pass_time(10.0)
        gate.release()
        training.result(TEST_TIMEOUT_S)
    silence = f"POST {server.url}/api/v1/create_session: no response yet to attempt 1"
    assert re.search(rf"CreateModel: no result after \d+ s; {silence}", caplog.text)


def test_client_waits_for_retry_after(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Between two attempts lies at least the time of Retry-After."""

    def rule(request: RecordedRequest) -> ScriptedResponse:
        is_first = len(server.named("optim_step")) == 1
        return (
            ScriptedResponse({}, status=503, headers={"retry-after": "0.3"})
            if is_first
            else server.healthy_response(request)
        )

    server.rules["optim_step"] = rule
    run_step(client).result(TEST_TIMEOUT_S)
    first, second = server.named("optim_step")
    assert second.time - first.time >= 0.3


def test_retryable_exceptions_extend_or_limit_retries(server: ScriptedServer) -> None:
    """An error class in ``retryable_exceptions`` is retried; without APIConnectionError, a lost response is not."""
    lost_response = ScriptedResponse(drop=True)
    for exceptions, rule, is_retried in (
        ((tw.APIConnectionError, tw.NotFoundError), ScriptedResponse({"detail": "not yet"}, status=404), True),
        ((tw.APIConnectionError,), lost_response, True),
        ((), lost_response, False),
        ((), ScriptedResponse({"detail": "busy"}, status=503), True),
    ):
        before = len(server.named("optim_step"))
        server.rules["optim_step"] = in_order(rule, server.healthy_response)
        policy = tw.RetryConfig(retry_delay_base=0.001, retryable_exceptions=exceptions)
        with open_client(server.url, retry=policy) as client:
            step = client.create_lora_training_client("base").optim_step(tw.AdamParams())
            if is_retried:
                step.result(TEST_TIMEOUT_S)
            else:
                with pytest.raises(tw.APIConnectionError):
                    step.result(TEST_TIMEOUT_S)
        assert len(server.named("optim_step")) - before == 1 + is_retried, exceptions


def test_disabled_stuck_detection_ignores_progress_timeout(
    server: ScriptedServer, pass_time: Callable[[float], None]
) -> None:
    """A result that arrives after progress_timeout is returned."""
    released: list[bool] = []
    server.on_poll(
        "OptimStep", lambda request: server.healthy_response(request) if released else ScriptedResponse(status=408)
    )
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50, enable_stuck_detection=False)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= 2, "polls")
        pass_time(50)
        polls = len(server.polls("OptimStep"))
        server.wait_for(lambda: len(server.polls("OptimStep")) >= polls + 2, "polls after the limit")
        released.append(True)
        step.result(TEST_TIMEOUT_S)
