"""Tests of the encoding of requests and results as protobuf, and of the errors of those that have no such form."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from tinkerwire._server.http.protobuf import decode_request, encode_result
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.errors import DialectError
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import message_class

TOKENS = m.EncodedTextChunk(tokens=[1, 2, 3])


def make_batch_request(
    *chunks: m.ModelInputChunk,
    seq_id: int | None = 1,
    config: dict[str, float | str] | None = None,
    **inputs: m.TensorData | ArrayLike,
) -> m.ForwardBackwardRequest:
    """Return a request with one datum."""
    datum = m.Datum(model_input=m.ModelInput(chunks=list(chunks)), loss_fn_inputs=inputs)
    batch = m.ForwardBackwardInput(data=[datum], loss_fn="cross_entropy", loss_fn_config=config)
    return m.ForwardBackwardRequest(forward_backward_input=batch, model_id="run", seq_id=seq_id)


def encode_to_message(request: m.ForwardBackwardRequest | m.ForwardRequest, version: str | None = None) -> Any:
    """Return the protobuf message of a request."""
    return message_class("ForwardBackwardRequest").FromString(encode_request(request, version))


def test_request_fields_have_protobuf_form() -> None:
    """Numbers are little-endian, images raw bytes, and both maps of the config have its numbers."""
    image, dmel = m.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=7), m.DmelChunk(dmel=b"\0\1")
    weights = np.array([[0.5, 1.0]], np.float32)
    message = encode_to_message(
        make_batch_request(TOKENS, image, dmel, weights=weights, config={"beta": 2, "loss_id": "x"})
    )
    assert (message.model_id, message.seq_id, message.loss_fn, message.forward_only) == (
        "run",
        1,
        "cross_entropy",
        False,
    )
    text, image_chunk, dmel_chunk = message.data[0].model_input
    assert text.encoded_text.tokens == struct.pack("<3i", 1, 2, 3)
    assert (image_chunk.image.data, image_chunk.image.format, image_chunk.image.expected_tokens) == (
        b"\x89PNG",
        "png",
        7,
    )
    assert dmel_chunk.dmel.dmel == b"\0\1"
    tensor = message.data[0].loss_fn_inputs["weights"]
    assert (tensor.dense, tensor.dtype, list(tensor.shape)) == (struct.pack("<2f", 0.5, 1.0), 1, [1, 2])
    assert dict(message.loss_fn_config) == {"beta": 2.0}
    assert message.loss_fn_config_v2["beta"].number == 2.0
    assert message.loss_fn_config_v2["loss_id"].text == "x"


def test_forward_request_sets_forward_only() -> None:
    """Both operations share one message, in which forward sets the flag."""
    batch = make_batch_request(TOKENS).forward_backward_input
    request = m.ForwardRequest(forward_input=batch, model_id="run", seq_id=None)
    assert encode_to_message(request).forward_only
    assert encode_to_message(request).seq_id == 0
    assert decode_request(encode_request(request)) == request


SPANS: Any = {
    "model_input": [
        m.PromptProvenanceSpan(sequence_id="s", length=2),
        m.SampledProvenanceSpan(sequence_id="s", length=1),
    ],
    "loss_fn_inputs": [m.SampledProvenanceSpan(sequence_id="s", offset=4, length=3)],
}


def add_spans(request: m.ForwardBackwardRequest) -> m.ForwardBackwardRequest:
    """Return the request with the provenance of its tokens."""
    batch = request.forward_backward_input
    datums = [datum.with_provenance(**SPANS) for datum in batch.data]
    return attrs.evolve(request, forward_backward_input=attrs.evolve(batch, data=datums))


def test_provenance_spans_have_protobuf_form() -> None:
    """Both lists are sent, each span in the field of its kind."""
    message = encode_to_message(add_spans(make_batch_request(TOKENS, target_tokens=np.arange(3)))).data[0]
    prompt, sample = message.model_input_spans
    assert (prompt.WhichOneof("span"), sample.WhichOneof("span")) == ("prompt_tokens", "sampled_tokens")
    assert (prompt.prompt_tokens.sequence_id, prompt.prompt_tokens.offset, prompt.prompt_tokens.length) == ("s", 0, 2)
    (target,) = message.loss_fn_input_spans
    assert (target.sampled_tokens.offset, target.sampled_tokens.length) == (4, 3)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (
            make_batch_request(m.EncodedTextChunk(tokens=[1, 2**31])),
            OverflowError,
            "data[0].model_input.chunks[0].tokens[1]: 2147483648",
        ),
        (
            make_batch_request(TOKENS, m.EncodedTextChunk(tokens=np.array([-(2**31) - 1]))),
            OverflowError,
            "chunks[1].tokens[0]: -2147483649",
        ),
        (make_batch_request(TOKENS, seq_id=2**31), OverflowError, "seq_id: 2147483648"),
        (
            make_batch_request(TOKENS, m.ImageAssetPointerChunk(location="x", format="png")),
            ValueError,
            "data[0].model_input.chunks[1]: ImageAssetPointerChunk",
        ),
        (
            make_batch_request(m.ImageChunk(data=b"", format="png", expected_tokens=2**31)),
            OverflowError,
            "expected_tokens: 2147483648",
        ),
        (
            make_batch_request(config={"beta": 2**53 + 1}),
            ValueError,
            "loss_fn_config['beta']: float64 cannot hold 9007199254740993",
        ),
    ],
)
def test_value_without_protobuf_form_is_rejected(
    batch: m.ForwardBackwardRequest, error: type[Exception], message: str
) -> None:
    """The error names the field, the index and the value."""
    with pytest.raises(error) as caught:
        encode_request(batch)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "values", "large_value"), [("weights", np.ones(2), 1e39), ("target_tokens", np.ones(2, np.uint64), 2**63)]
)
def test_converted_array_is_copied_at_construction(key: str, values: NDArray[Any], large_value: float) -> None:
    """Values that the user later writes into an array of another dtype are not sent."""
    tensor = m.TensorData(data=values, dtype="float32" if key == "weights" else "int64")
    request = make_batch_request(TOKENS, **{key: tensor})
    values[1] = large_value
    decoded = decode_request(encode_request(request))
    assert isinstance(decoded, m.ForwardBackwardRequest)
    assert decoded.forward_backward_input.data[0].loss_fn_inputs[key].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("batch", "version", "field"),
    [
        (make_batch_request(TOKENS), "0.18.2", "the protobuf message ForwardBackwardRequest"),
        (
            m.ForwardRequest(forward_input=make_batch_request().forward_backward_input, model_id="x", seq_id=1),
            "0.22.6",
            "ForwardBackwardRequest.forward_only",
        ),
        (make_batch_request(config={"loss_id": "x"}), "0.26.1", "ForwardBackwardRequest.loss_fn_config_v2"),
        (make_batch_request(TOKENS, m.DmelChunk(dmel=b"x")), "0.23.3", "Chunk.dmel"),
        (add_spans(make_batch_request(TOKENS)), "0.26.1", "Datum.model_input_spans"),
        (make_batch_request(m.ImageChunk(data=b"x", format="png", height=1)), None, "ImageChunk.height"),
    ],
)
def test_field_of_newer_version_is_rejected(
    batch: m.ForwardBackwardRequest | m.ForwardRequest, version: str | None, field: str
) -> None:
    """The error names the field, its first version and the version in use."""
    with pytest.raises(DialectError) as caught:
        encode_request(batch, version)
    assert caught.value.what == field
    assert str(caught.value.since) in str(caught.value)


def test_older_version_gets_fields_that_it_has() -> None:
    """Numbers of the config are sent in the map that the version has."""
    message = encode_to_message(make_batch_request(TOKENS, config={"beta": 2.0}), "0.26.1")
    assert dict(message.loss_fn_config) == {"beta": 2.0}
    assert not message.loss_fn_config_v2
    assert (
        encode_to_message(make_batch_request(m.DmelChunk(dmel=b"x")), "0.23.4").data[0].model_input[0].dmel.dmel == b"x"
    )


def test_server_rejects_result_fields_of_newer_version() -> None:
    """The server checks results against the version of the client."""
    target = m.TensorData(data=[0.5], dtype="float32")
    sample = m.SampleResponse(sequences=[], target_prompt_logprobs=target)
    assert encode_result(sample, "0.30.4")
    with pytest.raises(DialectError, match=r"SampleResponse\.target_prompt_logprobs is not in wire 0\.30\.3"):
        encode_result(sample, "0.30.3")
    with pytest.raises(DialectError, match="ForwardBackwardOutput"):
        encode_result(m.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[], metrics={}), "0.18.2")


def sample_response(**fields: Any) -> m.SampleResponse:
    """Return a result with one sequence."""
    return m.SampleResponse(sequences=[m.SampledSequence(**{"stop_reason": "stop", "tokens": [], **fields})])


def make_batch_output(shape: list[int], values: list[float]) -> m.ForwardBackwardOutput:
    """Return a result with one tensor."""
    tensor = m.TensorData(data=values, dtype="float32", shape=shape)
    return m.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[{"x": tensor}], metrics={})


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda: encode_result(sample_response(stop_reason="tool")), "sequences[0].stop_reason: must be one of"),
        (lambda: encode_result(sample_response(stop_reason=str(2**31))), "sequences[0].stop_reason: 2147483648"),
        (lambda: encode_result(sample_response(tokens=[2**31])), "sequences[0].tokens[0]: 2147483648"),
        (lambda: encode_result(sample_response(logprobs=["x"])), "sequences[0].logprobs: cannot be read"),
        (
            lambda: encode_result(sample_response(extra_fields={"new": 1})),
            "sequences[0].extra_fields: the protobuf message",
        ),
        (
            lambda: encode_result(sample_response(sequence_id="s")),
            "sequences[0].sequence_id: the protobuf message does not",
        ),
        (
            lambda: encode_result(make_batch_output([], [1.0])),
            "loss_fn_outputs['x']: protobuf cannot hold a tensor without dimensions",
        ),
        (lambda: encode_result(make_batch_output([3, 0], [])), "loss_fn_outputs[0:]['x']: rows of shape [0]"),
    ],
)
def test_result_without_protobuf_form_is_rejected(encode: Callable[[], bytes], message: str) -> None:
    """The error names the field, the index and the reason."""
    with pytest.raises((ValueError, OverflowError)) as caught:
        encode()
    assert message in str(caught.value)
