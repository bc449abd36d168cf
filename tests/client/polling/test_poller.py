"""From a promise to its result: every answer that a server may give to a poll."""

from __future__ import annotations

import logging
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, datum, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection import throttled_log
from tinkerwire._futures import operation_record
from tinkerwire._polling import poller
from tinkerwire_base.call import PROTOBUF

pytestmark = pytest.mark.timeout(60)
NOT_READY = ScriptedResponse(status=408)
DONE = ScriptedResponse({"metrics": {"x:mean": 1.0}})


def outcome(server: ScriptedServer, training: tw.TrainingClient, *answers: ScriptedResponse) -> dict[str, float] | None:
    """The metrics of an optimizer step whose polls get these answers."""
    server.on_poll("OptimStep", in_order(*answers))
    return training.optim_step(ADAM).result(PATIENCE_S).metrics


def fault_of(server: ScriptedServer, training: tw.TrainingClient, *answers: ScriptedResponse) -> tw.TinkerError:
    """Its error."""
    with pytest.raises(tw.TinkerError) as caught:
        outcome(server, training, *answers)
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedResponse(b"", status=408),
        ScriptedResponse({"queue_state": "paused_capacity"}, status=408),
        ScriptedResponse(b"null", status=408),
        ScriptedResponse(["odd"], status=408),
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
        ScriptedResponse(raw=b"no HTTP at all\r\n\r\n"),
    ],
    ids=str,
)
def test_what_may_pass_is_asked_again(
    server: ScriptedServer, training: tw.TrainingClient, answer: ScriptedResponse
) -> None:
    """Not ready, overloaded, broken connections and 5xx: the poll goes on, and the result comes."""
    assert outcome(server, training, answer, answer, DONE) == {"x:mean": 1.0}
    assert len(server.polls("OptimStep")) == 3


def test_polls_say_what_they_are(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Each poll names request, kind and iteration, and has an idempotency key of its own."""
    outcome(server, training, NOT_READY, NOT_READY, DONE)
    polls = server.polls("OptimStep")
    assert [poll.headers["x-tinker-request-iteration"] for poll in polls] == ["0", "1", "2"]
    assert len({poll.body["request_id"] for poll in polls}) == 1
    assert len({poll.headers["x-idempotency-key"] for poll in polls}) == 3


@pytest.mark.parametrize("written", ["user", "User", "USER", "uSeR"])
def test_the_category_is_read_in_any_letter_case(
    server: ScriptedServer, training: tw.TrainingClient, written: str
) -> None:
    """A failed request raises RequestFailedError with its category and its id."""
    error = fault_of(server, training, ScriptedResponse({"error": "bad rank", "category": written}))
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
def test_failures_of_any_shape(server: ScriptedServer, training: tw.TrainingClient, body: Any, category: str) -> None:
    """Whatever shape a server gives a failure of status 200, it fails the future at the first poll."""
    error = fault_of(server, training, ScriptedResponse(body))
    assert isinstance(error, tw.RequestFailedError)
    assert error.category.value == category
    assert len(server.polls("OptimStep")) == 1


@pytest.mark.parametrize("body", [b"null", b"", b"<html>", b"\xff", b"[]", b"7", b'"x"', b'{"metrics": 7}'])
def test_misfits_fail(server: ScriptedServer, training: tw.TrainingClient, body: bytes) -> None:
    """A result that is null, no JSON or of a wrong shape fails the future, naming the request and what came."""
    error = fault_of(server, training, ScriptedResponse(body))
    assert isinstance(error, tw.APIResponseValidationError)
    assert error.response.text == body.decode("utf-8", "replace")
    assert server.polls("OptimStep")[0].body["request_id"] in str(error)


def test_null_metrics_of_a_batch_are_no_metrics(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Servers that send null or no metrics with a forward_backward result are understood."""
    body = {"loss_fn_output_type": "T", "loss_fn_outputs": []}
    server.on_poll("ForwardBackward", in_order(ScriptedResponse({**body, "metrics": None}), ScriptedResponse(body)))
    for _ in range(2):
        assert training.forward_backward([datum()], "cross_entropy").result(PATIENCE_S).metrics == {}


@pytest.mark.parametrize("status", [401, 403, 404, 405, 409, 413, 422])
def test_other_user_errors_fail_at_once(server: ScriptedServer, training: tw.TrainingClient, status: int) -> None:
    """A 4xx that cannot pass fails the future at the first poll, with the server's words."""
    error = fault_of(server, training, ScriptedResponse({"detail": "never heard of it"}, status=status))
    assert isinstance(error, tw.APIStatusError)
    assert error.status_code == status
    assert "never heard of it" in str(error)
    assert len(server.polls("OptimStep")) == 1


def test_a_server_that_forbids_another_try_is_obeyed(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """``x-should-retry: false`` makes a 500 final."""
    error = fault_of(server, training, ScriptedResponse({}, status=500, headers={"x-should-retry": "false"}))
    assert isinstance(error, tw.InternalServerError)


def test_a_redirect_is_no_result(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A poll that is sent elsewhere fails; the key does not travel."""
    error = fault_of(
        server, training, ScriptedResponse({}, status=307, headers={"location": server.url + "/elsewhere"})
    )
    assert isinstance(error, tw.APIStatusError)
    assert not server.named("/elsewhere")


def test_bad_requests_get_three_more_tries(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A 400 is asked again three times, then it is the error; a 'not ready' between starts the count anew."""
    bad = ScriptedResponse({"detail": "no such row"}, status=400)
    error = fault_of(server, training, bad)
    assert isinstance(error, tw.BadRequestError)
    assert "no such row" in str(error)
    assert len(server.polls("OptimStep")) == 4
    assert outcome(server, training, bad, bad, bad, NOT_READY, bad, bad, bad, DONE) == {"x:mean": 1.0}


def test_an_expired_training_result_is_an_error(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """410 for a training step raises FutureExpiredError: running it again would train twice."""
    error = fault_of(server, training, ScriptedResponse({"detail": "gone"}, status=410))
    assert isinstance(error, tw.FutureExpiredError)
    assert error.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert len(server.named("optim_step")) == 1


def test_an_expired_sample_is_drawn_again(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """410 for a sample sends it anew, under a new seq_id and a new key, until one is kept."""
    expired = ScriptedResponse(status=410)
    server.on_poll("Sample", in_order(expired, expired, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert len(sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences) == 1
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1, 2]
    assert len({asked.headers["x-idempotency-key"] for asked in server.named("asample")}) == 3


def test_drawing_again_is_bounded(server: ScriptedServer) -> None:
    """A server that loses every sample gets max_attempts of them, and none more when retrying is off."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    for policy, number in ((attrs.evolve(FAST, max_attempts=4), 4), (tw.RetryConfig(enable_retry_logic=False), 5)):
        with open_client(server.url, retry=policy) as client:
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises(tw.FutureExpiredError):
                sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
        assert len(server.named("asample")) == number


def test_drawing_again_takes_its_time(server: ScriptedServer) -> None:
    """Between two draws of a sample lies the policy's delay: a server that loses samples is not hammered."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    policy = tw.RetryConfig(retry_delay_base=0.1, jitter_factor=0.0, max_attempts=3)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.FutureExpiredError):
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    first, second, third = (asked.time for asked in server.named("asample"))
    assert second - first >= 0.1
    assert third - second >= 0.2


def seconds_of_polls(server: ScriptedServer, answer: ScriptedResponse, number: int, policy: tw.RetryConfig) -> float:
    """How long so many polls take of a server that gives them all this answer at once."""
    server.on_poll("OptimStep", lambda _: answer)
    with open_client(server.url, retry=policy) as client:
        client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= number, f"{number} polls")
    times = [asked.time for asked in server.polls("OptimStep")]
    return times[number - 1] - times[0]


@pytest.mark.parametrize("answer", [NOT_READY, ScriptedResponse({"type": "try_again"})], ids=str)
def test_fast_empty_answers_are_spaced_out(server: ScriptedServer, answer: ScriptedResponse) -> None:
    """A server that answers 'not ready' at once is asked a few times a second, not thousands."""
    assert seconds_of_polls(server, answer, 7, tw.RetryConfig()) > 1.0


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_fails_at_once_is_not_hammered(server: ScriptedServer, status: int) -> None:
    """With the policy as it is, faults that take no time get a few polls a second."""
    assert seconds_of_polls(server, ScriptedResponse(status=status), 3, tw.RetryConfig()) > 1.0


def test_held_answers_are_asked_again_at_once(
    server: ScriptedServer, training: tw.TrainingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the server holds a poll for long, the next follows without a pause."""
    monkeypatch.setattr(poller, "MIN_HELD_S", 0.05)
    monkeypatch.setattr(poller, "FIRST_PAUSE_S", 300.0)
    held = ScriptedResponse(status=408, delay_s=0.06)
    assert outcome(server, training, held, held, held, DONE) == {"x:mean": 1.0}


def test_a_busy_server_sets_the_pause(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Retry-After of a 429 is waited for, before the next poll."""
    outcome(server, training, ScriptedResponse({}, status=429, headers={"retry-after-ms": "300"}), DONE)
    first, second = server.polls("OptimStep")
    assert second.time - first.time >= 0.3


def test_no_hot_loop_on_a_wish_of_zero(server: ScriptedServer) -> None:
    """``Retry-After: 0`` is no wish: the policy's own pauses hold."""
    wish = ScriptedResponse({}, status=429, headers={"retry-after": "0"})
    policy = tw.RetryConfig(retry_delay_base=0.1, retry_delay_max=0.1, jitter_factor=0)
    assert seconds_of_polls(server, wish, 4, policy) >= 0.3


def test_the_deadline_names_request_and_queue(server: ScriptedServer, pass_time: Callable[[float], None]) -> None:
    """After progress_timeout the error names the request, its id, the queue's state and reason, and the setting."""
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "no GPUs"}, status=408)
    server.on_poll("OptimStep", lambda _: paused)
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= 2, "the word of the queue, and another poll")
        assert not step.done()
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError) as caught:
            step.result(PATIENCE_S)
    asked = server.polls("OptimStep")[0].body["request_id"]
    assert caught.value.request_id == asked
    for part in ("OptimStep", asked, "50 s", "paused_capacity", "no GPUs", "progress_timeout"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "answer", [ScriptedResponse(hold=Gate()), ScriptedResponse(b" " * 1000, trickle_s=0.1)], ids=["silent", "slow"]
)
def test_the_deadline_holds_against_silence(
    server: ScriptedServer, answer: ScriptedResponse, pass_time: Callable[[float], None]
) -> None:
    """A server that never answers a poll, or only byte by byte, cannot hold a future beyond its deadline."""
    server.on_poll("OptimStep", lambda _: answer)
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError):
            step.result(PATIENCE_S)


def test_a_metric_that_is_no_number_does_not_lose_the_result(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """A server in Python may write NaN, which is not JSON; the result is read all the same."""
    metrics = outcome(server, training, ScriptedResponse(b'{"metrics": {"loss:sum": NaN, "n:sum": 2}}'))
    assert metrics is not None
    assert math.isnan(metrics["loss:sum"])
    assert metrics["n:sum"] == 2


def test_endless_faults_end(server: ScriptedServer) -> None:
    """A server that answers 500 for ever gets asked for max_elapsed; then its words are the error."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"detail": "NaN is not JSON"}, status=500))
    policy, words = attrs.evolve(FAST, max_elapsed=0.3), "NaN is not JSON"
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.InternalServerError, match=words):
        client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)


def test_faults_with_answers_between_are_not_endless(server: ScriptedServer) -> None:
    """A 'not ready' between two faults shows that the server lives: the time of max_elapsed starts anew."""
    broken, alive = ScriptedResponse(status=500), ScriptedResponse(status=408, delay_s=0.3)
    server.on_poll("OptimStep", in_order(broken, alive, broken, alive, broken, DONE))
    with open_client(server.url, retry=attrs.evolve(FAST, max_elapsed=0.25)) as client:
        assert client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S).metrics == {"x:mean": 1.0}


def test_waiting_is_logged(
    server: ScriptedServer,
    training: tw.TrainingClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing waits without a word, even while the server holds the poll: who, for how long, why, again and again."""
    assert (operation_record.FIRST_WAIT_LOG_S, operation_record.WAIT_LOG_INTERVAL_S) == (10.0, 60.0)
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.05)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.05)
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    hold = Gate()
    paused = ScriptedResponse(
        {"queue_state": "paused_rate_limit", "queue_state_reason": "too many clients"}, status=408
    )
    server.on_poll("OptimStep", in_order(paused, ScriptedResponse(DONE.body, hold=hold)))
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        future = training.optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 2, "the word of the queue, and another poll")
        asked = server.polls("OptimStep")[0].body["request_id"]
        word = rf"OptimStep {asked}: no result after \d+ s; queue paused_rate_limit: too many clients"
        wait_until(lambda: len(re.findall(word, caplog.text)) >= 3, "three words")
        hold.release()
        future.result(PATIENCE_S)


def test_many_waits_make_one_word(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand samples that wait do not write a thousand lines."""
    sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.02)
    said: list[str] = []
    warn = throttled_log.ThrottledLog.warn

    def count(log: throttled_log.ThrottledLog, kind: str, message: str, *parts: object) -> None:
        said.append(kind)
        warn(log, kind, message, *parts)

    monkeypatch.setattr(throttled_log.ThrottledLog, "warn", count)
    hold = Gate()
    server.on_poll("Sample", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold))
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        samples = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(50)]
        wait_until(lambda: len(said) >= 50, "every wait has its word")
        hold.release()
        for sample in samples:
            sample.result(PATIENCE_S)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("before", [NOT_READY, ScriptedResponse({"type": "try_again"})], ids=str)
def test_a_future_that_was_there_and_is_unknown_now(
    server: ScriptedServer, training: tw.TrainingClient, client: tw.ServiceClient, before: ScriptedResponse
) -> None:
    """404 after a 'not ready': the server has lost it. A training step fails clearly, a sample is drawn again."""
    unknown = ScriptedResponse({"detail": "Future not found"}, status=404)
    error = fault_of(server, training, before, unknown)
    assert isinstance(error, tw.FutureExpiredError)
    assert isinstance(error.__cause__, tw.NotFoundError)
    for part in ("OptimStep", "HTTP 404", "Future not found", error.request_id):
        assert part in str(error)
    assert len(server.named("optim_step")) == 1
    server.on_poll("Sample", in_order(before, unknown, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1]


@pytest.mark.parametrize("status", [406, 415])
@pytest.mark.parametrize("version", [None, "0.22.7", "0.38.0"])
def test_a_server_without_protobuf_results(server: ScriptedServer, status: int, version: str | None) -> None:
    """It refuses polls that ask for protobuf: the client asks for JSON at once, and for the life of the client."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    refused = []

    def poll(asked: RecordedRequest) -> ScriptedResponse:
        if PROTOBUF in asked.headers["accept"]:
            refused.append(asked)
            return ScriptedResponse({"detail": "JSON only"}, status)
        return server.healthy_response(asked)

    server.rules["retrieve_future"] = poll
    with open_client(server.url, wire_version=version, retry=tw.RetryConfig(enable_retry_logic=False)) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(2):
            assert sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences[0].tokens == [1, 2]
        client.create_lora_training_client("base").forward_backward([datum()], "cross_entropy").result(PATIENCE_S)
        assert not client.dialect.has_binary_results
        copy = pickle.loads(pickle.dumps(sampling))
        assert copy.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert len(refused) == 1


def test_a_server_that_refuses_every_poll(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A refusal of JSON as well is the error; the client does not poll for ever."""
    server.on_poll("Sample", lambda _: ScriptedResponse({"detail": "no"}, 406))
    with open_client(server.url, wire_version="0.38.0") as newer, pytest.raises(tw.APIStatusError, match="no"):
        newer.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert len(server.polls("Sample")) == 2
