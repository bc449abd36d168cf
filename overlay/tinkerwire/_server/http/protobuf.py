"""The server's side of binary messages: requests from protobuf, and results to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tinkerwire_generated.models import (
    Datum,
    DmelChunk,
    EncodedTextChunk,
    ForwardBackwardInput,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    ImageChunk,
    ModelInput,
    PromptProvenanceSpan,
    ProvenanceSpan,
    SampledProvenanceSpan,
    SampledSequence,
    SampleResponse,
    TensorData,
)
from tinkerwire_generated.protobuf import message_class

from ..._wire.protobuf import STOP_REASONS
from ..._wire.protobuf_messages import check_model, parsed, refuse_absent, serialized
from ..._wire.protobuf_tensors import (
    INT32,
    float32_bytes,
    int32,
    int32_bytes,
    join,
    numbers,
    put_tensor,
    put_topk,
    tensor_of,
    trailing_shape,
)

_STOP_NUMBERS = {name: number for number, name in STOP_REASONS.items()}


def decode_request(data: bytes, version: str | None = None) -> ForwardBackwardRequest | ForwardRequest:
    """The request of a ForwardBackwardRequest message; a ForwardRequest when it is forward_only.

    Args:
        data: what was sent.
        version: the wire version that is served; None for the newest.

    Raises:
        DialectError: it holds what the version lacks.
        ValueError: it is not sound, or holds what no model can; with the place.
    """
    found = parsed("ForwardBackwardRequest", data)
    if version is not None:
        refuse_absent(found, version)
    given = _sound(
        "request",
        ForwardBackwardInput,
        data=[_datum(f"data[{position}]", each) for position, each in enumerate(found.data)],
        loss_fn=found.loss_fn,
        loss_fn_config=_config(found),
    )
    check_model(given, version)
    about: dict[str, Any] = {"model_id": found.model_id, "seq_id": found.seq_id or None}
    if found.forward_only:
        return ForwardRequest(forward_input=given, **about)
    return ForwardBackwardRequest(forward_backward_input=given, **about)


def encode_output(output: ForwardBackwardOutput, version: str | None = None) -> bytes:
    """The ForwardBackwardOutput message of a result.

    Args:
        output: what to send.
        version: the wire version that the client speaks; None for the newest.

    Raises:
        DialectError: the version lacks the message.
        ValueError, OverflowError: it holds what the message cannot; with the place.
    """
    _refuse_extra("ForwardBackwardOutput", output.extra_fields)
    filled = message_class("ForwardBackwardOutput")(
        loss_fn_output_type=output.loss_fn_output_type, metrics=output.metrics
    )
    start = 0
    for names, group in groupby(output.loss_fn_outputs, _kind_of):
        outputs = list(group)
        record = filled.loss_fn_outputs.add(type_tag=output.loss_fn_output_type, num_datums=len(outputs))
        for name, *_ in names:
            tensors = [each[name] for each in outputs]
            join(record.fields[name], f"loss_fn_outputs[{start}:][{name!r}]", tensors)
        start += len(outputs)
    return serialized(filled, version)


def encode_sample(response: SampleResponse, version: str | None = None) -> bytes:
    """The SampleResponse message of a result.

    Raises:
        DialectError: the version lacks the message, or something that the result holds.
        ValueError, OverflowError: it holds what the message cannot; with the place.
    """
    _refuse_extra("SampleResponse", response.extra_fields)
    filled = message_class("SampleResponse")()
    filled.prompt_cache_hit_tokens = int32("prompt_cache_hit_tokens", response.prompt_cache_hit_tokens)
    for position, sequence in enumerate(response.sequences):
        _put_sequence(filled.sequences.add(), f"sequences[{position}]", sequence)
    if response.prompt_logprobs is not None:
        filled.prompt_logprobs = float32_bytes("prompt_logprobs", response.prompt_logprobs)
    if response.topk_prompt_logprobs is not None:
        put_topk(filled.topk_prompt_logprobs, "topk_prompt_logprobs", response.topk_prompt_logprobs)
    if response.target_prompt_logprobs is not None:
        put_tensor(filled.target_prompt_logprobs, "target_prompt_logprobs", response.target_prompt_logprobs)
    alternatives = response.prompt_alt_tokens
    if alternatives is not None:
        _refuse_extra("prompt_alt_tokens", alternatives.extra_fields)
        put_tensor(filled.prompt_alt_tokens.tokens, "prompt_alt_tokens.tokens", alternatives.tokens)
        put_tensor(filled.prompt_alt_tokens.logprobs, "prompt_alt_tokens.logprobs", alternatives.logprobs)
    return serialized(filled, version)


def _datum(place: str, each: Any) -> Datum:
    chunks: list[Any] = [
        _chunk(f"{place}.model_input[{position}]", chunk) for position, chunk in enumerate(each.model_input)
    ]
    tensors = {
        name: tensor_of(f"{place}.loss_fn_inputs[{name!r}]", tensor)
        for name, tensor in sorted(each.loss_fn_inputs.items())
    }
    spans: dict[str, Any] = {}
    if each.model_input_spans or each.loss_fn_input_spans:
        # The message does not tell an empty list from none, and they come in pairs.
        for name in ("model_input_spans", "loss_fn_input_spans"):
            spans[name] = [_span(f"{place}.{name}[{i}]", span) for i, span in enumerate(getattr(each, name))]
    datum: Datum = _sound(place, Datum, model_input=ModelInput(chunks=chunks), loss_fn_inputs=tensors, **spans)
    return datum


def _span(place: str, each: Any) -> ProvenanceSpan:
    kind = each.WhichOneof("span")
    if kind is None:
        raise ValueError(f"{place}: is neither from a prompt nor from a sample")
    part = getattr(each, kind)
    make = SampledProvenanceSpan if kind == "sampled_tokens" else PromptProvenanceSpan
    span: ProvenanceSpan = _sound(place, make, sequence_id=part.sequence_id, offset=part.offset, length=part.length)
    return span


def _chunk(place: str, each: Any) -> EncodedTextChunk | ImageChunk | DmelChunk:
    kind = each.WhichOneof("chunk")
    if kind == "encoded_text":
        return EncodedTextChunk(tokens=numbers(f"{place}.tokens", each.encoded_text.tokens, INT32))
    if kind == "dmel":
        return DmelChunk(dmel=each.dmel.dmel)
    if kind is None:
        raise ValueError(f"{place}: is neither text nor an image nor a dmel")
    image = each.image
    if image.HasField("override_dimensions"):
        raise ValueError(f"{place}.override_dimensions: cannot be obeyed here; leave it out")
    expected = image.expected_tokens if image.HasField("expected_tokens") else None
    chunk: ImageChunk = _sound(place, ImageChunk, data=image.data, format=image.format, expected_tokens=expected)
    return chunk


def _config(found: Any) -> dict[str, float | str] | None:
    config: dict[str, float | str] = dict(sorted(found.loss_fn_config.items()))
    for name, value in sorted(found.loss_fn_config_v2.items()):
        kind = value.WhichOneof("value")
        if kind is None:
            raise ValueError(f"loss_fn_config_v2[{name!r}]: is neither a number nor a text")
        config[name] = getattr(value, kind)
    return config or None


def _sound(place: str, make: Any, **fields: Any) -> Any:
    try:
        return make(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _kind_of(output: Mapping[str, TensorData]) -> Sequence[tuple[str, str, tuple[int, ...]]]:
    """What the outputs of one record must have in common: names, dtypes, and shapes but for the first dimension."""
    return [
        (name, tensor.dtype, tuple(trailing_shape(f"loss_fn_outputs[{name!r}]", tensor)))
        for name, tensor in sorted(output.items())
    ]


def _put_sequence(filled: Any, place: str, sequence: SampledSequence) -> None:
    _refuse_extra(place, sequence.extra_fields)
    if sequence.sequence_id is not None:
        raise ValueError(f"{place}.sequence_id: has no place in a binary message; it goes with the promise")
    filled.stop_reason = _stop_number(f"{place}.stop_reason", sequence.stop_reason)
    filled.tokens = int32_bytes(f"{place}.tokens", sequence.tokens)
    if sequence.logprobs is not None:
        filled.logprobs = float32_bytes(f"{place}.logprobs", sequence.logprobs)
    if sequence.topk_logprobs is not None:
        put_topk(filled.topk_sampled_logprobs, f"{place}.topk_logprobs", sequence.topk_logprobs)


def _stop_number(place: str, reason: str) -> int:
    if reason not in _STOP_NUMBERS and not reason.removeprefix("-").isdecimal():
        raise ValueError(f"{place}: {reason!r} has no number; known are {', '.join(_STOP_NUMBERS)}")
    return _STOP_NUMBERS[reason] if reason in _STOP_NUMBERS else int32(place, int(reason))


def _refuse_extra(place: str, names: Iterable[str]) -> None:
    for name in names:
        raise ValueError(f"{place}.extra_fields[{name!r}]: has no place in a binary message")
