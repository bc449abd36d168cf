"""Runs in the environment of the official SDK 0.38.0: its code makes and reads binary messages.

python binary_worker.py FOLDER: writes request.bin by its own code, and what it reads in the other files as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tinker
from tinker.proto.request_conv import forward_backward_request_to_proto
from tinker.proto.response_conv import deserialize_forward_backward_output, deserialize_sample_response
from tinker.types.forward_backward_input import ForwardBackwardInput
from tinker.types.forward_backward_request import ForwardBackwardRequest


def request() -> ForwardBackwardRequest:
    """Text and image, a tensor without shape, a dense and a sparse matrix, numbers and texts in the config."""
    image = tinker.types.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=3)
    text = tinker.types.EncodedTextChunk(tokens=[1, -2, 2**31 - 1])
    sparse = tinker.TensorData(
        data=[5, 6], dtype="int64", shape=[2, 3], sparse_crow_indices=[0, 1, 2], sparse_col_indices=[2, 0]
    )
    inputs = {
        "target_tokens": sparse,
        "weights": tinker.TensorData(data=[0.5, 1.5], dtype="float32"),
        "advantages": tinker.TensorData.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3)),
    }
    datum = tinker.Datum(model_input=tinker.ModelInput(chunks=[text, image]), loss_fn_inputs=inputs)
    given = ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config={"beta": 0.5, "loss_id": "x"})
    return ForwardBackwardRequest(forward_backward_input=given, model_id="run", seq_id=7)


def tensor(found: Any) -> Any:
    """A tensor as lists."""
    return None if found is None else [found.dtype, found.shape, found.data]


def main(folder: Path) -> None:
    """Write what the official code makes, and what it reads."""
    own = forward_backward_request_to_proto(request())
    (folder / "request.bin").write_bytes(own.SerializeToString())
    output = deserialize_forward_backward_output((folder / "our_output.bin").read_bytes())
    sample = deserialize_sample_response((folder / "our_sample.bin").read_bytes())
    alternatives: Any = sample.prompt_alt_tokens
    found = {
        "output": [
            output.loss_fn_output_type,
            [{name: tensor(each) for name, each in one.items()} for one in output.loss_fn_outputs],
            output.metrics,
        ],
        "sample": {
            "sequences": [[s.stop_reason, s.tokens, s.logprobs, s.topk_logprobs] for s in sample.sequences],
            "prompt_logprobs": sample.prompt_logprobs,
            "topk_prompt_logprobs": sample.topk_prompt_logprobs,
            "cache": sample.prompt_cache_hit_tokens,
            "target": tensor(sample.target_prompt_logprobs),
            "alternatives": [tensor(alternatives.tokens), tensor(alternatives.logprobs)],
        },
    }
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
