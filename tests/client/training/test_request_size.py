"""Tests of the byte limit of a batch: requests respect it in both body forms, and are not needlessly small."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import open_client
from support.scripted import RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._training.chunking import split_batch
from tinkerwire._training.request_size import (
    AROUND_JSON,
    AROUND_PROTOBUF,
    AROUND_REQUEST,
    JsonSize,
    LargerSize,
    ProtobufSize,
    RequestSize,
    request_size,
    size_around,
)
from tinkerwire._wire import codec
from tinkerwire._wire.dialect import Dialect
from tinkerwire_generated.api.training import forward_backward
from tinkerwire_generated.models import (
    DmelChunk,
    ForwardBackwardInput,
    ForwardBackwardRequest,
    SampledProvenanceSpan,
)

pytestmark = pytest.mark.timeout(120)
MODEL_ID = "model-\N{SNOWMAN}"
JSON, PROTOBUF = Dialect.for_version("0.18.2"), Dialect.for_version("0.38.0")
SIZES: dict[str, tuple[Dialect, RequestSize]] = {
    "JSON": (JSON, JsonSize()),
    "protobuf": (PROTOBUF, ProtobufSize()),
}
TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=30)
COUNTS = st.integers(0, 40)
FLOATS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=30)
NAMES = st.sampled_from(["weights", "target_tokens", "advantages", 'k\N{SNOWMAN}\n"\0', "n" * 300])


def make_sparse(values: list[float], rows: int) -> tw.TensorData:
    """Return a sparse matrix whose values are all in the last row."""
    return tw.TensorData(
        data=values,
        dtype="float32",
        shape=[rows, 10**6],
        sparse_crow_indices=[0] * rows + [len(values)],
        sparse_col_indices=list(range(len(values))),
    )


def make_dense(values: list[float], dtype: str) -> tw.TensorData:
    """Return an array of a dtype."""
    return tw.TensorData.from_numpy(np.array(values, np.float32).astype(dtype))


INT_TENSORS = st.builds(
    lambda values, stride: tw.TensorData(data=np.array(values, np.int64)[::stride], dtype="int64"),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
    st.sampled_from([1, 2]),
)
TENSORS = st.one_of(
    INT_TENSORS,
    st.builds(make_dense, FLOATS, st.sampled_from(["float32", "float64"])),
    st.builds(make_sparse, FLOATS, st.integers(1, 20)),
    st.builds(lambda values: tw.TensorData(data=values, dtype="float32"), FLOATS),
    st.builds(lambda values: tw.TensorData(data=np.array(values, ">f4"), dtype="float32"), FLOATS),
    st.builds(lambda n: tw.TensorData(data=[-2.2250738585072014e-308] * n, dtype="float32", shape=[1, n, 1]), COUNTS),
)
CHUNKS = st.one_of(
    st.builds(lambda tokens: tw.EncodedTextChunk(tokens=tokens), TOKENS),
    st.builds(lambda tokens: tw.EncodedTextChunk(tokens=np.array(tokens, np.int64)), TOKENS),
    st.builds(
        lambda data, length: tw.types.ImageChunk(data=data, format="jpeg", expected_tokens=length),
        st.binary(max_size=900),
        st.none() | st.integers(1, 10**4),
    ),
)
POINTERS = st.builds(
    lambda text: tw.types.ImageAssetPointerChunk(location=text, format="png", expected_tokens=3),
    st.text(st.characters(codec="utf-8"), max_size=50),
)
DMEL = st.builds(lambda n: DmelChunk(dmel=bytes([0, 1, n]) + b"\xff" * n), COUNTS)


def datums(chunks: Any) -> Any:
    """Generate datums with several kinds of chunks and tensors."""
    return st.builds(
        lambda parts, inputs: tw.Datum(model_input=tw.ModelInput(chunks=parts), loss_fn_inputs=inputs),
        st.lists(chunks, max_size=3),
        st.dictionaries(NAMES, TENSORS, max_size=3),
    )


def encode_body(dialect: Dialect, datums: Sequence[tw.Datum]) -> bytes:
    """Return the body of a chunk."""
    batch = make_batch(datums)
    request = ForwardBackwardRequest(model_id=MODEL_ID, seq_id=2**31 - 1, forward_backward_input=batch)
    content = codec.encode(forward_backward(body=request), dialect).content
    assert content is not None
    return content


def make_batch(datums: Sequence[tw.Datum]) -> ForwardBackwardInput:
    """Return a batch with loss settings."""
    config: dict[str, float | str] = {"clip_low_threshold": 0.1, "\0\n" * 5: -2.2250738585072014e-308}
    return ForwardBackwardInput(data=list(datums), loss_fn="ppo", loss_fn_config=config)


def bound_overcount(datums: Sequence[tw.Datum]) -> int:
    """Return an upper bound of the overcount of names, locations and floats."""
    names = sum(6 * len(name.encode()) for example in datums for name in example.loss_fn_inputs)
    pointers = [
        chunk
        for example in datums
        for chunk in example.model_input.chunks
        if isinstance(chunk, tw.types.ImageAssetPointerChunk)
    ]
    numbers = sum(len(tensor.raw) for example in datums for tensor in example.loss_fn_inputs.values())
    texts = [
        chunk for example in datums for chunk in example.model_input.chunks if isinstance(chunk, tw.EncodedTextChunk)
    ]
    tokens = sum(len(chunk.tokens) for chunk in texts)
    return names + sum(6 * len(chunk.location.encode()) for chunk in pointers) + 20 * (numbers + tokens)


def check(form: str, datums: list[tw.Datum], body_bytes: int) -> None:
    """Compare the chunks of a batch with their bodies."""
    dialect, size = SIZES[form]
    around = size_around(MODEL_ID, make_batch([]))
    chunks = list(split_batch(datums, tw.ChunkLimits(max_body_bytes=body_bytes), size, around))
    assert [id(example) for chunk in chunks for example in chunk] == [id(example) for example in datums]
    for chunk in chunks:
        assert len(chunk) == 1 or len(encode_body(dialect, chunk)) <= body_bytes
    for chunk, following in itertools.pairwise(chunks):
        parts = 1 + sum(
            len(example.model_input.chunks) + 2 * len(example.loss_fn_inputs) for example in [*chunk, following[0]]
        )
        slack = (
            around
            + (120 if form == "protobuf" else 350) * (parts + len(chunk))
            + bound_overcount([*chunk, following[0]])
        )
        assert len(encode_body(dialect, [*chunk, following[0]])) + slack > body_bytes, "it could have held one more"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(datums(CHUNKS | POINTERS), min_size=1, max_size=12), st.integers(1, 12_000))
def test_chunk_in_json_keeps_to_the_limit(datums: list[tw.Datum], body_bytes: int) -> None:
    """A body is within the limit unless it is one datum; one more datum would exceed it."""
    check("JSON", datums, body_bytes)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(datums(CHUNKS | DMEL), min_size=1, max_size=12), st.integers(1, 12_000))
def test_chunk_in_protobuf_keeps_to_the_limit(datums: list[tw.Datum], body_bytes: int) -> None:
    """The same holds in protobuf, where the count is a close upper bound."""
    check("protobuf", datums, body_bytes)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(datums(CHUNKS | POINTERS))
def test_json_bound_is_an_upper_bound(datum: tw.Datum) -> None:
    """No datum takes more bytes than its measured count, or than its bound."""
    size = JsonSize()
    assert len(JSON.converter.encode(datum)) < size.measure(datum)
    assert len(JSON.converter.encode(datum)) < size.bound(datum)


def test_estimated_json_size_is_close_to_actual_size() -> None:
    """A typical batch is counted at most a third too high, mostly exactly."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 150_000, 4096)
    inputs: dict[str, Any] = {"target_tokens": tokens, "weights": np.ones(4096, np.float32)}
    example = tw.Datum(model_input=tw.ModelInput.from_ints(tokens.tolist()), loss_fn_inputs=inputs)
    size = JsonSize()
    assert size.measure(example) < 1.2 * len(JSON.converter.encode(example))
    inputs["advantages"] = rng.standard_normal(4096).astype(np.float32)
    mixed = tw.Datum(model_input=tw.ModelInput.from_ints(tokens.tolist()), loss_fn_inputs=inputs)
    assert size.measure(mixed) < 4 / 3 * len(JSON.converter.encode(mixed))


@pytest.mark.parametrize("form", SIZES)
def test_tensor_without_shape_counts_like_one_dimensional_tensor(form: str) -> None:
    """A shape that the caller leaves out takes as many bytes as the shape that the request then has."""
    size = SIZES[form][1]
    inputs = [tw.TensorData(data=[0.5] * 7, dtype="float32", shape=shape) for shape in (None, [7], [7, 1])]
    datums = [tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"weights": item}) for item in inputs]
    for count in (size.bound, size.measure):
        without_shape, flat, matrix = map(count, datums)
        assert without_shape == flat < matrix


def count_parts(size: RequestSize, chunks: Sequence[Any] = (), **inputs: tw.TensorData) -> int:
    """Return the bound of a datum with these parts, beyond that of an empty datum."""
    empty = tw.Datum(model_input=tw.ModelInput(chunks=[]), loss_fn_inputs={})
    whole: dict[str, Any] = dict(inputs)
    datum = tw.Datum(model_input=tw.ModelInput(chunks=list(chunks)), loss_fn_inputs=whole)
    return size.bound(datum) - size.bound(empty)


@pytest.mark.parametrize(
    ("form", "dtype", "number", "around", "dimension", "name"),
    [
        ("protobuf", "float32", 4, AROUND_PROTOBUF, 10, 1),
        ("protobuf", "int64", 8, AROUND_PROTOBUF, 10, 1),
        ("JSON", "float32", 16, AROUND_JSON, 21, 6),
        ("JSON", "int64", 21, AROUND_JSON, 21, 6),
    ],
)
def test_bound_of_a_tensor_follows_the_table(
    form: str, dtype: Any, number: int, around: int, dimension: int, name: int
) -> None:
    """Numbers, dimensions and the key have the bytes of the table in the module."""
    size = SIZES[form][1]
    for shape in ([6], [2, 3], [1, 2, 3]):
        tensor = tw.TensorData.from_numpy(np.ones(shape, dtype))
        assert count_parts(size, key=tensor) == around + 6 * number + len(shape) * dimension + 3 * name


def test_bound_of_a_sparse_tensor_counts_its_indices() -> None:
    """Each row and column index is a whole number, and a float of a list has the longest text of a float64."""
    tensor = make_sparse([1.0, 2.0], 3)
    indices = len(tensor.sparse_crow_indices or ()) + len(tensor.sparse_col_indices or ())
    assert count_parts(SIZES["protobuf"][1], key=tensor) == AROUND_PROTOBUF + 2 * 4 + 2 * 10 + 8 * indices + 3
    assert count_parts(SIZES["JSON"][1], key=tensor) == AROUND_JSON + 2 * 25 + 2 * 21 + 21 * indices + 6 * 3


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 100])
def test_bound_of_an_image_is_its_length_in_base64(length: int) -> None:
    """In protobuf it is the length itself; the format counts as text."""
    image = tw.types.ImageChunk(data=bytes(length), format="png", expected_tokens=1)
    assert count_parts(SIZES["protobuf"][1], [image]) == AROUND_PROTOBUF + length + 3
    assert count_parts(SIZES["JSON"][1], [image]) == AROUND_JSON + len(b64encode(bytes(length))) + 6 * 3


def test_bound_of_tokens_is_the_longest_text() -> None:
    """Only the measured count of a list has the length of its text."""
    texts = tw.EncodedTextChunk(tokens=[1, 22, 333])
    array = tw.EncodedTextChunk(tokens=np.array([1, 22, 333]))
    assert count_parts(SIZES["protobuf"][1], [texts]) == AROUND_PROTOBUF + 3 * 4
    for chunk in (texts, array):
        assert count_parts(SIZES["JSON"][1], [chunk]) == AROUND_JSON + 3 * 21
    empty, datum = (
        tw.Datum(model_input=tw.ModelInput(chunks=[*chunks]), loss_fn_inputs={}) for chunks in ([], [texts])
    )
    measure = SIZES["JSON"][1].measure
    assert measure(datum) - measure(empty) == AROUND_JSON + len("[1,22,333],")


def test_measured_numbers_have_the_length_of_the_longest() -> None:
    """Whole numbers count with the longest of them, whole floats too, and fractions with their bound."""
    size = SIZES["JSON"][1]

    def measure(values: Any) -> int:
        tensor = tw.TensorData.from_numpy(values)
        datum = tw.Datum(model_input=tw.ModelInput(chunks=[]), loss_fn_inputs={"k": tensor})
        empty = tw.Datum(model_input=tw.ModelInput(chunks=[]), loss_fn_inputs={})
        return size.measure(datum) - size.measure(empty) - AROUND_JSON - 21 - 6

    assert measure(np.array([1, -200, 30])) == 3 * len("-200,")
    assert measure(np.array([1, 2000, 30])) == 3 * len("2000,")
    assert measure(np.array([1.0, 200.0], np.float32)) == 2 * len("-200.0,")
    assert measure(np.array([9_999_999.0, 0.0], np.float32)) == 2 * len("-9999999.0,")
    for values in ([1e7, 0.0], [-1e7, 0.0], [0.5, 1.0], [1.0, 0.5], [np.inf, 1.0]):
        assert measure(np.array(values, np.float32)) == 2 * 16
    assert measure(np.array([], np.float32)) == 0


def test_bound_of_spans_counts_their_ids() -> None:
    """Only protobuf carries spans, of inputs and of targets."""
    tokens = tw.ModelInput.from_ints([1])
    inputs: dict[str, Any] = {"target_tokens": [1]}
    spans: list[Any] = [SampledProvenanceSpan(sequence_id="abc", offset=0, length=1)]
    without = tw.Datum(model_input=tokens, loss_fn_inputs=inputs)
    both = tw.Datum(model_input=tokens, loss_fn_inputs=inputs, model_input_spans=spans, loss_fn_input_spans=spans)
    added = ProtobufSize().bound(both) - ProtobufSize().bound(without)
    assert added == 2 * (AROUND_PROTOBUF + len("abc"))


def test_larger_size_is_the_larger_of_both() -> None:
    """Either form may be the larger one."""
    image = tw.Datum(
        model_input=tw.ModelInput(chunks=[tw.types.ImageChunk(data=bytes(999), format="png")]), loss_fn_inputs={}
    )
    both = LargerSize(ProtobufSize(), JsonSize())
    assert both.bound(image) == JsonSize().bound(image) > ProtobufSize().bound(image)
    assert both.measure(image) == JsonSize().measure(image) > ProtobufSize().measure(image)


def test_request_around_its_datums_counts_its_texts() -> None:
    """The model id, the loss and each entry of its configuration are counted in the longest escapes."""
    plain = ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config=None)
    assert size_around("m1", plain) == AROUND_REQUEST + 6 * (2 + 3)
    configured = ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config={"clip": 0.25, "b": 1.0})
    added = 2 * 2 * AROUND_PROTOBUF + 6 * (len("clip") + len("0.25") + len("b") + len("1.0"))
    assert size_around("m1", configured) == size_around("m1", plain) + added
    assert size_around("\N{SNOWMAN}", plain) == AROUND_REQUEST + 6 * (3 + 3)


def test_unknown_form_counts_as_larger_form() -> None:
    """The larger size counts until the form is known, and if the batch has no protobuf form."""
    text = tw.Datum(model_input=tw.ModelInput.from_ints([2**30] * 100), loss_fn_inputs={})
    pointer = tw.types.ImageAssetPointerChunk(location="tinker://x", format="png", expected_tokens=3)
    picture = tw.Datum(model_input=tw.ModelInput(chunks=[pointer]), loss_fn_inputs={})
    guess = Dialect.from_client_config(None)
    assert guess.is_provisional
    assert request_size(guess, "forward", [text]).bound(text) == JsonSize().bound(text)
    assert request_size(JSON, "forward", [text]).bound(text) == JsonSize().bound(text)
    assert request_size(PROTOBUF, "forward", [text]).bound(text) == ProtobufSize().bound(text)
    assert request_size(PROTOBUF, "forward", [picture]).bound(picture) >= JsonSize().bound(picture)


def accept(request: RecordedRequest) -> ScriptedResponse:
    """Accept a batch in either form."""
    return ScriptedResponse({"request_id": "r"})


@pytest.mark.parametrize("version", ["0.18.2", "0.38.0"])
def test_images_are_sent_within_the_limit(server: ScriptedServer, version: str) -> None:
    """20 images of 100 kB go out in a few requests of at most 700 kB, in both forms."""
    server.rules["forward_backward"] = accept
    result = ScriptedResponse({"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}})
    server.on_poll("ForwardBackward", lambda _: result)
    image = tw.types.ImageChunk(data=bytes(100_000), format="png", expected_tokens=4)
    datums = [tw.Datum(model_input=tw.ModelInput(chunks=[image]), loss_fn_inputs={"weights": [1.0]}) for _ in range(20)]
    with open_client(server.url, wire_version=version, chunk_limits=tw.ChunkLimits(max_body_bytes=700_000)) as client:
        future = client.create_lora_training_client("base").forward_backward(datums, "cross_entropy")
        expected = {"0.18.2": 4, "0.38.0": 4}[version]
        server.wait_for(lambda: len(server.named("forward_backward")) == expected)
        future.cancel()
    sizes = [int(request.headers["content-length"]) for request in server.named("forward_backward")]
    assert max(sizes) <= 700_000
    assert min(sizes) >= 200_000
