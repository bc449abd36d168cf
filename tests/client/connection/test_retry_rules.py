"""Every row of the table of retry rules, seen from outside: a scripted server triggers the row and counts requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order, seq_ids
from support.tokens import token
from tinkerwire._connection.retry_rules import RULES, Decision, Loop, RetryRule
from tinkerwire._telemetry import reporter

pytestmark = pytest.mark.timeout(60)
INVALID_TOKEN = ScriptedResponse(status=401, headers={"www-authenticate": 'Bearer error="invalid_token"'})
EXAMPLES = {
    "busy": ScriptedResponse(status=429),
    "lost sample": ScriptedResponse(status=410),
    "name is used": ScriptedResponse({"detail": "the name is used"}, status=409),
    "lost response": ScriptedResponse(drop=True),
    "failed telemetry": ScriptedResponse(status=500),
}
"""Responses that trigger rows which match classes of errors."""


def trigger(rule: RetryRule) -> ScriptedResponse:
    """Return a response that the row matches, and no row before it."""
    if rule.name in EXAMPLES:
        return EXAMPLES[rule.name]
    if rule.is_credential_error:
        return INVALID_TOKEN
    if rule.should_retry_header is not None:
        status = 403 if rule.decision is Decision.RETRY else 503
        return ScriptedResponse(status=status, headers={"x-should-retry": rule.should_retry_header})
    if rule.is_retryable_exception:
        return ScriptedResponse(drop=True)
    return ScriptedResponse(status=next((status for status in range(400, 600) if status in rule.statuses), 403))


def make_options(server: ScriptedServer, rule: RetryRule, **flags: bool) -> dict[str, Any]:
    """Return the options of a client that meets the row; the second request for a token fails."""
    if rule.is_credential_error:
        server.rules["auth/token"] = in_order(ScriptedResponse({"jwt": token()}), ScriptedResponse(status=403))
        flags["pjwt_auth_enabled"] = True
    return {"wire_version": "0.38.0", "client_config": flags}


def walk_request(server: ScriptedServer, rule: RetryRule) -> None:
    """Send one request that fails once."""
    server.rules["get_server_capabilities"] = in_order(trigger(rule), server.healthy_response)
    with open_client(server.url, **make_options(server, rule)) as client:
        client.session_id  # noqa: B018  (the first token is used up here)
        if rule.decision is Decision.RETRY:
            client.get_server_capabilities()
        else:
            with pytest.raises(tw.APIError):
                client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == (2 if rule.decision is Decision.RETRY else 1)


def walk_poll(server: ScriptedServer, rule: RetryRule) -> None:
    """Poll a result as often as the row allows, and once more."""
    retries = rule.max_retries or 1
    with open_client(server.url, **make_options(server, rule)) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.get_info()
        server.on_poll("OptimStep", in_order(*[trigger(rule)] * retries, server.healthy_response))
        if rule.decision is Decision.RETRY:
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        else:
            with pytest.raises(tw.APIError):
                training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert len(server.polls("OptimStep")) == (retries + 1 if rule.decision is Decision.RETRY else 1)
        if rule.max_retries is not None:
            server.on_poll("OptimStep", in_order(*[trigger(rule)] * (retries + 1), server.healthy_response))
            with pytest.raises(tw.APIError):
                training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def walk_batched_poll(server: ScriptedServer, rule: RetryRule) -> None:
    """Poll the samples of a client; the sample succeeds in any case."""

    def finished(request: RecordedRequest) -> ScriptedResponse:
        number = len(server.bodies("asample"))
        seq_id = server.bodies("asample")[-1]["seq_id"]
        completions = [{"state": "finished", "request_id": f"asample/{number}/{seq_id}"}]
        return ScriptedResponse({"completions": completions, "cursor": request.body["prev_cursor"]})

    server.rules["retrieve_futures"] = in_order(trigger(rule), finished)
    with open_client(server.url, **make_options(server, rule, sample_use_retrieve_futures=True)) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        if rule.is_credential_error:
            # The credential is missing for the poll of the sample, too.
            with pytest.raises(tw.APIError):
                sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        else:
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        assert (len(server.named("retrieve_futures")) > 1) is (rule.decision is Decision.RETRY)


def walk_sample(server: ScriptedServer, rule: RetryRule) -> None:
    """Sample once; the server is busy, or loses the sample."""
    if rule.decision is Decision.RESAMPLE:
        server.on_poll("Sample", in_order(trigger(rule), server.healthy_response))
    else:
        server.rules["asample"] = in_order(trigger(rule), server.healthy_response)
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        if rule.decision is Decision.FAIL:
            with pytest.raises(tw.APIError):
                sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        else:
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        push_backs = sampling.load.push_backs
    sent = [body["seq_id"] for body in server.bodies("asample")]
    assert push_backs == (1 if rule.decision is Decision.REQUEUE else 0)
    first = sent[0]
    assert (
        sent
        == {
            Decision.FAIL: [first],
            Decision.REQUEUE: [first, first],
            Decision.RESAMPLE: [first, first + 1],
        }[rule.decision]
    )


def walk_submission(server: ScriptedServer, rule: RetryRule) -> None:
    """Submit an operation once without success, and then another one."""
    single_attempt = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=single_attempt, **make_options(server, rule)) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.get_info()
        server.rules["optim_step"] = in_order(trigger(rule), server.healthy_response)
        with pytest.raises(tw.APIError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token()})
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == ([1, 1] if rule.decision is Decision.REUSE_SEQ_ID else [1, 2])


def walk_named_save(server: ScriptedServer, rule: RetryRule) -> None:
    """Save under a name; the response to the first attempt is lost."""
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), trigger(rule))
    saved = {"checkpoint_id": "weights/a", "checkpoint_type": "training", "time": "2026-01-01T00:00:00Z"}
    server.rules["training_runs/m1/checkpoints"] = lambda _: ScriptedResponse(
        {"checkpoints": [{**saved, "tinker_path": "tinker://m1/weights/a"}]}
    )
    with open_client(server.url) as client:
        save = client.create_lora_training_client("base", rank=8).save_state("a")
        if rule.decision is Decision.LOOK_UP:
            assert save.result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"
        else:
            with pytest.raises(tw.APIStatusError):
                save.result(TEST_TIMEOUT_S)
    assert len(server.named("save_weights")) == 2
    assert len(server.named("training_runs/m1/checkpoints")) == (1 if rule.decision is Decision.LOOK_UP else 0)


def walk_telemetry(server: ScriptedServer, rule: RetryRule) -> None:
    """Send events that the server does not accept."""
    server.rules["telemetry"] = lambda _: trigger(rule)
    requests = 1 + (rule.max_retries or 0)
    with open_client(server.url) as client:
        client.session_id  # noqa: B018  (creates the session)
        server.wait_for_requests("telemetry", requests)
        telemetry = client.get_telemetry()
        assert telemetry is not None
        if rule.decision is Decision.RETRY:
            # The batch is dropped, and further events are sent.
            assert telemetry.log("event")
            server.wait_for_requests("telemetry", requests + 1)
        else:
            wait_until(lambda: not telemetry.log("event"), "telemetry ends")
            assert len(server.named("telemetry")) == requests


WALKS: Mapping[Loop, Callable[[ScriptedServer, RetryRule], None]] = {
    Loop.REQUEST: walk_request,
    Loop.POLL: walk_poll,
    Loop.BATCHED_POLL: walk_batched_poll,
    Loop.SAMPLE: walk_sample,
    Loop.SUBMISSION: walk_submission,
    Loop.NAMED_SAVE: walk_named_save,
    Loop.TELEMETRY: walk_telemetry,
}
ROWS = [(loop, rule) for rule in RULES for loop in rule.loops]


@pytest.mark.parametrize(("loop", "rule"), ROWS, ids=[f"{loop.value}: {rule.name}" for loop, rule in ROWS])
def test_client_follows_rule(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, loop: Loop, rule: RetryRule
) -> None:
    """The client retries, fails or continues as the row decides."""
    if loop is Loop.TELEMETRY:
        monkeypatch.setenv("TINKER_TELEMETRY", "1")
        monkeypatch.setattr(reporter, "FLUSH_S", 0.01)
    WALKS[loop](server, rule)


def test_every_loop_ends_with_a_row_for_all_errors() -> None:
    """No error is without a rule."""
    assert set(WALKS) == set(Loop)
    for loop in Loop:
        last = [rule for rule in RULES if loop in rule.loops][-1]
        assert last.errors == (tw.TinkerError,)
