"""Polls: every response that a server may give to a poll, and the result or error that follows."""

from __future__ import annotations

import asyncio
import math
import pickle
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.optim_steps import NOT_READY, OPTIM_STEP_RESULT, step_error, step_metrics
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._polling.pending_result import PendingResult
from tinkerwire._polling.poller import fetch_result
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._wire.server_futures import DeferredResult
from tinkerwire_base.call import PROTOBUF

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    "response",
    [
        ScriptedResponse(b"", status=408),
        ScriptedResponse({"queue_state": "paused_capacity"}, status=408),
        ScriptedResponse(b"null", status=408),
        ScriptedResponse(["unexpected"], status=408),
        ScriptedResponse({"type": "try_again", "request_id": "r", "queue_state": "active"}),
        ScriptedResponse({"type": "try_again"}),
        ScriptedResponse({"error": "busy"}, status=500),
        ScriptedResponse(b"<html>", status=502),
        ScriptedResponse(b"", status=503),
        ScriptedResponse({}, status=599),
        ScriptedResponse({"detail": "slow down"}, status=429),
        ScriptedResponse({"detail": "no funds"}, status=402),
        ScriptedResponse({}, status=429, headers={"retry-after-ms": "5"}),
        ScriptedResponse({}, status=404, headers={"x-should-retry": "true"}),
        ScriptedResponse(drop=True),
        ScriptedResponse(raw=b"not HTTP at all\r\n\r\n"),
    ],
    ids=str,
)
def test_poll_continues_after_not_ready_and_transient_errors(
    server: ScriptedServer, training: tw.TrainingClient, response: ScriptedResponse
) -> None:
    """The client polls again after "not ready", overload, a broken connection and 5xx, and returns the result."""
    assert step_metrics(server, training, response, response, OPTIM_STEP_RESULT) == {"x:mean": 1.0}
    assert len(server.polls("OptimStep")) == 3


def test_poll_identifies_its_request_and_has_a_unique_key(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Each poll names request, kind and iteration, and has a unique idempotency key."""
    step_metrics(server, training, NOT_READY, NOT_READY, OPTIM_STEP_RESULT)
    polls = server.polls("OptimStep")
    assert [poll.headers["x-tinker-request-iteration"] for poll in polls] == ["0", "1", "2"]
    assert len({poll.body["request_id"] for poll in polls}) == 1
    assert len({poll.headers["x-idempotency-key"] for poll in polls}) == 3


def test_queue_state_without_a_reason_has_none(server: ScriptedServer, training: tw.TrainingClient) -> None:
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"queue_state": "paused_capacity"}, status=408))
    step = training.optim_step(ADAM)
    server.wait_for(lambda: len(server.polls("OptimStep")) >= 2, "another poll")
    assert (step.queue_state, step.queue_state_reason) == ("paused_capacity", None)
    step.cancel()


@pytest.mark.parametrize("category", ["user", "User", "USER", "uSeR"])
def test_error_category_is_case_insensitive(server: ScriptedServer, training: tw.TrainingClient, category: str) -> None:
    """A failed request raises RequestFailedError with its category and its id."""
    error = step_error(server, training, ScriptedResponse({"error": "bad rank", "category": category}))
    assert isinstance(error, tw.RequestFailedError)
    assert error.category is tw.RequestErrorCategory.User
    assert error.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert "bad rank" in str(error)
    assert error.request_id in str(error)


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ({"error": "e", "category": "server"}, "server"),
        ({"error": "e", "category": "cosmic"}, "unknown"),
        ({"error": "e", "category": None}, "unknown"),
        ({"error": "e", "category": 3}, "unknown"),
        ({"error": "e"}, "unknown"),
        ({"error": None}, "unknown"),
        ({"error": {"code": 7}}, "unknown"),
        ({"type": "request_failed", "error": "e", "category": "Server"}, "server"),
        ({"detail": [{"msg": "wrong"}]}, "unknown"),
    ],
)
def test_failed_result_of_any_shape_fails_the_future(
    server: ScriptedServer, training: tw.TrainingClient, body: dict[str, object], category: str
) -> None:
    """A failure with status 200, in any shape that servers use, fails the future at the first poll."""
    error = step_error(server, training, ScriptedResponse(body))
    assert isinstance(error, tw.RequestFailedError)
    assert error.category.value == category
    assert len(server.polls("OptimStep")) == 1


@pytest.mark.parametrize("body", [b"null", b"", b"<html>", b"\xff", b"[]", b"7", b'"x"', b'{"metrics": 7}'])
def test_malformed_result_fails_the_future(server: ScriptedServer, training: tw.TrainingClient, body: bytes) -> None:
    """A null, invalid or mismatching result raises an error that holds the request id and the body."""
    error = step_error(server, training, ScriptedResponse(body))
    assert isinstance(error, tw.APIResponseValidationError)
    assert error.response.text == body.decode("utf-8", "replace")
    assert server.polls("OptimStep")[0].body["request_id"] in str(error)


def test_null_or_missing_metrics_are_empty(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The metrics of a forward_backward result are empty if the server sends null or omits them."""
    body = {"loss_fn_output_type": "T", "loss_fn_outputs": []}
    server.on_poll("ForwardBackward", in_order(ScriptedResponse({**body, "metrics": None}), ScriptedResponse(body)))
    for _ in range(2):
        assert training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S).metrics == {}


@pytest.mark.parametrize("status", [401, 403, 404, 405, 409, 413, 422])
def test_permanent_client_error_fails_at_the_first_poll(
    server: ScriptedServer, training: tw.TrainingClient, status: int
) -> None:
    """A 4xx that is not transient fails the future at the first poll, with the server's text."""
    error = step_error(server, training, ScriptedResponse({"detail": "rejected by the server"}, status=status))
    assert isinstance(error, tw.APIStatusError)
    assert error.status_code == status
    assert "rejected by the server" in str(error)
    assert len(server.polls("OptimStep")) == 1


def test_x_should_retry_false_makes_a_500_final(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """``x-should-retry: false`` makes a 500 final."""
    error = step_error(server, training, ScriptedResponse({}, status=500, headers={"x-should-retry": "false"}))
    assert isinstance(error, tw.InternalServerError)


def test_redirected_poll_fails_and_is_not_followed(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A redirected poll fails, and the API key is not sent to the target."""
    error = step_error(
        server, training, ScriptedResponse({}, status=307, headers={"location": server.url + "/elsewhere"})
    )
    assert isinstance(error, tw.APIStatusError)
    assert not server.named("/elsewhere")


def test_bad_request_is_retried_three_times(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A 400 is retried three times before it is raised; a "not ready" response resets the count."""
    bad_request = ScriptedResponse({"detail": "no such row"}, status=400)
    error = step_error(server, training, bad_request)
    assert isinstance(error, tw.BadRequestError)
    assert "no such row" in str(error)
    assert len(server.polls("OptimStep")) == 4
    assert step_metrics(
        server,
        training,
        bad_request,
        bad_request,
        bad_request,
        NOT_READY,
        bad_request,
        bad_request,
        bad_request,
        OPTIM_STEP_RESULT,
    ) == {"x:mean": 1.0}


def test_nan_metric_is_read(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The client reads NaN, which is not JSON but which servers in Python send."""
    metrics = step_metrics(server, training, ScriptedResponse(b'{"metrics": {"loss:sum": NaN, "n:sum": 2}}'))
    assert metrics is not None
    assert math.isnan(metrics["loss:sum"])
    assert metrics["n:sum"] == 2


@pytest.mark.parametrize("status", [406, 415])
@pytest.mark.parametrize("version", [None, "0.22.7", "0.38.0"])
def test_rejected_protobuf_poll_switches_the_client_to_json(
    server: ScriptedServer, status: int, version: str | None
) -> None:
    """If the server rejects a poll that requests protobuf, the client requests JSON from then on."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    rejected: list[RecordedRequest] = []

    def poll(request: RecordedRequest) -> ScriptedResponse:
        if PROTOBUF in request.headers["accept"]:
            rejected.append(request)
            return ScriptedResponse({"detail": "JSON only"}, status)
        return server.healthy_response(request)

    server.rules["retrieve_future"] = poll
    with open_client(server.url, wire_version=version, retry=tw.RetryConfig(enable_retry_logic=False)) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(2):
            assert sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences[0].tokens == [1, 2]
        client.create_lora_training_client("base").forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert not client.dialect.accepts_protobuf_results
        copy = pickle.loads(pickle.dumps(sampling))
        assert copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert len(rejected) == 1


def test_rejected_json_poll_fails_the_future(server: ScriptedServer) -> None:
    """If the server rejects JSON as well, the future fails after two polls."""
    server.on_poll("Sample", lambda _: ScriptedResponse({"detail": "no"}, 406))
    with open_client(server.url, wire_version="0.38.0") as client, pytest.raises(tw.APIStatusError, match="no"):
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert len(server.polls("Sample")) == 2


@pytest.mark.parametrize(
    ("traffic", "polls"),
    [
        (Traffic.TRAINING, Traffic.TRAINING_FUTURES),
        (Traffic.SAMPLING, Traffic.SAMPLING_FUTURES),
        (Traffic.REST, Traffic.REST),
    ],
)
def test_result_of_a_call_is_polled_over_the_connections_for_polls(
    traffic: Traffic, polls: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may answer any call with a future; held polls must not keep the connections for submissions busy."""

    class FakePoller:
        def __init__(self, connection: object, pending: PendingResult[Any], policy: object) -> None:
            self._pending = pending

        async def result(self) -> PendingResult[Any]:
            return self._pending

    monkeypatch.setattr("tinkerwire._polling.poller.Poller", FakePoller)
    anything: Any = None
    deferred = DeferredResult("r7", "Custom", dict)
    pending = asyncio.run(fetch_result(anything, deferred, traffic, anything))
    assert (pending.traffic, pending.submission.request_id, pending.request_type) == (polls, "r7", "Custom")
