"""Tests of large batches: how they are split, sent in order, and merged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._training.chunking import count_values, split_batch
from tinkerwire._training.request_size import ProtobufSize

pytestmark = pytest.mark.timeout(60)
SIZES = st.lists(st.integers(1, 40), max_size=40)
SIZE = ProtobufSize()
LIMITS = st.builds(tw.ChunkLimits, max_datums=st.integers(1, 10), max_values=st.integers(1, 100))


def make_datum(number: int) -> tw.Datum:
    """Return a datum with a number of values."""
    tokens = np.zeros(number, dtype=np.int64)
    return tw.Datum(model_input=tw.ModelInput.from_ints(tokens), loss_fn_inputs={})


@given(SIZES, LIMITS)
def test_chunks_are_the_batch_within_the_limits(sizes: list[int], limits: tw.ChunkLimits) -> None:
    """Chunks are consecutive, not empty, complete, and within both limits, except a single oversize datum."""
    datums = [make_datum(size) for size in sizes]
    chunks = list(split_batch(datums, limits, SIZE))
    assert [id(d) for chunk in chunks for d in chunk] == [id(d) for d in datums]
    for chunk in chunks:
        assert 1 <= len(chunk) <= limits.max_datums
        assert len(chunk) == 1 or sum(map(count_values, chunk)) <= limits.max_values


@given(SIZES, LIMITS)
def test_chunks_are_as_large_as_they_can_be(sizes: list[int], limits: tw.ChunkLimits) -> None:
    """No datum fits into the chunk before its own."""
    chunks = list(split_batch([make_datum(size) for size in sizes], limits, SIZE))
    for chunk, following in itertools.pairwise(chunks):
        is_full = len(chunk) == limits.max_datums
        assert is_full or sum(map(count_values, [*chunk, following[0]])) > limits.max_values


class FixedSizes:
    """Counter of bytes with given numbers per datum, which records the datums that it measures."""

    def __init__(self, bounds: list[int], measures: list[int]) -> None:
        self.datums = [make_datum(1) for _ in bounds]
        self.measured: list[int] = []
        self._sizes = {
            id(datum): size for datum, size in zip(self.datums, zip(bounds, measures, strict=True), strict=True)
        }

    def bound(self, datum: tw.Datum) -> int:
        """Return the given upper bound."""
        return self._sizes[id(datum)][0]

    def measure(self, datum: tw.Datum) -> int:
        """Return the given count."""
        self.measured.append(next(i for i, item in enumerate(self.datums) if item is datum))
        return self._sizes[id(datum)][1]

    def split(self, around: int, **limits: int) -> list[int]:
        """Return the lengths of the chunks."""
        return [len(chunk) for chunk in split_batch(self.datums, tw.ChunkLimits(**limits), self, around)]


@pytest.mark.parametrize(
    ("bounds", "measures", "around", "limit", "lengths", "measured"),
    [
        ([40, 40, 20], [1, 1, 1], 0, 100, [3], []),
        ([40, 40, 19], [1, 1, 1], 1, 100, [3], []),
        ([40, 40, 20], [40, 40, 20], 1, 100, [2, 1], [0, 1, 2]),
        ([60, 60, 60], [30, 30, 40], 0, 100, [3], [0, 1, 2]),
        ([60, 60, 60], [30, 30, 41], 0, 100, [2, 1], [0, 1, 2]),
        ([60, 60, 10, 60], [30, 30, 5, 40], 0, 100, [3, 1], [0, 1, 2, 3]),
        ([60, 60, 10, 60], [30, 30, 5, 35], 0, 100, [4], [0, 1, 2, 3]),
        ([90, 90, 90, 90], [50, 50, 50, 50], 0, 100, [2, 2], [0, 1, 2, 3]),
        ([300, 10, 10], [200, 5, 5], 0, 100, [1, 2], [0, 1]),
    ],
)
def test_datums_are_measured_once_and_only_near_the_byte_limit(
    bounds: list[int], measures: list[int], around: int, limit: int, lengths: list[int], measured: list[int]
) -> None:
    """Bounds decide while they fit; beyond the limit, each datum is counted at most once, and the counts decide."""
    sizes = FixedSizes(bounds, measures)
    assert sizes.split(around, max_body_bytes=limit) == lengths
    assert sorted(set(sizes.measured)) == measured
    assert len(sizes.measured) == len(set(sizes.measured))


def test_tighter_limits_of_the_server_apply() -> None:
    """Of each limit that the server has, too, the smaller one holds; no limit is below 1."""
    limits = tw.ChunkLimits(max_datums=50, max_values=7, max_body_bytes=1000)
    config = tw.types.ClientConfigResponse(fwdbwd_max_chunk_len=20, fwdbwd_max_chunk_bytes_count=2000)
    assert limits.within(config) == tw.ChunkLimits(max_datums=20, max_values=7, max_body_bytes=1000)
    config = tw.types.ClientConfigResponse(fwdbwd_max_chunk_len=200, fwdbwd_max_chunk_bytes_count=500)
    assert limits.within(config) == tw.ChunkLimits(max_datums=50, max_values=7, max_body_bytes=500)
    config = tw.types.ClientConfigResponse(fwdbwd_max_chunk_len=0, fwdbwd_max_chunk_bytes_count=-3)
    assert limits.within(config) == tw.ChunkLimits(max_datums=1, max_values=7, max_body_bytes=1)


def test_chunk_limit_counts_tokens_images_and_tensor_elements() -> None:
    """Tokens, expected tokens of images and stored tensor elements count; images of unknown length do not."""
    inputs = {"target_tokens": np.zeros((3, 4), dtype=np.int64), "weights": [0.5] * 5}
    text = tw.EncodedTextChunk(tokens=[1, 2, 3])
    image = tw.types.ImageChunk(data=b"x", format="png", expected_tokens=7)
    unknown = tw.types.ImageAssetPointerChunk(location="tinker://x", format="png")
    assert count_values(tw.Datum(model_input=tw.ModelInput(chunks=[text, image]), loss_fn_inputs=inputs)) == 3 + 7 + 17
    assert count_values(tw.Datum(model_input=tw.ModelInput(chunks=[text, unknown]), loss_fn_inputs=inputs)) == 3 + 17
    old = tw.types.ImageChunk(data=b"x", format="png", tokens=5)
    assert count_values(tw.Datum(model_input=tw.ModelInput(chunks=[old, unknown, text]), loss_fn_inputs={})) == 5 + 3
    sparse = tw.TensorData(
        data=[1.0, 2.0],
        dtype="float32",
        shape=[2, 1_000_000],
        sparse_crow_indices=[0, 1, 2],
        sparse_col_indices=[7, 8],
    )
    assert (
        count_values(tw.Datum(model_input=tw.ModelInput.from_ints([]), loss_fn_inputs={"weights": sparse})) == 2 + 3 + 2
    )


def test_limits_have_defaults_and_must_be_positive() -> None:
    """128 datums, 500,000 values and 5 MB are the defaults; a limit below 1 raises."""
    limits = tw.ChunkLimits()
    assert (limits.max_datums, limits.max_values, limits.max_body_bytes) == (128, 500_000, 5_000_000)
    for invalid in ({"max_datums": 0}, {"max_values": 0}, {"max_datums": -1}, {"max_body_bytes": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(invalid))} must be at least 1, got"):
            tw.ChunkLimits(**invalid)


def echo(request: RecordedRequest) -> ScriptedResponse:
    """Accept a chunk under a request id that holds its tokens."""
    (part,) = [request.body[key] for key in request.body if key.endswith("_input")]
    tokens = [datum["model_input"]["chunks"][0]["tokens"][0] for datum in part["data"]]
    return ScriptedResponse({"request_id": ",".join(map(str, tokens))})


def make_chunk_output(request: RecordedRequest) -> ScriptedResponse:
    """Return the result of such a chunk: its tokens, their mean and sum."""
    tokens = [int(token) for token in request.body["request_id"].split(",")]
    outputs = [{"logprobs": {"data": [float(t)], "dtype": "float32", "shape": [1]}} for t in tokens]
    metrics = {"token:mean": sum(tokens) / len(tokens), "token:sum": float(sum(tokens))}
    return ScriptedResponse({"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": metrics})


@pytest.mark.parametrize(("name", "kind"), [("forward_backward", "ForwardBackward"), ("forward", "Forward")])
def test_large_batch_is_sent_in_consecutive_chunks(server: ScriptedServer, name: str, kind: str) -> None:
    """A batch of 10 in chunks of 4 is three consecutive requests in order and one result."""
    server.rules[name] = echo
    server.on_poll(kind, make_chunk_output)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=4)) as client:
        training = client.create_lora_training_client("base")
        method = training.forward if name == "forward" else training.forward_backward
        futures = [method([datum(i) for i in range(10)], "cross_entropy"), training.optim_step(ADAM)]
        output = futures[0].result(TEST_TIMEOUT_S)
        futures[1].result(TEST_TIMEOUT_S)
    assert isinstance(output, tw.ForwardBackwardOutput)
    assert [float(o["logprobs"].to_numpy()[0]) for o in output.loss_fn_outputs] == list(range(10))
    assert output.metrics == {"token:mean": 4.5, "token:sum": 45.0}
    assert [body["seq_id"] for body in server.bodies(name)] == [1, 2, 3]
    assert [body["seq_id"] for body in server.bodies("optim_step")] == [4]
    assert [len(body[f"{name}_input"]["data"]) for body in server.bodies(name)] == [4, 4, 2]


def test_chunks_of_two_callers_do_not_mix(server: ScriptedServer) -> None:
    """The chunks of one call have consecutive seq_ids when other threads call in between."""
    server.rules["forward_backward"] = echo
    server.on_poll("ForwardBackward", make_chunk_output)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        calls = [training.forward_backward([datum(10 * n + i) for i in range(3)], "cross_entropy") for n in range(5)]
        for call in calls:
            call.result(TEST_TIMEOUT_S)
    tokens = [
        b["forward_backward_input"]["data"][0]["model_input"]["chunks"][0]["tokens"][0]
        for b in server.bodies("forward_backward")
    ]
    assert tokens == [10 * n + i for n in range(5) for i in range(3)]


def test_results_in_any_order_make_the_same_output(server: ScriptedServer) -> None:
    """If the last chunk's result arrives first, the outputs are still in the order of the batch."""
    gate = Gate()
    server.rules["forward_backward"] = echo
    server.on_poll(
        "ForwardBackward",
        lambda a: ScriptedResponse(make_chunk_output(a).body, gate=gate if a.body["request_id"] == "0" else None),
    )
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        future = client.create_lora_training_client("base").forward_backward([datum(0), datum(1)], "cross_entropy")
        server.wait_for(lambda: len(server.polls("ForwardBackward")) == 2)
        gate.release()
        assert [float(o["logprobs"].to_numpy()[0]) for o in future.result(TEST_TIMEOUT_S).loss_fn_outputs] == [0.0, 1.0]


@pytest.mark.parametrize("chunk", [0, 1, 2])
def test_rejected_chunk_fails_only_its_operation(server: ScriptedServer, chunk: int) -> None:
    """A rejected chunk fails its call; the chunks behind it are not sent, and the client still works."""
    responses = [echo] * chunk + [ScriptedResponse({"detail": "bad datum"}, status=422), echo]
    server.rules["forward_backward"] = in_order(*responses)
    server.on_poll("ForwardBackward", make_chunk_output)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        broken = training.forward_backward([datum(i) for i in range(3)], "cross_entropy")
        next_batch = training.forward_backward([datum(7)], "cross_entropy")
        with pytest.raises(tw.UnprocessableEntityError, match="bad datum"):
            broken.result(TEST_TIMEOUT_S)
        assert next_batch.result(TEST_TIMEOUT_S).metrics == {"token:mean": 7.0, "token:sum": 7.0}
    assert [b["seq_id"] for b in server.bodies("forward_backward")] == [*range(1, chunk + 2), chunk + 1]


def test_several_failed_chunks_make_one_error(server: ScriptedServer) -> None:
    """If the result of a chunk and the submission of a later one fail, the call raises one error."""
    gate = Gate()
    refuse = ScriptedResponse({"detail": "bad datum"}, status=422, gate=gate)
    server.rules["forward_backward"] = in_order(echo, refuse, echo)
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse({"error": "boom"}))
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        broken = training.forward_backward([datum(i) for i in range(3)], "cross_entropy")
        server.wait_for(lambda: server.active["retrieve_future"] == 0 and len(server.polls("ForwardBackward")) == 1)
        gate.release()
        with pytest.raises(tw.UnprocessableEntityError):
            broken.result(TEST_TIMEOUT_S)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_failed_chunk_result_fails_only_its_operation(server: ScriptedServer) -> None:
    """A failed result of a chunk fails the call, and the polls of other chunks end."""
    server.rules["forward_backward"] = echo
    failed = ScriptedResponse({"error": "boom", "category": "server"})
    hung = ScriptedResponse(gate=Gate())
    server.on_poll("ForwardBackward", lambda request: failed if request.body["request_id"] == "1" else hung)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        broken = training.forward_backward([datum(0), datum(1)], "cross_entropy")
        with pytest.raises(tw.RequestFailedError, match="boom"):
            broken.result(TEST_TIMEOUT_S)
        server.wait_for(lambda: server.active["retrieve_future"] == 0, "the other poll is given up")
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_cancelled_batch_stops_sending(server: ScriptedServer) -> None:
    """Cancelling a batch drops its unsent chunks and its polls; the client still works."""
    gate = Gate()
    server.rules["forward_backward"] = in_order(
        echo, lambda request: ScriptedResponse(echo(request).body, gate=gate), echo
    )
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(gate=gate))
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        batch = training.forward_backward([datum(i) for i in range(5)], "cross_entropy")
        server.wait_for_requests("forward_backward", 2)
        assert batch.cancel()
        gate.release()
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert len(server.named("forward_backward")) == 2
        assert server.bodies("optim_step")[0]["seq_id"] == 3
