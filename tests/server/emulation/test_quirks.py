"""The ways of other servers: what a caller sees of each switch, and how they are written."""

from __future__ import annotations

import time
import uuid
from typing import Any

import attrs
import pytest

from tinkerwire._server.emulation.quirks import OPTIONAL
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._wire.protobuf import decode_output, decode_sample
from tinkerwire.local import Quirks
from tinkerwire_base.call import PROTOBUF

BAD = [300, 301]
"""Tokens that no byte is."""


def peculiar(serve: Any, wire: str = "0.16.1", long_poll_s: float = 10.0, **switches: Any) -> Any:
    """A caller of a server with these ways, which need not fit the contract."""
    return attrs.evolve(serve(wire_version=wire, long_poll_s=long_poll_s, quirks=Quirks(**switches)), checks=False)


def asked(call: Any, request_id: str, accept: str = "application/json") -> Any:
    return call.post("retrieve_future", {"request_id": request_id}, headers={"accept": accept})


def sample(call: Any, **wishes: Any) -> str:
    session = call.session()
    about = {"session_id": session, "sampling_session_seq_id": 0, "base_model": "tinkerwire/byte-nano"}
    sampler = call.post("create_sampling_session", about).body["sampling_session_id"]
    prompt = {"chunks": [{"type": "encoded_text", "tokens": [1, 2, 3]}]}
    body = {"sampling_session_id": sampler, "seq_id": 0, "prompt": prompt, "num_samples": 1, **wishes}
    return str(call.submit("asample", {**body, "sampling_params": {"max_tokens": 2}}))


@pytest.mark.parametrize(("not_ready", "status"), [("408", 408), ("try_again", 200)])
def test_what_is_not_ready(serve: Any, not_ready: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is held, then answered in either way, until the time of the result has come."""
    call = peculiar(serve, long_poll_s=0.05, result_delay_s=3600.0, not_ready=not_ready)
    body = {"session_id": call.session(), "model_seq_id": 0, "base_model": "tinkerwire/byte-nano"}
    request_id = call.submit("create_model", {**body, "lora_config": {"rank": 4}})
    first = asked(call, request_id)
    assert first.status == status
    assert first.body == {"type": "try_again", "request_id": request_id, "queue_state": "active"}
    plain = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: plain() + 3600.0)
    while "model_id" not in (reply := asked(call, request_id)).body:
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
def test_what_has_failed(serve: Any, batch: Any, failure: str, status: int, keys: set[str]) -> None:
    """In each of the shapes, with the reason in it."""
    call = peculiar(serve, failure=failure)
    request_id = call.submit("forward", {"model_id": call.model(), "seq_id": 1, "forward_input": batch(BAD)})
    for _ in range(2):
        reply = asked(call, request_id)
        assert reply.status == status
        assert keys <= reply.body.keys()
        assert "300" in str(reply.body) or "301" in str(reply.body)


def test_what_fails_for_ever(serve: Any, batch: Any) -> None:
    """500 at every question, in plain text."""
    call = peculiar(serve, failure="500")
    request_id = call.submit("forward", {"model_id": call.model(), "seq_id": 1, "forward_input": batch(BAD)})
    for _ in range(3):
        reply = asked(call, request_id)
        assert (reply.status, reply.body) == (500, b"Internal Server Error")


@pytest.mark.parametrize("refusal", ["415", "400", "422"])
def test_one_form_of_batches(serve: Any, batch: Any, refusal: str) -> None:
    """The other is refused by the status that is asked for."""
    wire = "0.22.7"
    call = peculiar(serve, wire, batches="json", refusal=refusal)
    model_id = call.model()
    assert call.binary(model_id, 1).status == int(refusal)
    assert call.post("forward", {"model_id": model_id, "forward_input": batch()}).status == 200
    call = peculiar(serve, wire, batches="messages", refusal=refusal)
    model_id = call.model()
    assert call.post("forward", {"model_id": model_id, "forward_input": batch()}).status == int(refusal)
    assert call.binary(model_id, 1).status == 200


def test_one_form_of_results(serve: Any, batch: Any) -> None:
    """Whatever Accept says."""
    for form, accept, media in (
        ("messages", "application/json", PROTOBUF),
        ("json", PROTOBUF, "application/json"),
        ("asked", PROTOBUF, PROTOBUF),
    ):
        call = peculiar(serve, "0.22.7", results=form)
        request_id = call.submit("forward", {"model_id": call.model(), "seq_id": 1, "forward_input": batch()})
        assert asked(call, request_id, accept).headers["content-type"] == media


@pytest.mark.parametrize("missing", ["404", "405"])
def test_what_is_lacking(serve: Any, missing: str) -> None:
    """By name, or all that a client can go without; the others are there."""
    call = peculiar(serve, "0.38.0", lacks="client_config", missing=missing)
    assert call.post("client/config", {"sdk_version": "0.38.0"}).status == int(missing)
    assert call.post("client/dynamic_config", {"sdk_version": "0.38.0"}).status == 200
    assert Quirks(lacks=["optional", "healthz"]).lacks == OPTIONAL | {"healthz"}


def test_short_paths(serve: Any) -> None:
    """Saving names the model and the name; that can be sampled from, and the listing has the whole."""
    call = peculiar(serve, short_paths=True)
    session = call.session()
    model_id = call.model(session)
    path = call.do("save_weights_for_sampler", {"model_id": model_id, "seq_id": 1, "path": "a"})["path"]
    assert path == f"tinker://{model_id}/a"
    body = {"session_id": session, "sampling_session_seq_id": 0, "model_path": path}
    assert call.post("create_sampling_session", body).status == 200
    listed = call("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"]
    assert [each["tinker_path"] for each in listed] == [f"tinker://{model_id}/sampler_weights/a"]


def test_prompt_logprobs_and_top_k(serve: Any) -> None:
    """Short, absent, dropped and refused; in JSON and in messages."""
    for switch, length in (("whole", 3), ("short", 2), ("absent", None)):
        call = peculiar(serve, "0.22.7", prompt_logprobs=switch)
        request_id = sample(call, prompt_logprobs=True)
        found = asked(call, request_id).body.get("prompt_logprobs")
        assert found is None if length is None else len(found) == length
        binary = decode_sample(asked(call, request_id, PROTOBUF).body).prompt_logprobs
        assert binary is None if length is None else len(binary) == length
    for switch in ("given", "ignored"):
        call = peculiar(serve, topk=switch)
        reply = asked(call, sample(call, prompt_logprobs=True, topk_prompt_logprobs=2))
        assert (reply.body.get("topk_prompt_logprobs") is None) == (switch == "ignored")
    call = peculiar(serve, topk="refused")
    with pytest.raises(AssertionError, match="400"):
        sample(call, topk_prompt_logprobs=2)


def test_metrics(serve: Any, batch: Any) -> None:
    """Empty, null, and empty for null in a message."""
    for switch, expected in (("empty", {}), ("null", None)):
        call = peculiar(serve, "0.22.7", metrics=switch)
        model_id = call.model()
        request_id = call.submit("forward", {"model_id": model_id, "seq_id": 1, "forward_input": batch()})
        body = {"model_id": model_id, "seq_id": 2, "adam_params": {"learning_rate": 0.1}}
        assert decode_output(asked(call, request_id, PROTOBUF).body).metrics == {}
        assert asked(call, request_id).body["metrics"] == expected
        assert asked(call, call.submit("optim_step", body)).body["metrics"] == expected


def test_order_of_loads_and_refusals(serve: Any) -> None:
    """load_weights first or never; a number that was refused is used up, or free."""
    call = peculiar(serve, load_first=True, counts_refused=True)
    model_id = call.model()
    path = call.do("save_weights", {"model_id": model_id, "seq_id": 1, "path": "a"})["path"]
    load = {"path": path, "optimizer": False}
    assert call.post("load_weights", {**load, "model_id": model_id, "seq_id": 2}).status == 400
    step = {"model_id": model_id, "adam_params": {"learning_rate": 0.1}}
    assert call.post("optim_step", {**step, "seq_id": 2}).status == 409
    third = call.submit("optim_step", {**step, "seq_id": 3})
    assert call.post("save_weights", {"model_id": model_id, "seq_id": 3}).status == 409
    assert call.submit("optim_step", {**step, "seq_id": 3}) == third
    other = call.model(number=0)
    call.do("load_weights", {**load, "model_id": other, "seq_id": 1})


@pytest.mark.parametrize("form", ["own", "integer", "uuid", "prefixed"])
def test_request_ids(serve: Any, form: str) -> None:
    """Each form leads back to its result, and one that was never given is 404."""
    call = peculiar(serve, ids=form)
    body = {"session_id": call.session(), "model_seq_id": 0, "base_model": "tinkerwire/byte-nano"}
    request_id = call.submit("create_model", {**body, "lora_config": {"rank": 4}})
    assert "model_id" in call.result(request_id)
    if form == "uuid":
        uuid.UUID(request_id)
    assert (form == "integer") == request_id.isdecimal()
    ids = RequestIds(form)
    assert [ids.number(ids.of(number)) for number in (1, 7, 1000)] == [1, 7, 1000]
    assert ids.number("no such thing") is None
    for unknown in ("", "x", ids.of(99), "999999999999999999999999"):
        assert asked(call, unknown).status == 404


def test_they_are_read_from_text() -> None:
    """As the command line gives them."""
    read = Quirks.parse("failure=500, short_paths,result_delay_s=0.5,lacks=telemetry+weights_info,metrics=null")
    assert read == Quirks(
        failure="500", short_paths=True, result_delay_s=0.5, lacks={"telemetry", "weights_info"}, metrics="null"
    )
    assert Quirks.parse("") == Quirks()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("failures=500", "the switches are result_delay_s, not_ready"),
        ("failure=501", "not one of error, detail"),
        ("failure", "write failure=VALUE"),
        ("short_paths=yes", "write short_paths"),
        ("result_delay_s=soon", "'soon' is not a number"),
        ("result_delay_s=-1", "0 or more"),
        ("result_delay_s=nan", "0 or more"),
        ("lacks=nothing", "nothing is no operation"),
    ],
)
def test_what_they_cannot_be_is_refused(text: str, reason: str) -> None:
    """The text names the part that is wrong."""
    with pytest.raises(ValueError, match=reason):
        Quirks.parse(text)
