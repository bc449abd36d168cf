"""Tests of sampling over the wire."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.server_fixtures import Caller, ServerFactory

NANO = "tinkerwire/byte-nano"


def _create_sample_request(sampler_id: str, **changes: Any) -> dict[str, Any]:
    params = {"max_tokens": 3, "seed": 5, **changes.pop("sampling_params", {})}
    chunks = [{"tokens": [72, 101]}, {"tokens": [108], "type": "encoded_text"}]
    return {"sampling_session_id": sampler_id, "prompt": {"chunks": chunks}, "sampling_params": params, **changes}


def test_samples_have_logprobs(call: Caller, sampler_id: str) -> None:
    """The count is the requested one, with one logprob a token; prompt logprobs are optional."""
    result = call.run("asample", _create_sample_request(sampler_id, num_samples=2, seq_id=0))
    assert [len(sequence["tokens"]) for sequence in result["sequences"]] == [3, 3]
    assert all(
        len(sequence["logprobs"]) == 3 and sequence["stop_reason"] == "length" for sequence in result["sequences"]
    )
    assert result.get("prompt_logprobs") is None


def test_prompt_logprobs_are_returned_on_request(call: Caller, sampler_id: str) -> None:
    """The first token has no logprob; the likeliest tokens are pairs."""
    result = call.run("asample", _create_sample_request(sampler_id, prompt_logprobs=True, topk_prompt_logprobs=2))
    assert [prompt_logprob is None for prompt_logprob in result["prompt_logprobs"]] == [True, False, False]
    top = result["topk_prompt_logprobs"]
    assert top[0] is None
    assert all(len(pair) == 2 and len(pair[0]) == 2 for pair in top[1:])


def test_equal_seeds_give_equal_samples(call: Caller, sampler_id: str) -> None:
    """Two requests with one seed return the same tokens."""
    first, repeated = (call.run("asample", _create_sample_request(sampler_id))["sequences"] for _ in range(2))
    assert first == repeated


def test_server_seed_makes_all_samples_repeatable(serve: ServerFactory) -> None:
    """Without a seed in the request, servers of one seed draw alike, and another seed draws differently."""

    def draw(seed: int) -> Any:
        call = serve(seed=seed)
        sample_request = _create_sample_request(
            call.create_sampler(), seq_id=0, sampling_params={"seed": None, "max_tokens": 20}
        )
        return call.run("asample", sample_request)["sequences"]

    assert draw(1) == draw(1) != draw(2)


@pytest.mark.parametrize("stop", [["l", "m"], [108, 109], "zz", [], None])
def test_every_form_of_stop_is_accepted(call: Caller, sampler_id: str, stop: Any) -> None:
    """The forms are a string, strings, token ids, and None."""
    result = call.run(
        "asample", _create_sample_request(sampler_id, sampling_params={"stop": stop, "top_k": 5, "top_p": 0.9})
    )
    assert result["sequences"][0]["stop_reason"] in ("stop", "length")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prompt": {"chunks": [{"type": "image", "data": "AAAA", "format": "png"}]}}, "image"),
        ({"prompt": {"chunks": [{"type": "image_asset_pointer", "location": "x", "format": "png"}]}}, "image"),
        ({"prompt": {"chunks": []}}, "at least one token"),
        ({"sampling_params": {"temperature": -1}}, "temperature"),
        ({"sampling_params": {"max_tokens": -1}}, "max_tokens"),
        ({"topk_prompt_logprobs": -1}, "topk_prompt_logprobs"),
    ],
)
def test_invalid_sample_is_a_user_error(call: Caller, sampler_id: str, change: Any, reason: str) -> None:
    """The future fails with category user and names the argument."""
    failed = call.run("asample", _create_sample_request(sampler_id, **change))
    assert failed["category"] == "user"
    assert reason in failed["error"]


FEW_BYTES = {"sparse_crow_indices": [0, 1, 1], "sparse_col_indices": [0]}


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        ({"data": [1.5, 2], "shape": [2, 1]}, r"data: cannot be read as int64: \[0\] must be a whole number, got 1.5"),
        ({"data": [10**18 * 9.3, 2], "shape": [2, 1]}, "data: cannot be read as int64"),
        ({"data": [1], "shape": [2, 2**40], **FEW_BYTES}, "sparse tensors must not exceed .* got 2199023255552"),
        ({"data": [300, 2], "shape": [2, 1]}, r"target tokens\[0\] must be a token id .* got 300"),
    ],
)
def test_invalid_target_tokens_are_a_user_error(serve: ServerFactory, tensor: Any, reason: str) -> None:
    """This includes a sparse tensor whose few bytes expand beyond any memory."""
    call = serve(wire_version="0.38.0")
    sampler_id = call.create_sampler()
    failed = call.run(
        "asample", _create_sample_request(sampler_id, target_prompt_logprobs={"dtype": "int64", **tensor})
    )
    assert failed["category"] == "user", failed
    assert re.search(reason, failed["error"]), failed


def test_last_logprobs_of_an_unreadable_image_are_rejected(serve: ServerFactory) -> None:
    """The error names the chunk, as for every prompt of unknown length."""
    call = serve(wire_version="0.38.0")
    chunks = [{"type": "image", "data": "AAAA", "format": "png"}]
    changes = {"prompt": {"chunks": chunks}, "prompt_logprobs": True, "prompt_logprobs_last_n": 1}
    reply = call.post("asample", _create_sample_request(call.create_sampler(), **changes))
    assert (reply.status, reply.body["detail"][0]["loc"]) == (422, ["body", "prompt"])
    assert "chunks[0]: image: must be the bytes of a png file, got 3 bytes" in reply.body["detail"][0]["msg"]


def test_sampler_info_has_base_model_and_path(call: Caller) -> None:
    """The info of a sampler has its base model and its path."""
    session_id = call.create_session()
    path = call.run("save_weights_for_sampler", {"model_id": call.create_model(session_id), "path": "a"})["path"]
    body = {"session_id": session_id, "sampling_session_seq_id": 0, "model_path": path}
    sampler_id = call.post("create_sampling_session", body).body["sampling_session_id"]
    assert sampler_id == f"{session_id}:sample:0"
    assert call("GET", f"samplers/{sampler_id}").body == {
        "sampler_id": sampler_id,
        "base_model": NANO,
        "model_path": path,
    }
    assert call.post("create_sampling_session", body).body["sampling_session_id"] == sampler_id
    assert call.post("create_sampling_session", {**body, "base_model": NANO}).status == 409


@pytest.mark.parametrize(
    ("weights", "status"),
    [
        ({}, 422),
        ({"base_model": "llama"}, 404),
        ({"model_path": "weights/a"}, 422),
        ({"model_path": "tinker://m/weights/a"}, 422),
        ({"model_path": "tinker://m/sampler_weights/a"}, 404),
        ({"base_model": NANO, "sampling_session_seq_id": -1}, 422),
    ],
)
def test_sampling_session_without_existing_weights_is_rejected(call: Caller, weights: Any, status: int) -> None:
    """The request has neither base model nor path, or a path that does not exist."""
    body = {"session_id": call.create_session(), "sampling_session_seq_id": 0, **weights}
    assert call.post("create_sampling_session", body).status == status


def test_sampler_has_the_weights_of_its_save(call: Caller) -> None:
    """Saved to disk or directly into a session, the sampler scores those weights, not later ones."""
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    call.train_step(model_id)
    direct = call.run("save_weights_for_sampler", {"model_id": model_id, "sampling_session_seq_id": 0})
    path = call.run("save_weights_for_sampler", {"model_id": model_id, "path": "a"})["path"]
    call.train_step(model_id)
    body = {"session_id": session_id, "sampling_session_seq_id": 1, "model_path": path}
    saved = call.post("create_sampling_session", body).body["sampling_session_id"]
    scored = [
        call.run("asample", _create_sample_request(session_id, prompt_logprobs=True))["prompt_logprobs"]
        for session_id in (direct["sampling_session_id"], saved)
    ]
    base = call.run(
        "asample",
        {**_create_sample_request(""), "sampling_session_id": None, "base_model": NANO, "prompt_logprobs": True},
    )
    assert scored[0] == scored[1] != base["prompt_logprobs"]


def test_path_is_sampled_without_a_sampling_session(call: Caller) -> None:
    """A deleted checkpoint is gone; a new one of the same name has its own weights."""
    model_id = call.create_model()
    logprobs = []
    for _ in range(2):
        path = call.run("save_weights_for_sampler", {"model_id": model_id, "path": "a"})["path"]
        sample_request = {
            **_create_sample_request(""),
            "sampling_session_id": None,
            "model_path": path,
            "prompt_logprobs": True,
        }
        logprobs.append(call.run("asample", sample_request)["prompt_logprobs"][1:])
        assert call.run("asample", sample_request)["prompt_logprobs"][1:] == logprobs[-1]
        assert call("DELETE", f"training_runs/{model_id}/checkpoints/sampler_weights/a").status == 204
        assert call.post("asample", sample_request).status == 404
        call.train_step(model_id)
    assert logprobs[0] != logprobs[1]


def test_full_queue_is_429_on_request(serve: ServerFactory) -> None:
    """With the backpressure header the response has Retry-After; without it the sample is queued."""
    call = serve(max_queued_samples=0)
    sample_request = {**_create_sample_request(""), "sampling_session_id": None, "base_model": NANO}
    pushed = call.post("asample", sample_request, headers={"X-Tinker-Sampling-Backpressure": "1"})
    assert (pushed.status, pushed.headers["retry-after"]) == (429, "1")
    assert call.post("asample", sample_request).status == 200
