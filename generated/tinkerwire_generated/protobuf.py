# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Protobuf messages of the wire: their versions, and their classes, which the first use builds.

The descriptors have a separate pool, so that they cannot clash with another package of these messages in the
process. Importing this module does not import protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from tinkerwire_base.conversion.versioning import VersionRange

PACKAGE = "tinker_public"

MESSAGE_VERSIONS: Mapping[str, VersionRange] = {
    "SparseCsr": ("0.19.0", None),
    "Tensor": ("0.19.0", None),
    "BatchedTensor": ("0.19.0", None),
    "ArrayRecord": ("0.19.0", None),
    "ForwardBackwardOutput": ("0.19.0", None),
    "LossConfigValue": ("0.26.2", None),
    "ForwardBackwardRequest": ("0.19.0", None),
    "Datum": ("0.19.0", None),
    "ProvenanceSpan": ("0.26.2", None),
    "PromptProvenanceSpan": ("0.26.2", None),
    "SampledProvenanceSpan": ("0.26.2", None),
    "Chunk": ("0.19.0", None),
    "EncodedTextChunk": ("0.19.0", None),
    "ImageChunk": ("0.19.0", None),
    "ImageDimensions": ("0.33.1", None),
    "DmelChunk": ("0.23.4", None),
    "TopkLogprobs": ("0.28.1", None),
    "TopkPromptLogprobs": ("0.18.2", "0.28.1"),
    "SampledSequence": ("0.18.2", None),
    "PromptAltTokens": ("0.31.0", None),
    "SampleResponse": ("0.18.2", None),
    "SamplingParams": ("0.22.7", None),
    "StopStrings": ("0.22.7", None),
    "StopTokens": ("0.22.7", None),
}
"""Versions of each message, as (since, until)."""

MESSAGE_FIELD_VERSIONS: Mapping[str, Mapping[str, VersionRange]] = {
    "ForwardBackwardRequest": {"forward_only": ("0.22.7", None), "loss_fn_config_v2": ("0.26.2", None)},
    "Datum": {"model_input_spans": ("0.26.2", None), "loss_fn_input_spans": ("0.26.2", None)},
    "Chunk": {"dmel": ("0.23.4", None)},
    "ImageChunk": {"override_dimensions": ("0.33.1", None)},
    "SampledSequence": {"topk_sampled_logprobs": ("0.28.1", None)},
    "SampleResponse": {
        "prompt_cache_hit_tokens": ("0.23.4", None),
        "target_prompt_logprobs": ("0.30.4", None),
        "prompt_alt_tokens": ("0.31.0", None),
    },
}
"""Versions of the fields that are newer than their message or were removed before it."""

MESSAGE_FIELDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "SparseCsr": {"values": ("bytes", "", ""), "crow_indices": ("bytes", "", ""), "col_indices": ("bytes", "", "")},
    "Tensor": {
        "dense": ("bytes", "", "encoding"),
        "sparse_csr": ("SparseCsr", "", "encoding"),
        "dtype": ("DType", "", ""),
        "shape": ("int64", "repeated", ""),
    },
    "BatchedTensor": {
        "data": ("bytes", "", ""),
        "offsets": ("bytes", "", ""),
        "dtype": ("DType", "", ""),
        "trailing_shape": ("int64", "repeated", ""),
    },
    "ArrayRecord": {
        "type_tag": ("string", "", ""),
        "fields": ("BatchedTensor", "map", ""),
        "num_datums": ("int64", "", ""),
    },
    "ForwardBackwardOutput": {
        "loss_fn_output_type": ("string", "", ""),
        "loss_fn_outputs": ("ArrayRecord", "repeated", ""),
        "metrics": ("double", "map", ""),
    },
    "LossConfigValue": {"number": ("double", "", "value"), "text": ("string", "", "value")},
    "ForwardBackwardRequest": {
        "model_id": ("string", "", ""),
        "seq_id": ("int32", "", ""),
        "data": ("Datum", "repeated", ""),
        "loss_fn": ("string", "", ""),
        "loss_fn_config": ("double", "map", ""),
        "forward_only": ("bool", "", ""),
        "loss_fn_config_v2": ("LossConfigValue", "map", ""),
    },
    "Datum": {
        "model_input": ("Chunk", "repeated", ""),
        "loss_fn_inputs": ("Tensor", "map", ""),
        "model_input_spans": ("ProvenanceSpan", "repeated", ""),
        "loss_fn_input_spans": ("ProvenanceSpan", "repeated", ""),
    },
    "ProvenanceSpan": {
        "prompt_tokens": ("PromptProvenanceSpan", "", "span"),
        "sampled_tokens": ("SampledProvenanceSpan", "", "span"),
    },
    "PromptProvenanceSpan": {
        "sequence_id": ("string", "", ""),
        "offset": ("int64", "", ""),
        "length": ("int64", "", ""),
    },
    "SampledProvenanceSpan": {
        "sequence_id": ("string", "", ""),
        "offset": ("int64", "", ""),
        "length": ("int64", "", ""),
    },
    "Chunk": {
        "encoded_text": ("EncodedTextChunk", "", "chunk"),
        "image": ("ImageChunk", "", "chunk"),
        "dmel": ("DmelChunk", "", "chunk"),
    },
    "EncodedTextChunk": {"tokens": ("bytes", "", "")},
    "ImageChunk": {
        "data": ("bytes", "", ""),
        "format": ("string", "", ""),
        "expected_tokens": ("int32", "optional", ""),
        "override_dimensions": ("ImageDimensions", "optional", ""),
    },
    "ImageDimensions": {"width": ("uint32", "", ""), "height": ("uint32", "", "")},
    "DmelChunk": {"dmel": ("bytes", "", "")},
    "TopkLogprobs": {
        "token_ids": ("bytes", "", ""),
        "logprobs": ("bytes", "", ""),
        "k": ("uint32", "", ""),
        "length": ("uint32", "", ""),
    },
    "TopkPromptLogprobs": {
        "token_ids": ("bytes", "", ""),
        "logprobs": ("bytes", "", ""),
        "k": ("uint32", "", ""),
        "prompt_length": ("uint32", "", ""),
    },
    "SampledSequence": {
        "stop_reason": ("StopReason", "", ""),
        "tokens": ("bytes", "", ""),
        "logprobs": ("bytes", "optional", ""),
        "topk_sampled_logprobs": ("TopkLogprobs", "optional", ""),
    },
    "PromptAltTokens": {"tokens": ("Tensor", "", ""), "logprobs": ("Tensor", "", "")},
    "SampleResponse": {
        "sequences": ("SampledSequence", "repeated", ""),
        "prompt_logprobs": ("bytes", "optional", ""),
        "topk_prompt_logprobs": ("TopkLogprobs", "optional", ""),
        "prompt_cache_hit_tokens": ("int32", "", ""),
        "target_prompt_logprobs": ("Tensor", "optional", ""),
        "prompt_alt_tokens": ("PromptAltTokens", "optional", ""),
    },
    "SamplingParams": {
        "max_tokens": ("int32", "optional", ""),
        "seed": ("uint64", "optional", ""),
        "temperature": ("float", "optional", ""),
        "top_k": ("int32", "optional", ""),
        "top_p": ("float", "optional", ""),
        "stop_strs": ("StopStrings", "", "stop"),
        "stop_tokens": ("StopTokens", "", "stop"),
    },
    "StopStrings": {"values": ("string", "repeated", "")},
    "StopTokens": {"values": ("int32", "repeated", "")},
}
"""The fields of each message, as (type, label, oneof).

The label is optional, repeated, map or empty; the type is that of one value of a list or a map. Text without a value is
empty.
"""

ENUM_VALUES: Mapping[str, Mapping[str, int]] = {
    "DType": {"DTYPE_UNSPECIFIED": 0, "DTYPE_FLOAT32": 1, "DTYPE_INT64": 2, "DTYPE_INT32": 3, "DTYPE_BFLOAT16": 4},
    "StopReason": {"STOP_REASON_STOP": 0, "STOP_REASON_LENGTH": 1},
}
"""The numbers of the values of each enum."""

_lock = Lock()
_built: list[dict[str, Any]] = []


def message_class(name: str) -> Any:
    """Return the class of a message.

    Raises:
        KeyError: the wire has no message of this name.
        ImportError: protobuf is not installed.
    """
    if not _built:
        with _lock:
            if not _built:
                _built.append(_build())
    return _built[0][name]


def _build() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  (slow to load)

    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(Path(__file__).with_name("protobuf.binpb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGE_VERSIONS
    }
