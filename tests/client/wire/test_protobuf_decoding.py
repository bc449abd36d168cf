"""Tests of the decoding of protobuf results and requests, and of the errors of invalid ones."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from support.protobuf_models import to_plain
from tinkerwire._server.http.protobuf import decode_request
from tinkerwire._wire.protobuf import decode_output, decode_sample
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import message_class

DTYPES = {"float32": 1, "int64": 2, "int32": 3, "bfloat16": 4}


def make_batched_tensor_of_rows(
    *rows: ArrayLike, dtype: str, numpy_dtype: str, trailing_shape: tuple[int, ...] = ()
) -> Any:
    """Return a BatchedTensor of rows, which ``numpy_dtype`` stores."""
    parts = [np.array(row, numpy_dtype).tobytes() for row in rows]
    offsets = np.cumsum([0, *map(len, parts)], dtype="<i8").tobytes()
    fields = {"data": b"".join(parts), "offsets": offsets, "dtype": DTYPES[dtype], "trailing_shape": trailing_shape}
    return message_class("BatchedTensor")(**fields)


def encode_records(*records: tuple[int, dict[str, Any]], output_type: str = "mod:Record") -> bytes:
    """Return a ForwardBackwardOutput of records; each has its num_datums and its fields."""
    messages = [message_class("ArrayRecord")(num_datums=count, fields=fields) for count, fields in records]
    output = message_class("ForwardBackwardOutput")(
        loss_fn_output_type=output_type, loss_fn_outputs=messages, metrics={"loss:sum": 1.5}
    )
    return bytes(output.SerializeToString())


def test_records_are_joined_into_one_list() -> None:
    """Narrow dtypes are widened, rows get the trailing shape, and num_datums of a record may be absent."""
    halves = np.array([1.0, -2.5, np.inf], np.float32).view(np.uint32) >> 16
    first = {
        "logprobs": make_batched_tensor_of_rows(halves[:2], halves[2:], dtype="bfloat16", numpy_dtype="<u2"),
        "tokens": make_batched_tensor_of_rows(
            [1, 2, 3, 4], [-5, -6], dtype="int32", numpy_dtype="<i4", trailing_shape=(2,)
        ),
    }
    second = {"logprobs": make_batched_tensor_of_rows([0.5], dtype="float32", numpy_dtype="<f4")}
    output = decode_output(encode_records((0, first), (1, second), (2, {})))
    assert output.loss_fn_output_type == "Record"
    assert output.metrics == {"loss:sum": 1.5}
    datum_0, datum_1, datum_2, *empty = output.loss_fn_outputs
    assert to_plain(datum_0["logprobs"]) == ("tensor", "float32", [2], [1.0, -2.5], [None, None])
    assert to_plain(datum_1["logprobs"])[2:4] == ([1], [float("inf")])
    assert to_plain(datum_0["tokens"]) == ("tensor", "int64", [2, 2], [1, 2, 3, 4], [None, None])
    assert to_plain(datum_1["tokens"])[2:4] == ([1, 2], [-5, -6])
    assert to_plain(datum_2["logprobs"])[3] == [0.5]
    assert empty == [{}, {}]


@given(st.lists(st.integers(0, 2**16 - 1)))
def test_bfloat16_keeps_all_bits(bits: list[int]) -> None:
    """NaN keeps its payload, and infinities are kept."""
    output = decode_output(
        encode_records((1, {"x": make_batched_tensor_of_rows(bits, dtype="bfloat16", numpy_dtype="<u2")}))
    )
    values = output.loss_fn_outputs[0]["x"].to_numpy()
    assert (values.view(np.uint32) >> 16).tolist() == bits
    assert not (values.view(np.uint32) & 0xFFFF).any()


def test_decoded_tensors_share_memory_with_message() -> None:
    """Tensors whose dtype the wire has are not copied."""
    rows = make_batched_tensor_of_rows([1.0, 2.0], [3.0], dtype="float32", numpy_dtype="<f4")
    first, second = decode_output(encode_records((2, {"x": rows}))).loss_fn_outputs
    assert not first["x"].to_numpy().flags.owndata
    assert second["x"].to_numpy().base is first["x"].to_numpy().base


@pytest.mark.parametrize(
    ("qualified_name", "records", "name"),
    [("", 0, "ArrayRecord"), ("a:b", 0, "a:b"), ("a:b:C", 1, "C"), ("C", 1, "C")],
)
def test_output_type_has_no_module_name(qualified_name: str, records: int, name: str) -> None:
    """If the message has records, the output type is the part after the last colon."""
    content = encode_records(*[(1, {})] * records, output_type=qualified_name)
    assert decode_output(content).loss_fn_output_type == name


def decode_changed_tensor(**changes: Any) -> Callable[[], m.ForwardBackwardOutput]:
    """Return the decoding of an output whose only tensor, two rows of one float32, has changed fields."""
    tensor = make_batched_tensor_of_rows([1.0], [2.0], dtype="float32", numpy_dtype="<f4")
    for name, value in changes.items():
        if name == "trailing_shape":
            tensor.trailing_shape.extend(value)
        else:
            setattr(tensor, name, value)
    return lambda: decode_output(encode_records((2, {"x": tensor})))


def decode_sample_of(**fields: Any) -> Callable[[], m.SampleResponse]:
    """Return the decoding of a SampleResponse with these fields."""
    return lambda: decode_sample(message_class("SampleResponse")(**fields).SerializeToString())


def decode_datum_of(**fields: Any) -> Callable[[], m.ForwardBackwardRequest | m.ForwardRequest]:
    """Return the decoding of a request whose only datum has these fields."""
    request = message_class("ForwardBackwardRequest")(loss_fn="ppo", data=[message_class("Datum")(**fields)])
    return lambda: decode_request(request.SerializeToString())


def encode_offsets(*values: int) -> bytes:
    """Return the bytes of offsets."""
    return np.array(values, "<i8").tobytes()


IMAGE = {"data": b"x", "format": "png"}


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (lambda: decode_output(b"\xff"), "ForwardBackwardOutput: 1 bytes cannot be parsed"),
        (lambda: decode_sample(b"\x0a\x05"), "SampleResponse: 2 bytes"),
        (lambda: decode_request(b"\x0a\x02\xff\xff"), "ForwardBackwardRequest: 4 bytes"),
        (decode_changed_tensor(dtype=0), "loss_fn_outputs[0].fields['x']: dtype must be one of 1, 2, 3, 4, got 0"),
        (decode_changed_tensor(dtype=99), "fields['x']: dtype must be one of 1, 2, 3, 4, got 99"),
        (decode_changed_tensor(data=b"1234567"), "fields['x']: length must be a multiple of 4 bytes, got 7"),
        (decode_changed_tensor(offsets=b"1"), "fields['x'].offsets: length must be a multiple of 8 bytes, got 1"),
        (decode_changed_tensor(offsets=b""), "fields['x'].offsets: must start at 0 and end at 8,"),
        (decode_changed_tensor(offsets=encode_offsets(0, 4, 12)), "fields['x'].offsets: must start at 0"),
        (decode_changed_tensor(offsets=encode_offsets(4, 4, 8)), "fields['x'].offsets: must start at 0"),
        (decode_changed_tensor(offsets=encode_offsets(0, 9, 8)), "fields['x'].offsets: must be ascending"),
        (
            decode_changed_tensor(offsets=encode_offsets(0, 2, 8)),
            "fields['x'].offsets: must be ascending multiples of 4 bytes",
        ),
        (
            decode_changed_tensor(offsets=encode_offsets(0, 4, 4, 8)),
            "fields['x']: expected 2 tensors, one per datum, got 3",
        ),
        (decode_changed_tensor(trailing_shape=[2]), "fields['x'][0]: 1 values do not fill rows of [2]"),
        (
            decode_changed_tensor(trailing_shape=[-1]),
            "fields['x'].trailing_shape: lengths must be at least 0, got [-1]",
        ),
        (decode_changed_tensor(trailing_shape=[0]), "fields['x'][0]: "),
        (lambda: decode_output(encode_records((-1, {}))), "loss_fn_outputs[0].num_datums: must be at least 0, got -1"),
        (decode_sample_of(prompt_logprobs=b"123"), "prompt_logprobs: length must be a multiple of 4 bytes, got 3"),
        (
            decode_sample_of(sequences=[{"tokens": b"1"}]),
            "sequences[0].tokens: length must be a multiple of 4 bytes, got 1",
        ),
        (
            decode_sample_of(sequences=[{"logprobs": b"1"}]),
            "sequences[0].logprobs: length must be a multiple of 4 bytes, got 1",
        ),
        (
            decode_sample_of(topk_prompt_logprobs={"k": 2, "length": 3}),
            "topk_prompt_logprobs: expected 3 positions of 2 tokens and logprobs, got 0 tokens and 0",
        ),
        (
            decode_sample_of(target_prompt_logprobs={"dtype": 1}),
            "target_prompt_logprobs: must hold dense or sparse values",
        ),
        (
            decode_sample_of(target_prompt_logprobs={"dtype": 1, "dense": bytes(4), "shape": [3]}),
            "target_prompt_logprobs: TensorData.shape: [3]",
        ),
        (
            decode_sample_of(target_prompt_logprobs={"dtype": 1, "dense": bytes(4), "shape": [-1]}),
            "target_prompt_logprobs: TensorData.shape: [-1]",
        ),
        (
            decode_sample_of(prompt_alt_tokens={"tokens": {}}),
            "prompt_alt_tokens.tokens: must hold dense or sparse values",
        ),
        (decode_sample_of(prompt_alt_tokens={}), "prompt_alt_tokens: PromptAltTokens"),
        (decode_datum_of(model_input=[{}]), "data[0].model_input[0]: must be one of encoded_text, image, dmel"),
        (
            decode_datum_of(model_input=[{"encoded_text": {"tokens": b"1"}}]),
            "data[0].model_input[0].tokens: length must be a multiple of 4 bytes, got 1",
        ),
        (
            decode_datum_of(model_input=[{"image": {"data": b"x", "format": "gif"}}]),
            "data[0].model_input[0]: ImageChunk.format: must be one of 'png', 'jpeg', got 'gif'",
        ),
        (
            decode_datum_of(model_input=[{"image": {**IMAGE, "override_dimensions": {}}}]),
            "model_input[0].override_dimensions",
        ),
        (
            decode_datum_of(loss_fn_inputs={"w": message_class("Tensor")(dtype=1, sparse_csr={}, shape=[2, 2])}),
            "data[0].loss_fn_inputs['w']: TensorData.sparse_crow",
        ),
        (
            decode_datum_of(model_input_spans=[{}]),
            "data[0].model_input_spans[0]: must be one of prompt_tokens, sampled_tokens",
        ),
        (
            decode_datum_of(loss_fn_input_spans=[{"sampled_tokens": {"length": 1}}]),
            "data[0].loss_fn_input_spans[0]: SampledProvenanceSpan.sequence_id",
        ),
        (
            decode_datum_of(loss_fn_input_spans=[{"prompt_tokens": {"sequence_id": "s", "length": -1}}]),
            "data[0].loss_fn_input_spans[0]: PromptProvenanceSpan.length: must be at least 0, got -1",
        ),
        (
            lambda: decode_request(message_class("ForwardBackwardRequest")(loss_fn="new").SerializeToString()),
            "ForwardBackwardInput.loss_fn: must be one of 'cross_entropy', ",
        ),
        (
            lambda: decode_request(
                message_class("ForwardBackwardRequest")(
                    loss_fn="ppo", loss_fn_config_v2={"a": message_class("LossConfigValue")()}
                ).SerializeToString()
            ),
            "loss_fn_config_v2['a']",
        ),
    ],
)
def test_invalid_message_raises_value_error_with_position(decode: Callable[[], object], message: str) -> None:
    """The error names the field and the index of the invalid value."""
    with pytest.raises(ValueError) as caught:
        decode()
    assert message in str(caught.value)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_only_value_error(content: bytes) -> None:
    """Arbitrary bytes are decoded or raise a ValueError, but no other error."""
    for decode in (decode_output, decode_sample, decode_request):
        try:
            decode(content)
        except ValueError:
            continue


def test_protobuf_sample_equals_json_sample() -> None:
    """The model has lists, None for NaN and missing tokens, no padding, and unknown stop reasons."""
    topk = {
        "token_ids": np.array([[0, 0], [5, 0], [0, 6]], "<i4").tobytes(),
        "logprobs": np.array([[-99999, -99999], [-0.5, -99999], [-1, -2]], "<f4").tobytes(),
        "k": 2,
        "length": 3,
    }
    first_fields = {
        "stop_reason": 1,
        "tokens": struct.pack("<2i", 7, -1),
        "logprobs": struct.pack("<2f", -0.5, float("nan")),
    }
    second_fields = {"stop_reason": 9, "logprobs": b"", "topk_sampled_logprobs": topk}
    sample: Any = decode_sample_of(
        sequences=[first_fields, second_fields],
        prompt_logprobs=struct.pack("<2f", float("nan"), -1.5),
        topk_prompt_logprobs=topk,
        prompt_cache_hit_tokens=3,
    )()
    assert sample.prompt_logprobs == [None, -1.5]
    assert sample.topk_prompt_logprobs == [None, [(5, -0.5)], [(0, -1.0), (6, -2.0)]]
    assert sample.prompt_cache_hit_tokens == 3
    first, second = sample.sequences
    assert (first.stop_reason, first.tokens, first.logprobs[0]) == ("length", [7, -1], -0.5)
    assert (second.stop_reason, second.tokens, second.logprobs) == ("9", [], None)
    assert (first.topk_logprobs, second.topk_logprobs) == (None, sample.topk_prompt_logprobs)
    assert sample.extra_fields == {}
    assert decode_sample_of(prompt_logprobs=b"", topk_prompt_logprobs={"k": 4})() == m.SampleResponse(sequences=[])


def test_decoder_is_loaded_as_a_whole() -> None:
    """After it is loaded, no result imports a module: the results behind the first one would wait for the import."""
    code = """
import sys
from tinkerwire import types
from tinkerwire._wire.codec import decode, load_decoder
content = bytes.fromhex("0a0c1204010000001a04000000bf")
assert "numpy" not in sys.modules
load_decoder(types.SampleResponse)
loaded = set(sys.modules)
decode(content, types.SampleResponse)
print(sorted(set(sys.modules) - loaded))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("[]\n", 0), run.stderr
