"""Tests of models: created, trained, saved, loaded and unloaded over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from support.server_fixtures import BatchFactory, Caller, ServerFactory

NANO = "tinkerwire/byte-nano"


def test_training_lowers_the_loss(call: Caller) -> None:
    """Steps of forward_backward and optim_step lower the loss that forward returns."""
    model_id = call.create_model()
    before = call.loss(model_id)
    for _ in range(3):
        call.train_step(model_id)
    assert call.loss(model_id) < before


def test_loss_output_has_the_wire_format(call: Caller, batch: BatchFactory) -> None:
    """The output has one map of tensors per datum, with logprobs, and the loss among the metrics."""
    output = call.run("forward", {"model_id": call.create_model(), "forward_input": batch()})
    [tensors] = output["loss_fn_outputs"]
    assert tensors["logprobs"].keys() == {"data", "dtype", "shape"}
    assert (tensors["logprobs"]["dtype"], tensors["logprobs"]["shape"]) == ("float32", [4])
    assert output["metrics"]["loss:sum"] == pytest.approx(-sum(tensors["logprobs"]["data"]), rel=1e-5)
    assert isinstance(output["loss_fn_output_type"], str)


def test_model_id_has_session_and_number(call: Caller) -> None:
    """A model is named after its session and number, as on the Tinker service."""
    session_id = call.create_session()
    assert call.create_model(session_id, 3) == f"{session_id}:train:3"


def test_model_without_lora_config_has_rank_32(call: Caller) -> None:
    """The field lora_config is optional."""
    body = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": NANO}
    model_id = call.run("create_model", body)["model_id"]
    info = call.post("get_info", {"model_id": model_id}).body
    assert (info["lora_rank"], info["is_lora"], info["model_data"]["model_name"]) == (32, True, NANO)


def test_equal_model_seq_id_is_the_same_model(call: Caller) -> None:
    """A resend of create_model creates no second model; another request with the number is a conflict."""
    body = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": NANO}
    assert call.submit("create_model", body) == call.submit("create_model", body)
    rejection = call.post("create_model", {**body, "lora_config": {"rank": 2}})
    assert (rejection.status, rejection.headers["x-should-retry"]) == (409, "false")
    assert call("GET", "training_runs").body["cursor"]["total_count"] == 1


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"base_model": "llama"}, 404, NANO),
        ({"session_id": "s-none"}, 404, "create_session"),
        ({"lora_config": {"rank": 0}}, 422, "1 to 32"),
        ({"lora_config": {"rank": 4, "seed": -1}}, 422, "seed"),
        (
            {"lora_config": {"rank": 4, "train_mlp": False, "train_attn": False, "train_unembed": False}},
            422,
            "at least one of train_attn",
        ),
        ({"model_seq_id": -1}, 422, "at least 0"),
    ],
)
def test_invalid_model_is_rejected_at_once(call: Caller, change: Any, status: int, reason: str) -> None:
    """The error lists the valid values."""
    body = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": NANO, **change}
    reply = call.post("create_model", body)
    assert reply.status == status
    assert reason in str(reply.body["detail"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_input": {"chunks": [{"tokens": [999]}]}}, "999"),
        ({"model_input": {"chunks": []}}, "at least one token"),
        ({"model_input": {"chunks": [{"type": "image", "data": "AAAA", "format": "png"}]}}, "image"),
        ({"loss_fn_inputs": {}}, "target_tokens"),
    ],
)
def test_invalid_datum_is_a_user_error(call: Caller, batch: BatchFactory, change: Any, reason: str) -> None:
    """The future fails with category user and an error that names the problem of the datum."""
    training_input = batch()
    training_input["data"][0].update(change)
    failed = call.run("forward_backward", {"model_id": call.create_model(), "forward_backward_input": training_input})
    assert failed["category"] == "user"
    assert reason in failed["error"]


def test_too_large_sparse_tensor_is_a_user_error(serve: ServerFactory, batch: BatchFactory) -> None:
    """A few bytes can expand beyond the memory, in one tensor or in a batch in total."""
    call = serve(wire_version="0.18.2")
    model_id = call.create_model()
    sparse = {"dtype": "int64", "sparse_crow_indices": [0, 1, 1, 1, 1], "sparse_col_indices": [0], "data": [1]}
    for datums, columns in ((1, 2**40), (2**10, 2**14)):
        training_input = batch()
        training_input["data"][0]["loss_fn_inputs"]["target_tokens"] = {**sparse, "shape": [4, columns]}
        training_input["data"] *= datums
        failed = call.run("forward_backward", {"model_id": model_id, "forward_backward_input": training_input})
        assert failed["category"] == "user"
        assert (
            f"data: sparse tensors must not exceed 16777216 values in dense form, got {datums * 4 * columns}"
            in failed["error"]
        )


def test_out_of_range_adam_parameter_is_a_user_error(call: Caller) -> None:
    """The error names the parameter."""
    failed = call.run("optim_step", {"model_id": call.create_model(), "adam_params": {"beta1": 2}})
    assert (failed["category"], "beta1" in failed["error"]) == ("user", True)


def test_overflowing_step_is_a_user_error(call: Caller, batch: BatchFactory) -> None:
    """JSON has no infinity, so that the error describes the overflow in text."""
    model_id = call.create_model()
    body = {"model_id": model_id, "forward_backward_input": batch()}
    call.run("forward_backward", body)
    failed = call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 1e308}})
    assert failed["category"] == "user"
    assert call.run("forward_backward", body)["category"] == "user"


def test_unload_finishes_the_queue_and_removes_the_model(call: Caller, batch: BatchFactory) -> None:
    """Operations queued before unload_model still run; later ones are 404."""
    model_id = call.create_model()
    queued = call.submit("forward", {"model_id": model_id, "forward_input": batch()})
    assert call.run("unload_model", {"model_id": model_id})["model_id"] == model_id
    assert "metrics" in call.result(queued)
    rejection = call.post("forward", {"model_id": model_id, "forward_input": batch()})
    assert (rejection.status, "unloaded" in rejection.body["detail"]) == (404, True)
    assert call("GET", f"training_runs/{model_id}").status == 200


def test_models_are_independent(call: Caller) -> None:
    """A step on one model leaves another of the same base and seed unchanged."""
    session_id = call.create_session()
    first, second = call.create_model(session_id, 0), call.create_model(session_id, 1)
    before = call.loss(second)
    call.train_step(first)
    assert call.loss(second) == before
    assert call.loss(first) != before
