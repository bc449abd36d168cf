"""Writer of pickles of an official SDK's models as one line of JSON; runs in a Python that has that SDK."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import zlib
from typing import Any

import numpy as np
import tinker
from tinker import types


def make_topk(name: str) -> Any:
    """Return two matrices with the two most likely tokens at one position."""
    module = __import__(f"tinker.types.{name}", fromlist=["x"])
    (cls,) = (getattr(module, exported) for exported in module.__all__)
    return cls(token_ids=np.array([[7, 8]], np.int32), logprobs=np.array([[-0.5, -1.5]], np.float32))


def make_results() -> dict[str, Any]:
    """Return sampling results: pydantic models in old versions, dataclasses with arrays in newer ones."""
    sequence = types.SampledSequence
    if hasattr(sequence, "model_fields"):
        sample = sequence(stop_reason="length", tokens=[5, 6], logprobs=[-0.5, -1.0])
        response = types.SampleResponse(
            sequences=[sample], prompt_logprobs=[None, -1.0], topk_prompt_logprobs=[None, [(7, -0.5), (8, -1.5)]]
        )
        return {"sequence": sample, "response": response}
    is_new = "sequence_id" in sequence.__dataclass_fields__
    newer = {"sequence_id": "q", "topk_logprobs_np": make_topk("topk_logprobs")} if is_new else {}
    arrays = {"tokens_np": np.array([5, 6], np.int32), "logprobs_np": np.array([-0.5, -1.0], np.float32)}
    sample = sequence(stop_reason="length", **arrays, **newer)
    response = types.SampleResponse(
        sequences=[sequence(stop_reason="length", **arrays, **newer)],
        prompt_logprobs_np=np.array([np.nan, -1.0], np.float32),
        topk_prompt_logprobs_np=make_topk("topk_logprobs" if is_new else "topk_prompt_logprobs"),
    )
    # Lists that were read once are kept beside the arrays, in the pickle too.
    _ = response.sequences[0].tokens, response.prompt_logprobs
    return {"sequence": sample, "response": response}


def make_models() -> dict[str, Any]:
    """Return at least one object of each kind that users pickle."""
    ids = types.TensorData(data=[3, 4], dtype="int64", shape=[2])
    table = types.TensorData(data=[1.0, 2.0, 3.0, 4.0], dtype="float32", shape=[2, 2])
    text = types.ModelInput.from_ints([1, 2])
    image = types.ImageChunk(data=b"abc", format="png")
    output = {"loss_fn_output_type": "x", "loss_fn_outputs": [{"logprobs": table}], "metrics": {"loss:sum": 1.5}}
    return {
        "datum": types.Datum(model_input=text, loss_fn_inputs={"target_tokens": ids, "weights": table}),
        "model_input": types.ModelInput(chunks=[types.EncodedTextChunk(tokens=[1, 2]), image]),
        "tensor": table,
        "adam": types.AdamParams(learning_rate=0.001, beta1=0.5),
        "params": types.SamplingParams(max_tokens=3, stop=["end"], temperature=0.5),
        "output": types.ForwardBackwardOutput(**output),
        "lora": types.LoraConfig(rank=3),
        "run": types.TrainingRun(
            training_run_id="r", base_model="b", model_owner="o", is_lora=True, last_request_time="2026-01-02T03:04:05Z"
        ),
        **make_results(),
    }


if __name__ == "__main__":
    pickles = {
        protocol: base64.b64encode(zlib.compress(pickle.dumps(make_models(), protocol), 9)).decode()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    }
    json.dump({"version": tinker.__version__, "pickles": pickles}, sys.stdout)
    print()  # noqa: T201
