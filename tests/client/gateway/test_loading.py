"""Models that the gateway creates from saved weights in two steps."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import zstandard

from support.gateway_clients import RUN, Client, Upstreams, json_response, poll, value_of
from tinkerwire._gateway import memory as kinds
from tinkerwire._gateway.memory import Memory
from tinkerwire_base.call import PROTOBUF, WireRequest
from tinkerwire_generated.protobuf import message_class

PATH = "tinker://run/weights/a"
CREATE = {"session_id": "s1", "model_seq_id": 0, "path": PATH, "optimizer": False, "type": "load_weights"}


def _prepare_load(upstream: Upstreams) -> None:
    results = {
        "create": {"model_id": "upstream-model"},
        "load": {"path": PATH},
        "info": {"metrics": {}},
    }
    upstream.answers["weights_info"] = json_response({"base_model": "base", "is_lora": True, "lora_rank": 8})
    upstream.answers["create_model"] = json_response({"request_id": "create"})
    upstream.answers["load_weights"] = json_response({"request_id": "load"})
    upstream.answers["optim_step"] = json_response({"request_id": "info"})
    upstream.answers["retrieve_future"] = lambda request: json_response(results[_request_id(request)])


def _request_id(request: WireRequest) -> str:
    return str(orjson.loads(request.content or b"")["request_id"])


def test_load_that_creates_a_model_becomes_creation_and_load(upstream: Upstreams) -> None:
    _prepare_load(upstream)
    client = Client(upstream)
    request_id = value_of(client.post("load_weights", CREATE, "0.38.0"))["request_id"]
    assert upstream.body("create_model")["lora_config"]["rank"] == 8
    assert poll(client, request_id)["model_id"] == "upstream-model"
    assert poll(client, request_id)["path"] == PATH
    (load,) = upstream.named("load_weights")
    sent = upstream.body("load_weights")
    assert (sent["model_id"], sent["path"], sent["optimizer"]) == ("upstream-model", PATH, False)
    assert "seq_id" not in sent, load
    # The client computes the id of the model from its session.
    step = {"model_id": "s1:train:0", "seq_id": 1, "adam_params": {}, "type": "optim_step"}
    assert client.post("optim_step", step, "0.38.0").status == 200
    assert upstream.body("optim_step")["model_id"] == "upstream-model"


@pytest.mark.parametrize("encoding", ["", "zstd"])
def test_protobuf_batch_and_path_name_the_loaded_model(upstream: Upstreams, encoding: str) -> None:
    """Protobuf has no names of fields by which an id could be found."""
    _prepare_load(upstream)
    upstream.answers["forward_backward"] = json_response({"request_id": "info"})
    upstream.answers["training_runs/upstream-model"] = json_response({"training_run_id": "upstream-model"})
    flags = {"proto_write_fwdbwd": True, "fwd_via_fwdbwd": True, "proto_compress_fwdbwd": True}
    upstream.answers["client/config"] = json_response(flags)
    client = Client(upstream, None)
    poll(client, value_of(client.post("load_weights", CREATE, "0.38.0"))["request_id"])
    for model_id, expected in {"s1:train:0": "upstream-model", "s2:train:0": "s2:train:0", "other": "other"}.items():
        message = message_class("ForwardBackwardRequest")(model_id=model_id, seq_id=1, loss_fn="cross_entropy")
        message.data.add().model_input.add().encoded_text.tokens = b"\x01\0\0\0"
        content, headers = message.SerializeToString(), {"Content-Type": PROTOBUF}
        if encoding:
            content, headers = zstandard.compress(content), {**headers, "Content-Encoding": encoding}
        assert client.post("forward_backward", content, "0.38.0", headers).status == 200
        request = upstream.named("forward_backward")[-1]
        sent = request.content or b""
        if "content-encoding" in {name.lower() for name in request.headers}:
            sent = zstandard.decompress(sent)
        assert message_class("ForwardBackwardRequest").FromString(sent).model_id == expected
    assert client.get("training_runs/s1:train:0", "0.38.0").status == 200


def test_another_gateway_with_the_state_finishes_a_load(upstream: Upstreams, tmp_path: Path) -> None:
    """The second one neither creates nor loads again."""
    _prepare_load(upstream)
    memory = Memory(tmp_path / "state.sqlite3")
    first = Client(upstream, memory=memory)
    request_id = value_of(first.post("load_weights", CREATE, "0.38.0"))["request_id"]
    assert poll(first, request_id)["model_id"] == "upstream-model"
    first.close()
    second = Client(upstream, memory=Memory(tmp_path / "state.sqlite3"))
    assert poll(second, request_id)["model_id"] == "upstream-model"
    assert len(upstream.named("load_weights")) == len(upstream.named("create_model")) == 1
    step = {"model_id": "s1:train:0", "seq_id": 1, "adam_params": {}, "type": "optim_step"}
    second.post("optim_step", step, "0.38.0")
    second.close()
    assert upstream.body("optim_step")["model_id"] == "upstream-model"


def test_conflict_of_the_load_does_not_end_the_poll(upstream: Upstreams) -> None:
    """A server that still handles the first attempt responds with 409, after which clients end a poll."""
    _prepare_load(upstream)
    upstream.answers["load_weights"] = json_response({"detail": "the request is being handled"}, 409)
    client = Client(upstream)
    request_id = value_of(client.post("load_weights", CREATE, "0.38.0"))["request_id"]
    headers = {"X-Tinker-Request-Type": "LoadWeights"}
    response = client.post("retrieve_future", {"request_id": request_id}, "0.38.0", headers)
    assert (response.status, value_of(response)["type"]) == (408, "try_again")
    upstream.answers["load_weights"] = json_response({"request_id": "load"})
    assert poll(client, request_id)["path"] == PATH
    first, second = (request.headers["x-idempotency-key"] for request in upstream.named("load_weights"))
    assert first == second


@pytest.mark.parametrize("status", [400, 404, 422])
def test_rejected_load_is_the_failure_of_the_future(upstream: Upstreams, status: int) -> None:
    """Clients repeat a poll after a status 400, and take a 404 for a lost future."""
    _prepare_load(upstream)
    upstream.answers["load_weights"] = json_response({"detail": "no such weights"}, status)
    client = Client(upstream)
    request_id = value_of(client.post("load_weights", CREATE, "0.38.0"))["request_id"]
    assert poll(client, request_id) == {"error": "no such weights", "category": "unknown"}


def test_load_that_the_upstream_cannot_do_creates_no_model(upstream: Upstreams) -> None:
    """Loading the optimizer is newer than the upstream."""
    _prepare_load(upstream)
    client = Client(upstream, "0.4.1")
    response = client.post("load_weights", {**CREATE, "optimizer": True}, "0.38.0")
    assert response.status == 400
    assert "optimizer" in value_of(response)["detail"]
    assert not upstream.named("create_model")


def test_failed_creation_is_the_failure_of_the_load(upstream: Upstreams) -> None:
    _prepare_load(upstream)
    upstream.answers["retrieve_future"] = json_response({"error": "no room", "category": "server"})
    client = Client(upstream)
    request_id = value_of(client.post("load_weights", CREATE, "0.38.0"))["request_id"]
    assert poll(client, request_id) == {"error": "no room", "category": "server"}
    assert not upstream.named("load_weights")


def test_protobuf_batches_of_a_loaded_model_name_the_upstreams_model(upstream: Upstreams) -> None:
    """Clients use the id that load_weights gave them before the upstream had one."""
    _prepare_load(upstream)
    upstream.answers["client/config"] = json_response({})
    upstream.answers["forward_backward"] = json_response({"request_id": "info"})
    memory = Memory()
    memory.put(kinds.MODEL, "s1:train:0", "upstream-model")
    client = Client(upstream, "0.38.0", memory=memory)
    for model_id, expected in (("s1:train:0", "upstream-model"), ("other", "other")):
        message = message_class("ForwardBackwardRequest")(model_id=model_id, seq_id=1, loss_fn="cross_entropy")
        headers = {"Content-Type": PROTOBUF}
        assert client.post("forward_backward", message.SerializeToString(), "0.38.0", headers).status == 200
        sent = message_class("ForwardBackwardRequest").FromString(upstream.named("forward_backward")[-1].content)
        assert sent.model_id == expected


def test_unknown_weights_are_the_upstreams_404(upstream: Upstreams) -> None:
    upstream.answers["weights_info"] = json_response({"detail": "no such weights"}, 404)
    response = Client(upstream).post("load_weights", CREATE, "0.38.0")
    assert (response.status, value_of(response)) == (404, {"detail": "no such weights"})


def test_unknown_weights_of_a_known_run_are_the_upstreams_404(upstream: Upstreams) -> None:
    """The run would describe weights that were deleted, or never existed."""
    upstream.answers["weights_info"] = json_response({"detail": "no such weights"}, 404)
    upstream.answers["training_runs/run"] = json_response(RUN)
    client = Client(upstream, None)
    for name, body in (("weights_info", {"tinker_path": PATH}), ("load_weights", CREATE)):
        response = client.post(name, body, "0.38.0")
        assert (response.status, value_of(response)) == (404, {"detail": "no such weights"})


def test_failure_of_the_second_look_at_the_weights_reaches_the_client(upstream: Upstreams) -> None:
    """An upstream without weights_info may be busy: clients repeat the request, but not after a 404."""
    upstream.answers["training_runs/run"] = json_response({"detail": "busy"}, 503)
    response = Client(upstream, None).post("load_weights", CREATE, "0.38.0")
    assert (response.status, value_of(response)) == (503, {"detail": "busy"})


def test_invalid_id_of_the_gateway_is_a_404(upstream: Upstreams) -> None:
    response = Client(upstream).post("retrieve_future", {"request_id": "gw:load:nonsense"}, "0.38.0")
    assert response.status == 404
