"""The official SDK 0.38.0 as oracle of protobuf: each side decodes the messages of the other.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/protobuf_suite.py`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import attrs
import numpy as np
import pytest
from tests.rigs.official.oracle import Oracle

from support.drawing import examples
from support.protobuf_models import FORWARD_REQUESTS, REQUESTS, outputs, samples, sequences, to_plain
from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import protobuf
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import MESSAGE_FIELD_VERSIONS, MESSAGE_VERSIONS, message_class

VERSION = "0.38.0"
RULES = VersionRules(min_version=VERSION)
pytestmark = pytest.mark.timeout(1800)

DTYPES = {"float32": 1, "int64": 2, "int32": 3, "bfloat16": 4}
LAYOUTS = {1: "<f4", 2: "<i8", 3: "<i4", 4: "<u2"}
"""Memory layout of each DType; bfloat16 as 16-bit integers."""
BFLOAT16_BITS = np.array([0x3F80, 0xC020, 0x7F80, 0x0001, 0x0000, 0x8000])
"""1, -2.5, infinity, the smallest number, 0 and -0 as bfloat16."""

NOT_EXCHANGED = {
    **{
        f"SamplingParams.{name}": "no call sends it"
        for name in ("max_tokens", "seed", "temperature", "top_k", "top_p", "stop_strs", "stop_tokens")
    },
    "StopStrings.values": "part of SamplingParams",
    "StopTokens.values": "part of SamplingParams",
    "ImageChunk.override_dimensions": "the SDK never sets it",
    "ImageDimensions.width": "part of override_dimensions",
    "ImageDimensions.height": "part of override_dimensions",
}
"""Fields of the messages that its code neither reads nor writes."""
READ_DIFFERENTLY = {
    "bfloat16 dense": "the SDK takes the bits for whole numbers",
    "bfloat16 sparse": "the SDK takes the bits for whole numbers",
}
"""Tensors of samples that it reads otherwise than we do."""


def is_uniform(output: m.ForwardBackwardOutput) -> bool:
    """Return whether all datums have outputs of the same names, as the SDK assumes."""
    return len({frozenset(loss_fn_output) for loss_fn_output in output.loss_fn_outputs}) <= 1


KNOWN_REASONS = sequences().map(lambda s: attrs.evolve(s, stop_reason="stop" if s.stop_reason == "stop" else "length"))
OUR_REQUESTS = examples(REQUESTS | FORWARD_REQUESTS, 200)
OUR_OUTPUTS = examples(outputs().filter(is_uniform), 150)
OUR_SAMPLES = examples(samples(KNOWN_REASONS), 150)


def make_values(dtype: int, count: int) -> bytes:
    """Return that many values of a DType."""
    values = np.resize(BFLOAT16_BITS, count) if dtype == 4 else np.arange(count) - 2
    return values.astype(LAYOUTS[dtype]).tobytes()


def make_batched_tensor(dtype: int, sizes: list[int], trailing: list[int]) -> Any:
    """Return a BatchedTensor whose tensors have that many values."""
    offsets = np.cumsum([0, *sizes]) * np.dtype(LAYOUTS[dtype]).itemsize
    return message_class("BatchedTensor")(
        data=make_values(dtype, sum(sizes)),
        offsets=offsets.astype("<i8").tobytes(),
        dtype=dtype,
        trailing_shape=trailing,
    )


def make_output(dtype: int) -> bytes:
    """Return an output of two records, the second of which gives the number of datums only by its offsets."""
    fields = {"flat": make_batched_tensor(dtype, [2, 0, 3], []), "rows": make_batched_tensor(dtype, [4, 2, 0], [2])}
    second_fields = {"flat": make_batched_tensor(dtype, [1], []), "rows": make_batched_tensor(dtype, [6], [3])}
    records = [{"type_tag": "a:B", "num_datums": 3, "fields": fields}, {"num_datums": 1, "fields": second_fields}]
    array_records = [message_class("ArrayRecord")(**record) for record in records]
    metrics = {"loss:sum": 0.25}
    output = message_class("ForwardBackwardOutput")(
        loss_fn_output_type="a:B", loss_fn_outputs=array_records, metrics=metrics
    )
    encoded: bytes = output.SerializeToString()
    return encoded


def make_sample(dtype: int, *, is_sparse: bool) -> bytes:
    """Return a sample with tensors of a DType."""
    tensor = message_class("Tensor")(dtype=dtype, shape=[2, 3])
    if is_sparse:
        tensor.sparse_csr.values = make_values(dtype, 2)
        tensor.sparse_csr.crow_indices = np.array([0, 1, 2], "<i8").tobytes()
        tensor.sparse_csr.col_indices = np.array([2, 0], "<i8").tobytes()
    else:
        tensor.dense = make_values(dtype, 6)
    alternatives = message_class("PromptAltTokens")(tokens=tensor, logprobs=tensor)
    response = message_class("SampleResponse")(target_prompt_logprobs=tensor, prompt_alt_tokens=alternatives)
    encoded: bytes = response.SerializeToString()
    return encoded


WRITTEN_OUTPUTS = {dtype: make_output(dtype) for dtype in LAYOUTS}
WRITTEN_SAMPLES = {
    f"{name} {form}": make_sample(dtype, is_sparse=form == "sparse")
    for name, dtype in DTYPES.items()
    for form in ("dense", "sparse")
}

SENT = {
    "requests": [protobuf.encode_request(our_request) for our_request in OUR_REQUESTS],
    "outputs": [*map(served.encode_result, OUR_OUTPUTS), *WRITTEN_OUTPUTS.values()],
    "samples": [*map(served.encode_result, OUR_SAMPLES), *WRITTEN_SAMPLES.values()],
}


@pytest.fixture(scope="module")
def official_results() -> dict[str, Any]:
    """Return the official SDK's reading of all messages."""
    with Oracle(VERSION, "protobuf_worker.py") as oracle:
        results: dict[str, Any] = oracle.send(
            {kind: [b64encode(message).decode() for message in messages] for kind, messages in SENT.items()}
        )
    return results


def own_request() -> m.ForwardBackwardRequest:
    """Return the request that the worker creates with constructors of the SDK."""
    sparse = m.TensorData(
        data=[5, 6], dtype="int64", shape=[2, 3], sparse_crow_indices=[0, 1, 2], sparse_col_indices=[2, 0]
    )
    inputs: Any = {
        "target_tokens": sparse,
        "weights": m.TensorData(data=[0.5, 1.5], dtype="float32", shape=[2]),
        "advantages": np.arange(6, dtype=np.float32).reshape(2, 3),
    }
    image = m.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=3)
    text = m.EncodedTextChunk(tokens=[1, -2, 2**31 - 1])
    datum = m.Datum(model_input=m.ModelInput(chunks=[text, image]), loss_fn_inputs=inputs)
    prompt = m.PromptProvenanceSpan(sequence_id="a", length=2)
    sample = m.SampledProvenanceSpan(sequence_id="b", offset=5, length=4)
    datum = datum.with_provenance(model_input=[prompt, sample], loss_fn_inputs=[sample])
    forward_input = m.ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config={"beta": 0.5, "loss_id": "x"})
    return m.ForwardBackwardRequest(forward_backward_input=forward_input, model_id="run", seq_id=7)


def test_official_request_is_decoded(official_results: dict[str, Any]) -> None:
    """Arrays and all other fields are equal; a tensor without a shape has one dimension."""
    assert served.decode_request(b64decode(official_results["own"])) == own_request()


def test_official_requests_decode_to_original_content(official_results: dict[str, Any]) -> None:
    """Requests that the SDK writes decode to the original content."""
    for message, request in zip(official_results["requests"], OUR_REQUESTS, strict=True):
        assert to_plain(served.decode_request(b64decode(message))) == to_plain(request)


def test_both_sides_write_equal_requests(official_results: dict[str, Any]) -> None:
    """Both sides write the same message for the same content, field by field."""
    kind = message_class("ForwardBackwardRequest")
    for message, sent in zip(official_results["requests"], SENT["requests"], strict=True):
        assert kind.FromString(b64decode(message)) == kind.FromString(sent)


def read_tensor(model: Any) -> Any:
    """Return a tensor in the worker's notation."""
    if model is None:
        return None
    _, dtype, shape, values, rows = to_plain(model)
    return [dtype, shape, values, *rows]


def read_output(output: m.ForwardBackwardOutput) -> Any:
    """Return an output in the worker's notation."""
    outputs = [
        {name: read_tensor(tensor) for name, tensor in loss_fn_output.items()}
        for loss_fn_output in output.loss_fn_outputs
    ]
    kind = output.loss_fn_output_type.rpartition(":")[2] if outputs else output.loss_fn_output_type
    return [kind, outputs, output.metrics]


def read_sample(sample: m.SampleResponse) -> Any:
    """Return a sample in the worker's notation."""
    alternatives = sample.prompt_alt_tokens
    return {
        "sequences": [
            [to_plain(part) for part in (s.stop_reason, s.tokens, s.logprobs, s.topk_logprobs)]
            for s in sample.sequences
        ],
        "prompt_logprobs": to_plain(sample.prompt_logprobs),
        "topk_prompt_logprobs": to_plain(sample.topk_prompt_logprobs),
        "prompt_cache_hit_tokens": sample.prompt_cache_hit_tokens,
        "target_prompt_logprobs": read_tensor(sample.target_prompt_logprobs),
        "prompt_alt_tokens": alternatives and [read_tensor(alternatives.tokens), read_tensor(alternatives.logprobs)],
    }


def test_official_sdk_decodes_our_outputs(official_results: dict[str, Any]) -> None:
    """Type, tensors with shapes, and metrics are equal."""
    for read, output in zip(official_results["outputs"], OUR_OUTPUTS, strict=False):
        assert read == read_output(output)


def test_official_sdk_decodes_our_samples(official_results: dict[str, Any]) -> None:
    """Every part of a sample is equal."""
    for read, sample in zip(official_results["samples"], OUR_SAMPLES, strict=False):
        assert read == read_sample(sample)


def test_outputs_of_every_dtype_are_read_alike(official_results: dict[str, Any]) -> None:
    """Both sides read the narrow dtypes, which only servers send, alike."""
    for read, message in zip(official_results["outputs"][len(OUR_OUTPUTS) :], WRITTEN_OUTPUTS.values(), strict=True):
        assert read == read_output(protobuf.decode_output(message))


def test_samples_of_every_dtype_are_read_alike(official_results: dict[str, Any]) -> None:
    """Both sides read dense and sparse tensors alike, except for the listed difference."""
    different = {}
    for read, (kind, message) in zip(
        official_results["samples"][len(OUR_SAMPLES) :], WRITTEN_SAMPLES.items(), strict=True
    ):
        if read != read_sample(protobuf.decode_sample(message)):
            different[kind] = read["target_prompt_logprobs"][2]
    assert different.keys() == READ_DIFFERENTLY.keys()
    assert different == {"bfloat16 dense": BFLOAT16_BITS.tolist(), "bfloat16 sparse": BFLOAT16_BITS[:2].tolist()}


def test_every_field_and_value_is_exchanged(official_results: dict[str, Any]) -> None:
    """The oracle wrote or read every field, every DType and every StopReason."""
    kinds = {"requests": "ForwardBackwardRequest", "outputs": "ForwardBackwardOutput", "samples": "SampleResponse"}
    exchanged: set[str] = set()
    for kind, name in kinds.items():
        for message in SENT[kind]:
            exchanged |= set(list_set_fields(message_class(name).FromString(message)))
    expected = {*(f"DType {dtype}" for dtype in LAYOUTS), "StopReason 0", "StopReason 1"}
    for name in (name for name, span in MESSAGE_VERSIONS.items() if RULES.may_have(span)):
        for field in message_class(name).DESCRIPTOR.fields:
            if RULES.may_have(MESSAGE_FIELD_VERSIONS.get(name, {}).get(field.name, MESSAGE_VERSIONS[name])):
                expected.add(f"{name}.{field.name}")
    assert expected - exchanged == set(NOT_EXCHANGED)
    assert exchanged <= expected


def list_set_fields(message: Any) -> Any:
    """Return the names of all set fields in a message and its parts, and the values of enums."""
    for field in message.DESCRIPTOR.fields:
        if field.enum_type is not None:
            yield f"{field.enum_type.name} {getattr(message, field.name)}"
    for field, value in message.ListFields():
        yield f"{message.DESCRIPTOR.name}.{field.name}"
        kind = field.message_type
        if kind is None:
            continue
        is_map = kind.GetOptions().map_entry
        parts = (value.values() if is_map else value) if not hasattr(value, "ListFields") else [value]
        for part in parts:
            if hasattr(part, "ListFields"):
                yield from list_set_fields(part)
