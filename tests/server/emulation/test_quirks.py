"""Quirks: the effect of each on responses, and their text form."""

from __future__ import annotations

import time
import uuid
from typing import Any

import attrs
import pytest

from support.server_fixtures import NANO, BatchFactory, Caller, ServerFactory
from tinkerwire._server.emulation.quirks import OPTIONAL
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._wire.protobuf import decode_output, decode_sample
from tinkerwire.local import Quirks
from tinkerwire_base.call import JSON, PROTOBUF

INVALID_TOKENS = [300, 301]
"""Token ids outside of the vocabulary."""


def serve_with_quirks(
    serve: ServerFactory, wire_version: str = "0.16.1", long_poll_s: float = 10.0, **quirks: Any
) -> Caller:
    """Start a server with quirks; its responses need not fit the contract."""
    call = serve(wire_version=wire_version, long_poll_s=long_poll_s, quirks=Quirks(**quirks))
    return attrs.evolve(call, checks_contract=False)


def submit_sample(call: Caller, **options: Any) -> str:
    """Submit a sample of two tokens and return its request id."""
    body = {
        "sampling_session_id": call.create_sampler(),
        "seq_id": 0,
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": [1, 2, 3]}]},
        "num_samples": 1,
        "sampling_params": {"max_tokens": 2},
        **options,
    }
    return call.submit("asample", body)


@pytest.mark.parametrize(("not_ready", "status"), [("408", 408), ("try_again", 200)])
def test_delayed_results_are_not_ready_at_first(
    serve: ServerFactory, not_ready: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls get the configured "not ready" response until the delay is over."""
    call = serve_with_quirks(serve, long_poll_s=0.05, result_delay_s=600.0, not_ready=not_ready)
    body = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": NANO}
    request_id = call.submit("create_model", {**body, "lora_config": {"rank": 4}})
    first = call.poll(request_id)
    assert first.status == status
    assert first.body == {"type": "try_again", "request_id": request_id, "queue_state": "active"}
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 600.0)
    while "model_id" not in (reply := call.poll(request_id)).body:
        assert reply.status == status


@pytest.mark.parametrize(
    ("failure", "status", "keys"),
    [
        ("error", 200, {"error", "category"}),
        ("detail", 200, {"detail"}),
        ("object", 200, {"error", "type"}),
        ("category", 200, {"error", "category"}),
        ("400", 400, {"detail"}),
        ("404", 404, {"detail"}),
        ("409", 409, {"detail"}),
        ("422", 422, {"detail"}),
    ],
)
def test_failed_results_have_the_configured_form(
    serve: ServerFactory, batch: BatchFactory, failure: str, status: int, keys: set[str]
) -> None:
    """Every form has the reason, at every poll."""
    call = serve_with_quirks(serve, failure=failure)
    body = {"model_id": call.create_model(), "seq_id": 1, "forward_input": batch(INVALID_TOKENS)}
    request_id = call.submit("forward", body)
    for _ in range(2):
        reply = call.poll(request_id)
        assert reply.status == status
        assert keys <= reply.body.keys()
        assert "300" in str(reply.body) or "301" in str(reply.body)


def test_failure_500_is_plain_text_at_every_poll(serve: ServerFactory, batch: BatchFactory) -> None:
    """A failed result is status 500 forever."""
    call = serve_with_quirks(serve, failure="500")
    body = {"model_id": call.create_model(), "seq_id": 1, "forward_input": batch(INVALID_TOKENS)}
    request_id = call.submit("forward", body)
    for _ in range(3):
        reply = call.poll(request_id)
        assert (reply.status, reply.body) == (500, b"Internal Server Error")


@pytest.mark.parametrize("rejection", ["415", "400", "422"])
def test_batches_are_accepted_in_one_encoding(serve: ServerFactory, batch: BatchFactory, rejection: str) -> None:
    """The other encoding is rejected with the configured status."""
    wire_version = "0.22.7"
    call = serve_with_quirks(serve, wire_version, batches="json", rejection=rejection)
    model_id = call.create_model()
    assert call.post_protobuf(model_id, 1).status == int(rejection)
    assert call.post("forward", {"model_id": model_id, "forward_input": batch()}).status == 200
    call = serve_with_quirks(serve, wire_version, batches="protobuf", rejection=rejection)
    model_id = call.create_model()
    assert call.post("forward", {"model_id": model_id, "forward_input": batch()}).status == int(rejection)
    assert call.post_protobuf(model_id, 1).status == 200


@pytest.mark.parametrize(
    ("results", "accept", "media"),
    [("protobuf", JSON, PROTOBUF), ("json", PROTOBUF, JSON), ("requested", PROTOBUF, PROTOBUF)],
)
def test_results_ignore_accept(
    serve: ServerFactory, batch: BatchFactory, results: str, accept: str, media: str
) -> None:
    """Results have the configured encoding; only "requested" follows Accept."""
    call = serve_with_quirks(serve, "0.22.7", results=results)
    request_id = call.submit("forward", {"model_id": call.create_model(), "seq_id": 1, "forward_input": batch()})
    assert call.poll(request_id, accept).headers["content-type"] == media


@pytest.mark.parametrize("missing_status", ["404", "405"])
def test_missing_operations_have_the_configured_status(serve: ServerFactory, missing_status: str) -> None:
    """Other operations exist; "optional" names all optional operations."""
    call = serve_with_quirks(serve, "0.38.0", missing="client_config", missing_status=missing_status)
    assert call.post("client/config", {"sdk_version": "0.38.0"}).status == int(missing_status)
    assert call.post("client/dynamic_config", {"sdk_version": "0.38.0"}).status == 200
    assert Quirks(missing=["optional", "healthz"]).missing == OPTIONAL | {"healthz"}


def test_short_paths_can_be_sampled_from(serve: ServerFactory) -> None:
    """Saving returns a short path that sampling accepts; listings have the full path."""
    call = serve_with_quirks(serve, short_paths=True)
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    path = call.run("save_weights_for_sampler", {"model_id": model_id, "seq_id": 1, "path": "a"})["path"]
    assert path == f"tinker://{model_id}/a"
    body = {"session_id": session_id, "sampling_session_seq_id": 0, "model_path": path}
    assert call.post("create_sampling_session", body).status == 200
    checkpoints = call("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"]
    assert [checkpoint["tinker_path"] for checkpoint in checkpoints] == [f"tinker://{model_id}/sampler_weights/a"]


@pytest.mark.parametrize(("prompt_logprobs", "length"), [("full", 3), ("short", 2), ("absent", None)])
def test_prompt_logprobs_have_the_configured_length(
    serve: ServerFactory, prompt_logprobs: str, length: int | None
) -> None:
    """JSON and protobuf have the same number of values."""
    call = serve_with_quirks(serve, "0.22.7", prompt_logprobs=prompt_logprobs)
    request_id = submit_sample(call, prompt_logprobs=True)
    values = call.poll(request_id).body.get("prompt_logprobs")
    assert values is None if length is None else len(values) == length
    protobuf_values = decode_sample(call.poll(request_id, PROTOBUF).body).prompt_logprobs
    assert protobuf_values is None if length is None else len(protobuf_values) == length


def test_topk_is_supported_ignored_or_rejected(serve: ServerFactory) -> None:
    """Ignored top-k logprobs are absent; rejected ones fail the request with 400."""
    for topk in ("supported", "ignored"):
        call = serve_with_quirks(serve, topk=topk)
        reply = call.poll(submit_sample(call, prompt_logprobs=True, topk_prompt_logprobs=2))
        assert (reply.body.get("topk_prompt_logprobs") is None) == (topk == "ignored")
    call = serve_with_quirks(serve, topk="rejected")
    with pytest.raises(AssertionError, match="400"):
        submit_sample(call, topk_prompt_logprobs=2)


@pytest.mark.parametrize(("metrics", "expected"), [("empty", {}), ("null", None)])
def test_metrics_are_empty_or_null(
    serve: ServerFactory, batch: BatchFactory, metrics: str, expected: dict[str, float] | None
) -> None:
    """Protobuf has empty metrics in both cases."""
    call = serve_with_quirks(serve, "0.22.7", metrics=metrics)
    model_id = call.create_model()
    request_id = call.submit("forward", {"model_id": model_id, "seq_id": 1, "forward_input": batch()})
    body = {"model_id": model_id, "seq_id": 2, "adam_params": {"learning_rate": 0.1}}
    assert decode_output(call.poll(request_id, PROTOBUF).body).metrics == {}
    assert call.poll(request_id).body["metrics"] == expected
    assert call.poll(call.submit("optim_step", body)).body["metrics"] == expected


def test_late_loads_are_rejected_and_consume_their_seq_id(serve: ServerFactory) -> None:
    """With load_first and counts_rejected, a rejected load makes its seq_id unusable; a conflict does not."""
    call = serve_with_quirks(serve, load_first=True, counts_rejected=True)
    model_id = call.create_model()
    path = call.run("save_weights", {"model_id": model_id, "seq_id": 1, "path": "a"})["path"]
    load = {"path": path, "optimizer": False}
    assert call.post("load_weights", {**load, "model_id": model_id, "seq_id": 2}).status == 400
    step = {"model_id": model_id, "adam_params": {"learning_rate": 0.1}}
    assert call.post("optim_step", {**step, "seq_id": 2}).status == 409
    third = call.submit("optim_step", {**step, "seq_id": 3})
    assert call.post("save_weights", {"model_id": model_id, "seq_id": 3}).status == 409
    assert call.submit("optim_step", {**step, "seq_id": 3}) == third
    new_model_id = call.create_model(number=0)
    call.run("load_weights", {**load, "model_id": new_model_id, "seq_id": 1})


@pytest.mark.parametrize("form", ["default", "integer", "uuid", "prefixed"])
def test_request_ids_have_the_configured_format(serve: ServerFactory, form: str) -> None:
    """An id returns its result; an unknown id is 404."""
    call = serve_with_quirks(serve, ids=form)
    body = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": NANO}
    request_id = call.submit("create_model", {**body, "lora_config": {"rank": 4}})
    assert "model_id" in call.result(request_id)
    if form == "uuid":
        uuid.UUID(request_id)
    assert (form == "integer") == request_id.isdecimal()
    ids = RequestIds(form)
    assert [ids.parse(ids.create(number)) for number in (1, 7, 1000)] == [1, 7, 1000]
    assert ids.parse("no such thing") is None
    for unknown in ("", "x", ids.create(99), "999999999999999999999999"):
        assert call.poll(unknown).status == 404


def test_quirks_are_parsed() -> None:
    """The text of the command line sets the same quirks as the constructor."""
    parsed = Quirks.parse("failure=500, short_paths,result_delay_s=0.5,missing=telemetry+weights_info,metrics=null")
    assert parsed == Quirks(
        failure="500", short_paths=True, result_delay_s=0.5, missing={"telemetry", "weights_info"}, metrics="null"
    )
    assert Quirks.parse("") == Quirks()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("failures=500", "'failures=500': unknown option 'failures'; choose from result_delay_s, not_ready"),
        ("failure=501", "must be one of error, detail"),
        ("failure", "write failure=VALUE"),
        ("short_paths=yes", "write short_paths"),
        ("result_delay_s=soon", "'soon' is not a number"),
        ("result_delay_s=-1", "0 or more"),
        ("result_delay_s=nan", "0 or more"),
        ("result_delay_s=inf", "0 or more"),
        ("missing=nothing", "unknown operation nothing; choose from optional, "),
    ],
)
def test_invalid_quirks_are_rejected_by_name(text: str, reason: str) -> None:
    """The error names the invalid part."""
    with pytest.raises(ValueError, match=reason):
        Quirks.parse(text)
