"""The server's side of protobuf: decodes requests and encodes results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

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

T = TypeVar("T")
_STOP_NUMBERS = {name: number for number, name in STOP_REASONS.items()}


def decode_request(data: bytes, version: str | None = None) -> ForwardBackwardRequest | ForwardRequest:
    """Decode a ForwardBackwardRequest message; return a ForwardRequest if it sets forward_only.

    Args:
        data: the message.
        version: the wire version that the server speaks; None for the newest.

    Raises:
        DialectError: the version does not have a field of the message.
        ValueError: the message is invalid, or no model can represent it; the error has the path.
    """
    parsed_message = parsed("ForwardBackwardRequest", data)
    if version is not None:
        refuse_absent(parsed_message, version)
    loss_input = _construct(
        "request",
        ForwardBackwardInput,
        data=[_decode_datum(f"data[{position}]", datum) for position, datum in enumerate(parsed_message.data)],
        loss_fn=parsed_message.loss_fn,
        loss_fn_config=_decode_config(parsed_message),
    )
    check_model(loss_input, version)
    model_id, seq_id = parsed_message.model_id, parsed_message.seq_id or None
    if parsed_message.forward_only:
        return ForwardRequest(forward_input=loss_input, model_id=model_id, seq_id=seq_id)
    return ForwardBackwardRequest(forward_backward_input=loss_input, model_id=model_id, seq_id=seq_id)


def encode_output(output: ForwardBackwardOutput, version: str | None = None) -> bytes:
    """Encode a result as a ForwardBackwardOutput message.

    Args:
        output: the result.
        version: the wire version of the client; None for the newest.

    Raises:
        DialectError: the version does not have the message.
        ValueError, OverflowError: the message cannot represent a value; the error has the path.
    """
    _reject_extra("ForwardBackwardOutput", output.extra_fields)
    message = message_class("ForwardBackwardOutput")(
        loss_fn_output_type=output.loss_fn_output_type, metrics=output.metrics
    )
    start = 0
    for names, group in groupby(output.loss_fn_outputs, _record_key):
        outputs = list(group)
        record = message.loss_fn_outputs.add(type_tag=output.loss_fn_output_type, num_datums=len(outputs))
        for name, *_ in names:
            tensors = [output[name] for output in outputs]
            join(record.fields[name], f"loss_fn_outputs[{start}:][{name!r}]", tensors)
        start += len(outputs)
    return serialized(message, version)


def encode_sample(response: SampleResponse, version: str | None = None) -> bytes:
    """Encode a result as a SampleResponse message.

    Args:
        response: the result.
        version: the wire version of the client; None for the newest.

    Raises:
        DialectError: the version does not have the message or a field of the result.
        ValueError, OverflowError: the message cannot represent a value; the error has the path.
    """
    _reject_extra("SampleResponse", response.extra_fields)
    message = message_class("SampleResponse")()
    message.prompt_cache_hit_tokens = int32("prompt_cache_hit_tokens", response.prompt_cache_hit_tokens)
    for position, sequence in enumerate(response.sequences):
        _put_sequence(message.sequences.add(), f"sequences[{position}]", sequence)
    if response.prompt_logprobs is not None:
        message.prompt_logprobs = float32_bytes("prompt_logprobs", response.prompt_logprobs)
    if response.topk_prompt_logprobs is not None:
        put_topk(message.topk_prompt_logprobs, "topk_prompt_logprobs", response.topk_prompt_logprobs)
    if response.target_prompt_logprobs is not None:
        put_tensor(message.target_prompt_logprobs, "target_prompt_logprobs", response.target_prompt_logprobs)
    alternatives = response.prompt_alt_tokens
    if alternatives is not None:
        _reject_extra("prompt_alt_tokens", alternatives.extra_fields)
        put_tensor(message.prompt_alt_tokens.tokens, "prompt_alt_tokens.tokens", alternatives.tokens)
        put_tensor(message.prompt_alt_tokens.logprobs, "prompt_alt_tokens.logprobs", alternatives.logprobs)
    return serialized(message, version)


def _decode_datum(place: str, datum_message: Any) -> Datum:
    chunks: list[Any] = [
        _decode_chunk(f"{place}.model_input[{position}]", chunk)
        for position, chunk in enumerate(datum_message.model_input)
    ]
    tensors = {
        name: tensor_of(f"{place}.loss_fn_inputs[{name!r}]", tensor)
        for name, tensor in sorted(datum_message.loss_fn_inputs.items())
    }
    spans: dict[str, Any] = {}
    if datum_message.model_input_spans or datum_message.loss_fn_input_spans:
        # The message cannot distinguish an empty list from an absent one, and both lists come together.
        for name in ("model_input_spans", "loss_fn_input_spans"):
            messages = getattr(datum_message, name)
            spans[name] = [_decode_span(f"{place}.{name}[{i}]", span) for i, span in enumerate(messages)]
    return _construct(place, Datum, model_input=ModelInput(chunks=chunks), loss_fn_inputs=tensors, **spans)


def _decode_span(place: str, span_message: Any) -> ProvenanceSpan:
    kind = span_message.WhichOneof("span")
    if kind is None:
        raise ValueError(f"{place}: must refer to a prompt or a sample")
    part = getattr(span_message, kind)
    is_sampled = kind == "sampled_tokens"
    make: Callable[..., ProvenanceSpan] = SampledProvenanceSpan if is_sampled else PromptProvenanceSpan
    return _construct(place, make, sequence_id=part.sequence_id, offset=part.offset, length=part.length)


def _decode_chunk(place: str, chunk_message: Any) -> EncodedTextChunk | ImageChunk | DmelChunk:
    kind = chunk_message.WhichOneof("chunk")
    if kind == "encoded_text":
        return EncodedTextChunk(tokens=numbers(f"{place}.tokens", chunk_message.encoded_text.tokens, INT32))
    if kind == "dmel":
        return DmelChunk(dmel=chunk_message.dmel.dmel)
    if kind is None:
        raise ValueError(f"{place}: must be text, an image or a dmel")
    image = chunk_message.image
    if image.HasField("override_dimensions"):
        raise ValueError(f"{place}.override_dimensions: not supported by this server; omit it")
    expected = image.expected_tokens if image.HasField("expected_tokens") else None
    return _construct(place, ImageChunk, data=image.data, format=image.format, expected_tokens=expected)


def _decode_config(parsed_message: Any) -> dict[str, float | str] | None:
    config: dict[str, float | str] = dict(sorted(parsed_message.loss_fn_config.items()))
    for name, value in sorted(parsed_message.loss_fn_config_v2.items()):
        kind = value.WhichOneof("value")
        if kind is None:
            raise ValueError(f"loss_fn_config_v2[{name!r}]: must be a number or a text")
        config[name] = getattr(value, kind)
    return config or None


def _construct(place: str, make: Callable[..., T], **fields: Any) -> T:
    try:
        return make(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _record_key(output: Mapping[str, TensorData]) -> Sequence[tuple[str, str, tuple[int, ...]]]:
    """Return the properties that outputs of a record share: names, dtypes and shapes without the first dimension."""
    return [
        (name, tensor.dtype, tuple(trailing_shape(f"loss_fn_outputs[{name!r}]", tensor)))
        for name, tensor in sorted(output.items())
    ]


def _put_sequence(message: Any, place: str, sequence: SampledSequence) -> None:
    _reject_extra(place, sequence.extra_fields)
    if sequence.sequence_id is not None:
        raise ValueError(f"{place}.sequence_id: the protobuf message does not have this field; the future has it")
    message.stop_reason = _stop_number(f"{place}.stop_reason", sequence.stop_reason)
    message.tokens = int32_bytes(f"{place}.tokens", sequence.tokens)
    if sequence.logprobs is not None:
        message.logprobs = float32_bytes(f"{place}.logprobs", sequence.logprobs)
    if sequence.topk_logprobs is not None:
        put_topk(message.topk_sampled_logprobs, f"{place}.topk_logprobs", sequence.topk_logprobs)


def _stop_number(place: str, reason: str) -> int:
    if reason not in _STOP_NUMBERS and not reason.removeprefix("-").isdecimal():
        raise ValueError(f"{place}: must be one of {', '.join(_STOP_NUMBERS)}, got {reason!r}")
    return _STOP_NUMBERS[reason] if reason in _STOP_NUMBERS else int32(place, int(reason))


def _reject_extra(place: str, names: Iterable[str]) -> None:
    for name in names:
        raise ValueError(f"{place}.extra_fields[{name!r}]: the protobuf message does not have this field")
