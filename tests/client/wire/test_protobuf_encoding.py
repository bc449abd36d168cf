"""Binary requests and results that are sent: what has no binary form, and what a wire version lacks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import protobuf
from tinkerwire_base.errors import DialectError
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import message_class

TOKENS = m.EncodedTextChunk(tokens=[1, 2, 3])


def batch_request(*chunks: Any, seq_id: int | None = 1, config: Any = None, **inputs: Any) -> m.ForwardBackwardRequest:
    """A request of one datum."""
    datum = m.Datum(model_input=m.ModelInput(chunks=list(chunks)), loss_fn_inputs=inputs)
    given = m.ForwardBackwardInput(data=[datum], loss_fn="cross_entropy", loss_fn_config=config)
    return m.ForwardBackwardRequest(forward_backward_input=given, model_id="run", seq_id=seq_id)


def sent(request: Any, version: str | None = None) -> Any:
    """The message that a request becomes."""
    return message_class("ForwardBackwardRequest").FromString(protobuf.encode_request(request, version))


def test_a_request_field_by_field() -> None:
    """Little-endian numbers, raw images, and numbers of the config in both of its maps."""
    image, dmel = m.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=7), m.DmelChunk(dmel=b"\0\1")
    weights = np.array([[0.5, 1.0]], np.float32)
    found = sent(batch_request(TOKENS, image, dmel, weights=weights, config={"beta": 2, "loss_id": "x"}))
    assert (found.model_id, found.seq_id, found.loss_fn, found.forward_only) == ("run", 1, "cross_entropy", False)
    text, picture, sound = found.data[0].model_input
    assert text.encoded_text.tokens == struct.pack("<3i", 1, 2, 3)
    assert (picture.image.data, picture.image.format, picture.image.expected_tokens) == (b"\x89PNG", "png", 7)
    assert sound.dmel.dmel == b"\0\1"
    tensor = found.data[0].loss_fn_inputs["weights"]
    assert (tensor.dense, tensor.dtype, list(tensor.shape)) == (struct.pack("<2f", 0.5, 1.0), 1, [1, 2])
    assert dict(found.loss_fn_config) == {"beta": 2.0}
    assert found.loss_fn_config_v2["beta"].number == 2.0
    assert found.loss_fn_config_v2["loss_id"].text == "x"


def test_a_forward_request_is_one_that_is_forward_only() -> None:
    """There is one message for both; the name of the call is the flag."""
    given = batch_request(TOKENS).forward_backward_input
    request = m.ForwardRequest(forward_input=given, model_id="run", seq_id=None)
    assert sent(request).forward_only
    assert sent(request).seq_id == 0
    assert served.decode_request(protobuf.encode_request(request)) == request


SPANS: Any = {
    "model_input": [
        m.PromptProvenanceSpan(sequence_id="s", length=2),
        m.SampledProvenanceSpan(sequence_id="s", length=1),
    ],
    "loss_fn_inputs": [m.SampledProvenanceSpan(sequence_id="s", offset=4, length=3)],
}


def with_spans(request: m.ForwardBackwardRequest) -> m.ForwardBackwardRequest:
    """The request, whose datum says where its tokens come from."""
    given = request.forward_backward_input
    data = [datum.with_provenance(**SPANS) for datum in given.data]
    return attrs.evolve(request, forward_backward_input=attrs.evolve(given, data=data))


def test_provenance_spans_field_by_field() -> None:
    """Both lists, each span in the part that says what it is a run of."""
    found = sent(with_spans(batch_request(TOKENS, target_tokens=np.arange(3)))).data[0]
    prompt, sample = found.model_input_spans
    assert (prompt.WhichOneof("span"), sample.WhichOneof("span")) == ("prompt_tokens", "sampled_tokens")
    assert (prompt.prompt_tokens.sequence_id, prompt.prompt_tokens.offset, prompt.prompt_tokens.length) == ("s", 0, 2)
    (target,) = found.loss_fn_input_spans
    assert (target.sampled_tokens.offset, target.sampled_tokens.length) == (4, 3)


@pytest.mark.parametrize(
    ("request_", "error", "place"),
    [
        (
            batch_request(m.EncodedTextChunk(tokens=[1, 2**31])),
            OverflowError,
            "data[0].model_input.chunks[0].tokens[1]: 2147483648",
        ),
        (
            batch_request(TOKENS, m.EncodedTextChunk(tokens=np.array([-(2**31) - 1]))),
            OverflowError,
            "chunks[1].tokens[0]: -2147483649",
        ),
        (batch_request(TOKENS, seq_id=2**31), OverflowError, "seq_id: 2147483648"),
        (
            batch_request(TOKENS, m.ImageAssetPointerChunk(location="x", format="png")),
            ValueError,
            "data[0].model_input.chunks[1]: ImageAssetPointerChunk",
        ),
        (
            batch_request(m.ImageChunk(data=b"", format="png", expected_tokens=2**31)),
            OverflowError,
            "expected_tokens: 2147483648",
        ),
        (batch_request(config={"beta": 2**53 + 1}), ValueError, "loss_fn_config['beta']: 9007199254740993"),
    ],
)
def test_what_has_no_binary_form_is_refused_by_place_and_value(
    request_: Any, error: type[Exception], place: str
) -> None:
    """The error comes before anything is sent."""
    with pytest.raises(error) as caught:
        protobuf.encode_request(request_)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("key", "values", "large"), [("weights", np.ones(2), 1e39), ("target_tokens", np.ones(2, np.uint64), 2**63)]
)
def test_an_array_of_another_dtype_is_copied_when_the_datum_is_made(key: str, values: Any, large: Any) -> None:
    """Values that the user writes into the array afterwards are not sent."""
    tensor = m.TensorData(data=values, dtype="float32" if key == "weights" else "int64")
    request = batch_request(TOKENS, **{key: tensor})
    values[1] = large
    decoded = served.decode_request(protobuf.encode_request(request))
    assert isinstance(decoded, m.ForwardBackwardRequest)
    assert decoded.forward_backward_input.data[0].loss_fn_inputs[key].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("request_", "version", "what"),
    [
        (batch_request(TOKENS), "0.18.2", "the protobuf message ForwardBackwardRequest"),
        (
            m.ForwardRequest(forward_input=batch_request().forward_backward_input, model_id="x", seq_id=1),
            "0.22.6",
            "ForwardBackwardRequest.forward_only",
        ),
        (batch_request(config={"loss_id": "x"}), "0.26.1", "ForwardBackwardRequest.loss_fn_config_v2"),
        (batch_request(TOKENS, m.DmelChunk(dmel=b"x")), "0.23.3", "Chunk.dmel"),
        (with_spans(batch_request(TOKENS)), "0.26.1", "Datum.model_input_spans"),
        (batch_request(m.ImageChunk(data=b"x", format="png", height=1)), None, "ImageChunk.height"),
    ],
)
def test_what_a_version_lacks_is_refused(request_: Any, version: str | None, what: str) -> None:
    """The error names the field, since when it exists and the version in use."""
    with pytest.raises(DialectError) as caught:
        protobuf.encode_request(request_, version)
    assert caught.value.what == what
    assert str(caught.value.since) in str(caught.value)


def test_older_versions_take_what_they_know() -> None:
    """Numbers of the config go into the map that is there."""
    found = sent(batch_request(TOKENS, config={"beta": 2.0}), "0.26.1")
    assert dict(found.loss_fn_config) == {"beta": 2.0}
    assert not found.loss_fn_config_v2
    assert sent(batch_request(m.DmelChunk(dmel=b"x")), "0.23.4").data[0].model_input[0].dmel.dmel == b"x"


def test_a_sample_for_an_older_client_has_nothing_that_it_does_not_know() -> None:
    """The server's side is held against the version, too."""
    target = m.TensorData(data=[0.5], dtype="float32")
    sample = m.SampleResponse(sequences=[], target_prompt_logprobs=target)
    assert served.encode_sample(sample, "0.30.4")
    with pytest.raises(DialectError, match=r"SampleResponse\.target_prompt_logprobs is not in wire 0\.30\.3"):
        served.encode_sample(sample, "0.30.3")
    with pytest.raises(DialectError, match="ForwardBackwardOutput"):
        served.encode_output(m.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[], metrics={}), "0.18.2")


def sampled(**fields: Any) -> m.SampleResponse:
    """A result of one sequence."""
    make: Any = m.SampledSequence
    return m.SampleResponse(sequences=[make(**{"stop_reason": "stop", "tokens": [], **fields})])


def lost(shape: list[int], values: list[float]) -> m.ForwardBackwardOutput:
    """A result of one tensor."""
    tensor = m.TensorData(data=values, dtype="float32", shape=shape)
    return m.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[{"x": tensor}], metrics={})


@pytest.mark.parametrize(
    ("encode", "named"),
    [
        (lambda: served.encode_sample(sampled(stop_reason="tool")), "sequences[0].stop_reason: must be one of"),
        (lambda: served.encode_sample(sampled(stop_reason=str(2**31))), "sequences[0].stop_reason: 2147483648"),
        (lambda: served.encode_sample(sampled(tokens=[2**31])), "sequences[0].tokens[0]: 2147483648"),
        (lambda: served.encode_sample(sampled(logprobs=["x"])), "sequences[0].logprobs: cannot be read"),
        (lambda: served.encode_sample(sampled(extra_fields={"new": 1})), "sequences[0].extra_fields['new']"),
        (
            lambda: served.encode_sample(sampled(sequence_id="s")),
            "sequences[0].sequence_id: the protobuf message does not",
        ),
        (
            lambda: served.encode_output(lost([], [1.0])),
            "loss_fn_outputs['x']: protobuf cannot hold a tensor without dimensions",
        ),
        (lambda: served.encode_output(lost([3, 0], [])), "loss_fn_outputs[0:]['x']: rows of [0]"),
    ],
)
def test_results_that_have_no_binary_form_are_refused_by_place(encode: Callable[[], Any], named: str) -> None:
    """The server's own models say what is wrong with them."""
    with pytest.raises((ValueError, OverflowError)) as caught:
        encode()
    assert named in str(caught.value)
