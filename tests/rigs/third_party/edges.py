"""Requests of the probe: spellings of several client versions, and requests that a server should reject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.rigs.third_party.bodies import (
    DATUM,
    MESSAGE,
    NULL_SHAPE,
    OUTSIDE,
    SPARSE,
    TAGGED,
    Json,
    compress_zstd,
    encode_protobuf,
    make_forward_backward,
)
from tests.rigs.third_party.server import BASE_MODEL

if TYPE_CHECKING:
    from tests.rigs.third_party.probe import Probe

LORA: Json = {"rank": 8, "seed": None, "train_unembed": True, "train_mlp": True, "train_attn": True}
ADAM: Json = {"learning_rate": 0.001}
ALL_ADAM: Json = ADAM | {"beta1": 0.9, "beta2": 0.95, "eps": 1e-12, "weight_decay": 0.0, "grad_clip_norm": 0.0}


def send_all(p: Probe) -> None:
    """Send all requests, in an order that leaves the server usable until the last."""
    session = _probe_sessions(p)
    model = _probe_models(p, session)
    _probe_training(p, model)
    if p.is_protobuf:
        _probe_protobuf_training(p, model)
    _probe_optimizer(p, model)
    _probe_weights(p, model)
    _probe_loading(p, session, model)
    _probe_checkpoints(p, model)
    sampling = _probe_sampling(p, session, model)
    _probe_samples_beyond(p, sampling)
    _probe_futures(p)
    _probe_missing(p, session)
    _probe_poison(p, model, sampling)


def _probe_sessions(p: Probe) -> str:
    body: Json = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    p.record("create_session without type, null metadata", "POST", "create_session", body)
    newer = {"project_id": "p", "display_name": "x"}
    p.record("create_session with project_id and display_name", "POST", "create_session", body | newer)
    p.record("create_session without tags", "POST", "create_session", {"sdk_version": "0.16.1"})
    session = p.record("create_session with type", "POST", "create_session", body | {"type": "create_session"})
    session_id: str = session["session_id"]
    p.record("heartbeat", "POST", "session_heartbeat", {"session_id": session_id, "type": "session_heartbeat"})
    p.record("heartbeat of an unknown session", "POST", "session_heartbeat", {"session_id": "no-such"})
    p.record("client/config", "POST", "client/config", {"sdk_version": "0.16.1"})
    p.record("client/config without a body", "POST", "client/config")
    p.record("client/dynamic_config", "POST", "client/dynamic_config", {"sdk_version": "0.25.0"})
    p.record("capabilities", "GET", "get_server_capabilities")
    p.record("wrong method", "GET", "create_session")
    p.record("a body that is not JSON", "POST", "create_session", b"{")
    p.record("a protobuf body that cannot be parsed", "POST", "forward_backward", b"\x08\x01", MESSAGE)
    event = {
        "event": "SESSION_START",
        "event_id": "e",
        "event_session_index": 0,
        "severity": "INFO",
        "timestamp": "2026-01-01T00:00:00+00:00",
    }
    batch = {"events": [event], "platform": "Linux", "sdk_version": "0.16.1", "session_id": session_id}
    p.record("telemetry", "POST", "telemetry", batch)
    return session_id


def _probe_models(p: Probe, session: str) -> str:
    body = {
        "session_id": session,
        "model_seq_id": 0,
        "base_model": BASE_MODEL,
        "user_metadata": None,
        "lora_config": LORA,
    }
    created = p.record("create_model", "POST", "create_model", body)
    repeated = p.record("create_model again, same model_seq_id", "POST", "create_model", body)
    p.record("create_model, lora_config null", "POST", "create_model", body | {"lora_config": None})
    p.record_result(
        "create_model of rank 64 (the server allows 8)", "create_model", body | {"lora_config": LORA | {"rank": 64}}
    )
    for future in (created, repeated):
        p.send("POST", "retrieve_future", {"request_id": future["request_id"]})
    model: str = created["model_id"]
    p.record("get_info", "POST", "get_info", {"model_id": model, "type": "get_info"})
    p.record("get_info of an unknown model", "POST", "get_info", {"model_id": "no-such"})
    newer = {"model_seq_id": 1, "kind": "lora", "optimizer_config": None, "type": "create_model"}
    p.record_result("create_model with kind, optimizer_config and type", "create_model", body | newer)
    p.record("training run", "GET", f"training_runs/{model}")
    p.record("unload of the second model", "POST", "unload_model", {"model_id": repeated["model_id"]})
    return model


def _train(p: Probe, label: str, request: Json, **options: Any) -> None:
    if p.is_protobuf:
        p.record_result(label, "forward_backward", encode_protobuf(request), MESSAGE, **options)
    else:
        p.record_result(label, "forward_backward", request, **options)


def _probe_training(p: Probe, model: str) -> None:
    request = make_forward_backward(model, DATUM)
    forward_request = {"forward_input": request["forward_backward_input"], "model_id": model, "seq_id": 1}
    p.record("forward, JSON", "POST", "forward", forward_request)
    _train(p, "forward_backward", request | {"seq_id": 2})
    _train(p, "forward_backward, the same again", request | {"seq_id": 2})
    _train(
        p, "forward_backward, the same seq_id, other data", make_forward_backward(model, DATUM, DATUM) | {"seq_id": 2}
    )
    _train(p, "forward_backward, a gap in seq_id", request | {"seq_id": 9})
    _train(p, "forward_backward, a seq_id below the last", request | {"seq_id": 3})
    _train(p, "forward_backward without seq_id, tagged chunks", make_forward_backward(model, TAGGED))
    _train(p, "forward_backward, null shapes", make_forward_backward(model, NULL_SHAPE) | {"seq_id": 10})
    _train(p, "forward_backward, an unknown field", request | {"seq_id": 11, "newer": 1})
    _train(
        p, "forward_backward, result requested as protobuf", request | {"seq_id": 12}, accept=MESSAGE["content-type"]
    )
    _train(p, "forward_backward, sparse weights", make_forward_backward(model, SPARSE) | {"seq_id": 13})
    unknown = make_forward_backward(model, DATUM, loss_fn="dro", config={"beta": 0.05}) | {"seq_id": 13}
    _train(p, "forward_backward, loss dro", unknown)
    unknown_key = make_forward_backward(model, DATUM, loss_fn="cross_entropy", config={"strange": 1.0}) | {"seq_id": 13}
    _train(p, "forward_backward, a strange key in loss_fn_config", unknown_key)
    _train(p, "forward_backward of an unknown model", make_forward_backward("no-such", DATUM) | {"seq_id": 13})
    _train(p, "forward_backward, no datums", make_forward_backward(model) | {"seq_id": 14})


def _probe_protobuf_training(p: Probe, model: str) -> None:
    """Send the requests for servers that accept protobuf."""
    request = make_forward_backward(model, DATUM)
    p.record("forward_backward, JSON", "POST", "forward_backward", request)
    p.record("forward, protobuf", "POST", "forward", encode_protobuf(request), MESSAGE)
    forward_only = encode_protobuf(request | {"seq_id": 50}, forward_only=True)
    p.record_result("forward_backward, forward_only", "forward_backward", forward_only, MESSAGE)
    compressed = compress_zstd(encode_protobuf(request | {"seq_id": 51}))
    p.record_result("forward_backward, zstd", "forward_backward", compressed, MESSAGE | {"content-encoding": "zstd"})
    p.record(
        "forward_backward, called zstd and is not",
        "POST",
        "forward_backward",
        encode_protobuf(request | {"seq_id": 52}),
        MESSAGE | {"content-encoding": "zstd"},
    )
    p.record("forward_backward, empty", "POST", "forward_backward", b"", MESSAGE)
    p.record("asample, protobuf", "POST", "asample", b"\x08\x01", MESSAGE)


def _probe_optimizer(p: Probe, model: str) -> None:
    p.record_result("optim_step, one Adam field", "optim_step", {"model_id": model, "adam_params": ADAM, "seq_id": 15})
    body = {"model_id": model, "adam_params": ALL_ADAM, "seq_id": 16, "type": "optim_step"}
    p.record_result("optim_step, all Adam fields and type", "optim_step", body)
    p.record_result(
        "optim_step with no gradients since the last, result requested as protobuf",
        "optim_step",
        body | {"seq_id": 17},
        accept=MESSAGE["content-type"],
    )
    optimizer_params = {"optimizer_params": ALL_ADAM | {"type": "adam"}}
    p.record_result("optim_step with optimizer_params, too", "optim_step", body | optimizer_params | {"seq_id": 18})
    p.record_result(
        "optim_step with optimizer_params alone", "optim_step", {"model_id": model, "seq_id": 19} | optimizer_params
    )
    p.record_result("optim_step, the seq_id of a forward_backward", "optim_step", body | {"seq_id": 9})
    p.record("optim_step of an unknown model", "POST", "optim_step", body | {"model_id": "no-such"})


def _probe_weights(p: Probe, model: str) -> None:
    newer = {"overwrite": False, "ttl_seconds": 3600, "type": "save_weights"}
    p.record_result("save_weights", "save_weights", {"model_id": model, "path": "one", "seq_id": 20} | newer)
    p.record_result("save_weights under the same name", "save_weights", {"model_id": model, "path": "one"})
    overwriting = {"model_id": model, "path": "one", "overwrite": True}
    p.record_result("save_weights under the same name with overwrite", "save_weights", overwriting)
    p.record("save_weights without a name", "POST", "save_weights", {"model_id": model, "seq_id": 21})
    p.record("save_weights, a slash in the name", "POST", "save_weights", {"model_id": model, "path": "a/b"})
    save = {"model_id": model, "path": "two", "seq_id": 22}
    p.record_result("save_weights_for_sampler with a name", "save_weights_for_sampler", save)
    unnamed = {"model_id": model, "sampling_session_seq_id": 5, "seq_id": 23}
    p.record_result("save_weights_for_sampler without a name", "save_weights_for_sampler", unnamed)


def _probe_loading(p: Probe, session: str, model: str) -> None:
    load = {"model_id": model, "path": f"tinker://{model}/weights/one", "optimizer": True}
    p.record_result("load_weights with optimizer", "load_weights", load | {"seq_id": 24})
    p.record_result("load_weights without optimizer", "load_weights", load | {"optimizer": False})
    p.record("load_weights, a path of another form", "POST", "load_weights", load | {"path": "one"})
    create = {"session_id": session, "model_seq_id": 7, "base_model": BASE_MODEL, "lora_config": LORA}
    created = p.send("POST", "create_model", create).body
    first = load | {"model_id": created["model_id"], "seq_id": 1, "type": "load_weights", "weights_access_token": None}
    p.record("load_weights, a path that is not there", "POST", "load_weights", first | {"path": "tinker://a/weights/b"})
    p.record_result("load_weights as a model's first operation", "load_weights", first)
    p.record("unload of that model", "POST", "unload_model", {"model_id": created["model_id"]})
    by_load = {"session_id": session, "model_seq_id": 8, "path": load["path"], "optimizer": True}
    p.record("load_weights with session_id in place of model_id", "POST", "load_weights", by_load)


def _probe_checkpoints(p: Probe, model: str) -> None:
    p.record("checkpoints of the run", "GET", f"training_runs/{model}/checkpoints")
    p.record("weights_info", "POST", "weights_info", {"tinker_path": f"tinker://{model}/weights/one"})
    sampler = {"tinker_path": f"tinker://{model}/sampler_weights/two"}
    p.record("weights_info of sampler weights", "POST", "weights_info", sampler)
    place = f"training_runs/{model}/checkpoints"
    p.record("archive, as the SDK requests it", "GET", f"{place}/sampler_weights/two/archive")
    p.record("archive, by name alone", "GET", f"{place}/two/archive")
    p.record("ttl", "PUT", f"{place}/weights/one/ttl", {"ttl_seconds": 3600})
    p.record("publish", "POST", f"{place}/weights/one/publish")
    p.record("unpublish", "DELETE", f"{place}/weights/one/publish")
    p.record("delete of a checkpoint that is not there", "DELETE", f"{place}/weights/none")
    p.record("delete by name alone", "DELETE", f"{place}/one")
    p.record("delete", "DELETE", f"{place}/weights/one")


def _probe_sampling(p: Probe, session: str, model: str) -> Json:
    create = {"session_id": session, "sampling_session_seq_id": 0}
    with_path = create | {"model_path": f"tinker://{model}/two"}
    p.record("create_sampling_session, path without sampler_weights", "POST", "create_sampling_session", with_path)
    created = p.record(
        "create_sampling_session", "POST", "create_sampling_session", create | {"base_model": BASE_MODEL}
    )
    p.record("sampler", "GET", f"samplers/{created['sampling_session_id']}")
    body = {
        "sampling_session_id": created["sampling_session_id"],
        "seq_id": 0,
        "num_samples": 1,
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": [70, 71, 72]}]},
        "sampling_params": {"max_tokens": 2, "seed": 1},
    }
    p.record_result("asample, tagged chunks", "asample", body)
    p.record_result(
        "asample, result requested as protobuf", "asample", body | {"seq_id": 7}, accept=MESSAGE["content-type"]
    )
    p.record_result("asample, the same seq_id again", "asample", body)
    p.record_result("asample with prompt logprobs", "asample", body | {"seq_id": 1, "prompt_logprobs": True})
    p.record_result("asample with topk_prompt_logprobs", "asample", body | {"seq_id": 1, "topk_prompt_logprobs": 2})
    newer = {"topk_sample_logprobs": 2, "target_prompt_logprobs": None, "type": "sample"}
    p.record_result("asample with newer fields", "asample", body | {"seq_id": 8} | newer)
    return body


def _probe_samples_beyond(p: Probe, body: Json) -> None:
    p.record_result("asample, topk_prompt_logprobs null", "asample", body | {"seq_id": 9, "topk_prompt_logprobs": None})
    p.record_result("asample without max_tokens", "asample", body | {"seq_id": 2, "sampling_params": {}})
    null_temperature = {"max_tokens": 2, "stop": [72], "temperature": None}
    p.record_result("asample, temperature null", "asample", body | {"seq_id": 3, "sampling_params": null_temperature})
    stop_text = {"max_tokens": 2, "stop": "stop"}
    p.record_result("asample, stop is one text", "asample", body | {"seq_id": 3, "sampling_params": stop_text})
    large_seed = {"max_tokens": 2, "seed": 2**40}
    p.record_result("asample, a seed beyond 32 bits", "asample", body | {"seq_id": 3, "sampling_params": large_seed})
    empty: Json = {"prompt": {"chunks": [{"tokens": []}]}}
    p.record_result("asample, empty prompt", "asample", body | {"seq_id": 4} | empty)
    image = {"type": "image", "data": "AA==", "format": "png", "height": 1, "width": 1, "tokens": 1}
    p.record_result("asample, an image chunk", "asample", body | {"seq_id": 6, "prompt": {"chunks": [image]}})
    unknown = {"sampling_session_id": "no-such"}
    p.record("asample, unknown sampling session", "POST", "asample", body | unknown)


def _probe_futures(p: Probe) -> None:
    p.record("unknown future", "POST", "retrieve_future", {"request_id": "999999"})
    p.record("a future id that is not a number", "POST", "retrieve_future", {"request_id": "no-such"})
    body = {"request_id": "1", "allow_metadata_only": True}
    p.record("an old future once more, with allow_metadata_only", "POST", "retrieve_future", body)
    p.record("retrieve_futures", "POST", "retrieve_futures", {"request_ids": ["1"]})


def _probe_missing(p: Probe, session: str) -> None:
    p.record("sessions", "GET", "sessions")
    p.record("session", "GET", f"sessions/{session}")
    p.record("end of a session", "POST", f"sessions/{session}/finish", {})
    p.record("checkpoints of the user", "GET", "checkpoints")


def _probe_poison(p: Probe, model: str, sampling: Json) -> None:
    """Send values that are not numbers, last, because some servers never recover from them."""
    outside_vocabulary = {"prompt": {"chunks": [{"tokens": [70, 9999]}]}, "prompt_logprobs": True}
    p.record_result("asample, a token outside the vocabulary", "asample", sampling | {"seq_id": 5} | outside_vocabulary)
    optim = {"model_id": model, "adam_params": ADAM}
    _train(p, "forward_backward, a token outside the vocabulary", make_forward_backward(model, OUTSIDE))
    p.record_result("optim_step on those gradients", "optim_step", optim)
    _train(p, "forward_backward after that", make_forward_backward(model, DATUM))
    p.record_result("unload_model", "unload_model", {"model_id": model, "type": "unload_model"})
    _train(p, "forward_backward after unload_model", make_forward_backward(model, DATUM))
