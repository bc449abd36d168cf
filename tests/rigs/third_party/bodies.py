"""Bodies of forward_backward for the probe, as JSON values and as the protobuf of those."""

from __future__ import annotations

from typing import Any

from tinkerwire._wire import protobuf
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated import models as m

Json = dict[str, Any]
MESSAGE = {"content-type": PROTOBUF}
UNKNOWN_FIELD = b"\xb8\x3e\x01"  # number 999, a varint of 1
TARGETS = {"data": [71, 72, 73], "dtype": "int64", "shape": [3]}
WEIGHTS = {"data": [1.0, 1.0, 1.0], "dtype": "float32", "shape": [3]}
DATUM: Json = {
    "model_input": {"chunks": [{"tokens": [70, 71, 72]}]},
    "loss_fn_inputs": {"target_tokens": TARGETS, "weights": WEIGHTS},
}
TAGGED: Json = DATUM | {"model_input": {"chunks": [{"type": "encoded_text", "tokens": [70, 71, 72]}]}}
NULL_SHAPE: Json = DATUM | {
    "loss_fn_inputs": {"target_tokens": TARGETS | {"shape": None}, "weights": WEIGHTS | {"shape": None}}
}
OUTSIDE: Json = DATUM | {"model_input": {"chunks": [{"tokens": [70, 9999, 72]}]}}
SPARSE: Json = DATUM | {
    "loss_fn_inputs": {
        "target_tokens": TARGETS,
        "weights": {
            "data": [1.0],
            "dtype": "float32",
            "shape": [1, 3],
            "sparse_crow_indices": [0, 1],
            "sparse_col_indices": [1],
        },
    }
}


def make_forward_backward(
    model: str, *datums: Json, loss_fn: str = "cross_entropy", config: Json | None = None
) -> Json:
    """Return a request of forward_backward as a JSON value."""
    batch = {"data": list(datums), "loss_fn": loss_fn, "loss_fn_config": config}
    return {"model_id": model, "forward_backward_input": batch}


def encode_protobuf(request: Json, *, forward_only: bool = False) -> bytes:
    """Return the message of such a request; what is `newer` in it becomes a field with an unknown number."""
    fields = {name: value for name, value in request.items() if name != "newer"}
    untagged = Converter()
    if forward_only:
        fields["forward_input"] = fields.pop("forward_backward_input")
        encoded = protobuf.encode_request(untagged.structure(fields, m.ForwardRequest))
    else:
        encoded = protobuf.encode_request(untagged.structure(fields, m.ForwardBackwardRequest))
    return encoded + UNKNOWN_FIELD if "newer" in request else encoded


def compress_zstd(content: bytes) -> bytes:
    """Return a Zstandard frame of one block that holds the content as it is."""
    head = b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little")
    return head + (len(content) << 3 | 1).to_bytes(3, "little") + content
