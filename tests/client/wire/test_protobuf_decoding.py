"""Binary results and requests that arrive: what they mean, and what is not sound."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.protobuf_models import plain
from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import protobuf
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import message_class

DTYPES = {"float32": 1, "int64": 2, "int32": 3, "bfloat16": 4}


def batched(*rows: Any, dtype: str, kind: str, trailing: tuple[int, ...] = ()) -> Any:
    """A BatchedTensor of rows that are stored as numpy's ``kind``."""
    parts = [np.array(row, kind).tobytes() for row in rows]
    offsets = np.cumsum([0, *map(len, parts)], dtype="<i8").tobytes()
    fields = {"data": b"".join(parts), "offsets": offsets, "dtype": DTYPES[dtype], "trailing_shape": trailing}
    return message_class("BatchedTensor")(**fields)


def output(*records: tuple[int, dict[str, Any]], kind: str = "mod:Record") -> bytes:
    """A ForwardBackwardOutput of records, each its num_datums and its fields."""
    made = [message_class("ArrayRecord")(num_datums=count, fields=fields) for count, fields in records]
    filled = message_class("ForwardBackwardOutput")(
        loss_fn_output_type=kind, loss_fn_outputs=made, metrics={"loss:sum": 1.5}
    )
    found: bytes = filled.SerializeToString()
    return found


def test_outputs_of_several_records_are_one_list() -> None:
    """Narrow dtypes are widened, rows take the trailing shape, and a record may say how many datums it has or not."""
    halves = np.array([1.0, -2.5, np.inf], np.float32).view(np.uint32) >> 16
    first = {
        "logprobs": batched(halves[:2], halves[2:], dtype="bfloat16", kind="<u2"),
        "tokens": batched([1, 2, 3, 4], [-5, -6], dtype="int32", kind="<i4", trailing=(2,)),
    }
    second = {"logprobs": batched([0.5], dtype="float32", kind="<f4")}
    found = protobuf.decode_output(output((0, first), (1, second), (2, {})))
    assert found.loss_fn_output_type == "Record"
    assert found.metrics == {"loss:sum": 1.5}
    one, two, three, *rest = found.loss_fn_outputs
    assert plain(one["logprobs"]) == ("tensor", "float32", [2], [1.0, -2.5], [None, None])
    assert plain(two["logprobs"])[2:4] == ([1], [float("inf")])
    assert plain(one["tokens"]) == ("tensor", "int64", [2, 2], [1, 2, 3, 4], [None, None])
    assert plain(two["tokens"])[2:4] == ([1, 2], [-5, -6])
    assert plain(three["logprobs"])[3] == [0.5]
    assert rest == [{}, {}]


@given(st.lists(st.integers(0, 2**16 - 1)))
def test_bfloat16_is_widened_bit_by_bit(bits: list[int]) -> None:
    """Also NaN with its payload, and infinities."""
    found = protobuf.decode_output(output((1, {"x": batched(bits, dtype="bfloat16", kind="<u2")})))
    values = found.loss_fn_outputs[0]["x"].to_numpy()
    assert (values.view(np.uint32) >> 16).tolist() == bits
    assert not (values.view(np.uint32) & 0xFFFF).any()


def test_tensors_of_a_result_are_views_of_its_bytes() -> None:
    """Nothing is copied for a dtype of the wire."""
    rows = batched([1.0, 2.0], [3.0], dtype="float32", kind="<f4")
    one, two = protobuf.decode_output(output((2, {"x": rows}))).loss_fn_outputs
    assert not one["x"].to_numpy().flags.owndata
    assert two["x"].to_numpy().base is one["x"].to_numpy().base


@pytest.mark.parametrize(
    ("kind", "records", "name"),
    [("", 0, "ArrayRecord"), ("a:b", 0, "a:b"), ("a:b:C", 1, "C"), ("C", 1, "C")],
)
def test_the_name_of_the_outputs(kind: str, records: int, name: str) -> None:
    """The part behind the last colon when there are outputs."""
    assert protobuf.decode_output(output(*[(1, {})] * records, kind=kind)).loss_fn_output_type == name


def broken(**changes: Any) -> Callable[[], Any]:
    """Decode an output whose only tensor, two rows of one float32, has these fields."""
    tensor = batched([1.0], [2.0], dtype="float32", kind="<f4")
    for name, value in changes.items():
        if name == "trailing_shape":
            tensor.trailing_shape.extend(value)
        else:
            setattr(tensor, name, value)
    return lambda: protobuf.decode_output(output((2, {"x": tensor})))


def of_sample(**fields: Any) -> Callable[[], Any]:
    """Decode a SampleResponse of these fields."""
    return lambda: protobuf.decode_sample(message_class("SampleResponse")(**fields).SerializeToString())


def of_datum(**fields: Any) -> Callable[[], Any]:
    """Decode a request of one datum of these fields."""
    request = message_class("ForwardBackwardRequest")(loss_fn="ppo", data=[message_class("Datum")(**fields)])
    return lambda: served.decode_request(request.SerializeToString())


def numbers(*values: int) -> bytes:
    """Offsets."""
    return np.array(values, "<i8").tobytes()


IMAGE = {"data": b"x", "format": "png"}
SEQUENCE = "sequences[0]"


@pytest.mark.parametrize(
    ("decode", "named"),
    [
        (lambda: protobuf.decode_output(b"\xff"), "ForwardBackwardOutput: 1 bytes cannot be parsed"),
        (lambda: protobuf.decode_sample(b"\x0a\x05"), "SampleResponse: 2 bytes"),
        (lambda: served.decode_request(b"\x0a\x02\xff\xff"), "ForwardBackwardRequest: 4 bytes"),
        (broken(dtype=0), "loss_fn_outputs[0].fields['x']: dtype 0 is not one of"),
        (broken(dtype=99), "fields['x']: dtype 99"),
        (broken(data=b"1234567"), "fields['x']: 7 bytes"),
        (broken(offsets=b"1"), "fields['x'].offsets: 1 bytes"),
        (broken(offsets=b""), "fields['x'].offsets: do not run from 0 to the 8 bytes"),
        (broken(offsets=numbers(0, 4, 12)), "fields['x'].offsets: do not run"),
        (broken(offsets=numbers(4, 4, 8)), "fields['x'].offsets: do not run"),
        (broken(offsets=numbers(0, 9, 8)), "fields['x'].offsets: fall"),
        (broken(offsets=numbers(0, 2, 8)), "fields['x'].offsets: fall, or point into a number"),
        (broken(offsets=numbers(0, 4, 4, 8)), "fields['x']: holds 3 tensors for 2 datums"),
        (broken(trailing_shape=[2]), "fields['x'][0]: 1 values do not fill rows of [2]"),
        (broken(trailing_shape=[-1]), "fields['x'].trailing_shape: [-1]"),
        (broken(trailing_shape=[0]), "fields['x'][0]: "),
        (lambda: protobuf.decode_output(output((-1, {}))), "loss_fn_outputs[0].num_datums: -1"),
        (of_sample(prompt_logprobs=b"123"), "prompt_logprobs: 3 bytes"),
        (of_sample(sequences=[{"tokens": b"1"}]), "sequences[0].tokens: 1 bytes"),
        (of_sample(sequences=[{"logprobs": b"1"}]), "sequences[0].logprobs: 1 bytes"),
        (
            of_sample(topk_prompt_logprobs={"k": 2, "length": 3}),
            "topk_prompt_logprobs: 0 tokens and 0 logprobs are not 3 places of 2",
        ),
        (of_sample(target_prompt_logprobs={"dtype": 1}), "target_prompt_logprobs: holds neither"),
        (
            of_sample(target_prompt_logprobs={"dtype": 1, "dense": bytes(4), "shape": [3]}),
            "target_prompt_logprobs: TensorData.shape: [3]",
        ),
        (
            of_sample(target_prompt_logprobs={"dtype": 1, "dense": bytes(4), "shape": [-1]}),
            "target_prompt_logprobs: TensorData.shape: [-1]",
        ),
        (of_sample(prompt_alt_tokens={}), "prompt_alt_tokens.tokens: holds neither"),
        (of_datum(model_input=[{}]), "data[0].model_input[0]: must be text"),
        (of_datum(model_input=[{"encoded_text": {"tokens": b"1"}}]), "data[0].model_input[0].tokens: 1 bytes"),
        (
            of_datum(model_input=[{"image": {"data": b"x", "format": "gif"}}]),
            "data[0].model_input[0]: ImageChunk.format: 'gif'",
        ),
        (of_datum(model_input=[{"image": {**IMAGE, "override_dimensions": {}}}]), "model_input[0].override_dimensions"),
        (
            of_datum(loss_fn_inputs={"w": message_class("Tensor")(dtype=1, sparse_csr={}, shape=[2, 2])}),
            "data[0].loss_fn_inputs['w']: TensorData.sparse_crow",
        ),
        (of_datum(model_input_spans=[{}]), "data[0].model_input_spans[0]: must refer to"),
        (
            of_datum(loss_fn_input_spans=[{"sampled_tokens": {"length": 1}}]),
            "data[0].loss_fn_input_spans[0]: SampledProvenanceSpan.sequence_id",
        ),
        (
            of_datum(loss_fn_input_spans=[{"prompt_tokens": {"sequence_id": "s", "length": -1}}]),
            "data[0].loss_fn_input_spans[0]: PromptProvenanceSpan.length: -1",
        ),
        (
            lambda: served.decode_request(message_class("ForwardBackwardRequest")(loss_fn="new").SerializeToString()),
            "ForwardBackwardInput.loss_fn: 'new'",
        ),
        (
            lambda: served.decode_request(
                message_class("ForwardBackwardRequest")(
                    loss_fn="ppo", loss_fn_config_v2={"a": message_class("LossConfigValue")()}
                ).SerializeToString()
            ),
            "loss_fn_config_v2['a']",
        ),
    ],
)
def test_what_is_not_sound_is_refused_by_place(decode: Callable[[], Any], named: str) -> None:
    """Nothing but ValueError comes out of bytes."""
    with pytest.raises(ValueError) as caught:
        decode()
    assert named in str(caught.value)


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    """Nothing but ValueError comes out of any bytes."""
    for decode in (protobuf.decode_output, protobuf.decode_sample, served.decode_request):
        try:
            decode(data)
        except ValueError:
            continue


def test_a_sample_as_the_models_of_json_have_it() -> None:
    """Lists, None for NaN and where no tokens are, no filling, and reasons that nobody knows yet."""
    topk = {
        "token_ids": np.array([[0, 0], [5, 0], [0, 6]], "<i4").tobytes(),
        "logprobs": np.array([[-99999, -99999], [-0.5, -99999], [-1, -2]], "<f4").tobytes(),
        "k": 2,
        "length": 3,
    }
    one = {"stop_reason": 1, "tokens": struct.pack("<2i", 7, -1), "logprobs": struct.pack("<2f", -0.5, float("nan"))}
    two = {"stop_reason": 9, "logprobs": b"", "topk_sampled_logprobs": topk}
    found: Any = of_sample(
        sequences=[one, two],
        prompt_logprobs=struct.pack("<2f", float("nan"), -1.5),
        topk_prompt_logprobs=topk,
        prompt_cache_hit_tokens=3,
    )()
    assert found.prompt_logprobs == [None, -1.5]
    assert found.topk_prompt_logprobs == [None, [(5, -0.5)], [(0, -1.0), (6, -2.0)]]
    assert found.prompt_cache_hit_tokens == 3
    first, second = found.sequences
    assert (first.stop_reason, first.tokens, first.logprobs[0]) == ("length", [7, -1], -0.5)
    assert (second.stop_reason, second.tokens, second.logprobs) == ("9", [], None)
    assert (first.topk_logprobs, second.topk_logprobs) == (None, found.topk_prompt_logprobs)
    assert found.extra_fields == {}
    assert of_sample(prompt_logprobs=b"", topk_prompt_logprobs={"k": 4})() == m.SampleResponse(sequences=[])
