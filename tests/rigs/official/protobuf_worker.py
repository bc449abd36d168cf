"""Worker in the environment of the official SDK 0.38.0: its code writes and reads protobuf.

A line of stdin is {"requests": [...], "outputs": [...], "samples": [...]}, each a list of messages in base64. The
worker prints one line: each request as the SDK writes the same content, each result as the SDK reads it, and under
"own" a request from the SDK's constructors.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import tinker
from tinker.proto import tinker_public_pb2 as pb
from tinker.proto.request_conv import forward_backward_request_to_proto
from tinker.proto.response_conv import deserialize_forward_backward_output, deserialize_sample_response
from tinker.types.forward_backward_input import ForwardBackwardInput
from tinker.types.forward_backward_request import ForwardBackwardRequest


def make_own_request() -> ForwardBackwardRequest:
    """Create a request with every kind of chunk, tensor, span and config value."""
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
    prompt = tinker.PromptProvenanceSpan(sequence_id="a", length=2)
    sample = tinker.SampledProvenanceSpan(sequence_id="b", offset=5, length=4)
    datum = datum.with_provenance(model_input=[prompt, sample], loss_fn_inputs=[sample])
    forward_input = ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config={"beta": 0.5, "loss_id": "x"})
    return ForwardBackwardRequest(forward_backward_input=forward_input, model_id="run", seq_id=7)


def rewrite(encoded: bytes) -> bytes:
    """Read a request field by field into objects of the SDK, and write them with its code."""
    message = pb.ForwardBackwardRequest.FromString(encoded)
    config: dict[str, Any] = {
        name: getattr(value, value.WhichOneof("value")) for name, value in message.loss_fn_config_v2.items()
    }
    forward_input = ForwardBackwardInput(
        data=[make_datum(example) for example in message.data], loss_fn=message.loss_fn, loss_fn_config=config or None
    )
    request = ForwardBackwardRequest(
        forward_backward_input=forward_input, model_id=message.model_id, seq_id=message.seq_id or None
    )
    request_message = forward_backward_request_to_proto(request)
    # The SDK sets it where it sends the request.
    request_message.forward_only = message.forward_only
    return request_message.SerializeToString()


def make_datum(message: Any) -> tinker.Datum:
    """Build an example."""
    spans = message.model_input_spans or message.loss_fn_input_spans
    return tinker.Datum(
        model_input=tinker.ModelInput(chunks=[make_chunk(item) for item in message.model_input]),
        loss_fn_inputs={name: make_tensor(item) for name, item in message.loss_fn_inputs.items()},
        model_input_spans=[make_span(span) for span in message.model_input_spans] if spans else None,
        loss_fn_input_spans=[make_span(item) for item in message.loss_fn_input_spans] if spans else None,
    )


def make_chunk(message: Any) -> Any:
    """Build a text, image or dmel chunk."""
    kind = message.WhichOneof("chunk")
    if kind == "encoded_text":
        return tinker.types.EncodedTextChunk(tokens=np.frombuffer(message.encoded_text.tokens, "<i4").tolist())
    if kind == "dmel":
        return tinker.DmelChunk(dmel=message.dmel.dmel)
    image = message.image
    expected = image.expected_tokens if image.HasField("expected_tokens") else None
    return tinker.types.ImageChunk(data=image.data, format=image.format, expected_tokens=expected)


def make_tensor(message: Any) -> tinker.TensorData:
    """Build a dense or sparse tensor."""
    name, dtype = {pb.DTYPE_FLOAT32: ("float32", "<f4"), pb.DTYPE_INT64: ("int64", "<i8")}[message.dtype]
    sparse = message.sparse_csr if message.WhichOneof("encoding") == "sparse_csr" else None
    values = np.frombuffer(sparse.values if sparse else message.dense, dtype)
    rows: dict[str, Any] = {}
    if sparse:
        rows["sparse_crow_indices"] = np.frombuffer(sparse.crow_indices, "<i8").tolist()
        rows["sparse_col_indices"] = np.frombuffer(sparse.col_indices, "<i8").tolist()
    return tinker.TensorData(data=values, dtype=name, shape=list(message.shape), **rows)


def make_span(message: Any) -> Any:
    """Build a provenance span."""
    kind = message.WhichOneof("span")
    part = getattr(message, kind)
    make = tinker.PromptProvenanceSpan if kind == "prompt_tokens" else tinker.SampledProvenanceSpan
    return make(sequence_id=part.sequence_id, offset=part.offset, length=part.length)


def read_output(encoded: bytes) -> Any:
    """Return the SDK's reading of an output."""
    decoded = deserialize_forward_backward_output(encoded)
    outputs = [
        {name: list_tensor(tensor) for name, tensor in loss_fn_output.items()}
        for loss_fn_output in decoded.loss_fn_outputs
    ]
    return [decoded.loss_fn_output_type, outputs, decoded.metrics]


def read_sample(encoded: bytes) -> Any:
    """Return the SDK's reading of a sample."""
    decoded = deserialize_sample_response(encoded)
    alternatives = decoded.prompt_alt_tokens
    return {
        "sequences": [[s.stop_reason, s.tokens, s.logprobs, s.topk_logprobs] for s in decoded.sequences],
        "prompt_logprobs": decoded.prompt_logprobs,
        "topk_prompt_logprobs": decoded.topk_prompt_logprobs,
        "prompt_cache_hit_tokens": decoded.prompt_cache_hit_tokens,
        "target_prompt_logprobs": list_tensor(decoded.target_prompt_logprobs),
        "prompt_alt_tokens": alternatives and [list_tensor(alternatives.tokens), list_tensor(alternatives.logprobs)],
    }


def list_tensor(tensor: Any) -> Any:
    """Return a tensor as lists."""
    if tensor is None:
        return None
    return [
        tensor.dtype,
        tensor.shape,
        tensor.data,
        tensor.sparse_crow_indices,
        tensor.sparse_col_indices,
    ]


def respond(query: dict[str, list[str]]) -> dict[str, Any]:
    """Return the response to one line; see the module."""
    return {
        "own": b64encode(forward_backward_request_to_proto(make_own_request()).SerializeToString()).decode(),
        "requests": [b64encode(rewrite(b64decode(request))).decode() for request in query["requests"]],
        "outputs": [read_output(b64decode(message)) for message in query["outputs"]],
        "samples": [read_sample(b64decode(message)) for message in query["samples"]],
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(respond(json.loads(line))), flush=True)  # noqa: T201
