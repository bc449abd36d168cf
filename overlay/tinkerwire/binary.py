"""Requests to protobuf, and results from it, by the same models as JSON.

What only binary messages have stands in ``extra_fields`` of their results: ``topk_logprobs`` of a sampled sequence
(as topk_prompt_logprobs), and of a sample ``target_prompt_logprobs`` (TensorData) and ``prompt_alt_tokens`` (a dict
of the TensorData tokens and logprobs). Fields that the contract does not know are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from tinkerwire_generated.messages import message
from tinkerwire_generated.models import (
    Datum,
    DmelChunk,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    ImageChunk,
    SampledSequence,
    SampleResponse,
    TensorData,
)

from .binary_messages import check_model, has_field, parsed, serialized
from .binary_tensors import FLOAT32, INT32, int32, int32_bytes, numbers, put_tensor, split, tensor_of, topk_of

T = TypeVar("T")

MEDIA_TYPE = "application/x-protobuf"
STOP_REASONS: Mapping[int, str] = {0: "stop", 1: "length"}


def encode_request(request: ForwardBackwardRequest | ForwardRequest, version: str | None = None) -> bytes:
    """The ForwardBackwardRequest message of a request; a ForwardRequest is one that is forward_only.

    A ``seq_id`` of None is sent as 0, which is how the message leaves it out.

    Args:
        request: what to send.
        version: the wire version that the server speaks; None for the newest.

    Raises:
        DialectError: the version lacks the message, or something that the request holds.
        OverflowError: a token id or seq_id beyond 32 bits, or a value beyond float32; with its place.
        ValueError, TypeError: something that has no binary form, such as an asset pointer; with its place.
    """
    given = request.forward_input if isinstance(request, ForwardRequest) else request.forward_backward_input
    check_model(given, version)
    filled = message("ForwardBackwardRequest")(
        model_id=request.model_id,
        seq_id=int32("seq_id", request.seq_id or 0),
        loss_fn=given.loss_fn,
        forward_only=isinstance(request, ForwardRequest),
    )
    _put_config(filled, given.loss_fn_config or {}, version)
    for position, datum in enumerate(given.data):
        place, part = f"data[{position}]", filled.data.add()
        for index, chunk in enumerate(datum.model_input.chunks):
            _put_chunk(part.model_input.add(), f"{place}.model_input.chunks[{index}]", chunk, version)
        for name, tensor in datum.loss_fn_inputs.items():
            put_tensor(part.loss_fn_inputs[name], f"{place}.loss_fn_inputs[{name!r}]", tensor)
        _put_spans(part, place, datum)
    return serialized(filled, version)


def decode_output(data: bytes) -> ForwardBackwardOutput:
    """The result of a ForwardBackwardOutput message. ValueError, naming the place, when it is not sound."""
    found = parsed("ForwardBackwardOutput", data)
    outputs = [
        output
        for position, record in enumerate(found.loss_fn_outputs)
        for output in _outputs(f"loss_fn_outputs[{position}]", record)
    ]
    kind = found.loss_fn_output_type
    return ForwardBackwardOutput(
        loss_fn_output_type=kind.rpartition(":")[2] if found.loss_fn_outputs else kind or "ArrayRecord",
        loss_fn_outputs=outputs,
        metrics=dict(found.metrics),
    )


def decode_sample(data: bytes) -> SampleResponse:
    """The result of a SampleResponse message. ValueError, naming the place, when it is not sound."""
    found = parsed("SampleResponse", data)
    extra: dict[str, Any] = {}
    topk = None
    if found.HasField("topk_prompt_logprobs"):
        topk = topk_of("topk_prompt_logprobs", found.topk_prompt_logprobs)
    if found.HasField("target_prompt_logprobs"):
        extra["target_prompt_logprobs"] = tensor_of("target_prompt_logprobs", found.target_prompt_logprobs)
    if found.HasField("prompt_alt_tokens"):
        extra["prompt_alt_tokens"] = {
            name: tensor_of(f"prompt_alt_tokens.{name}", getattr(found.prompt_alt_tokens, name))
            for name in ("tokens", "logprobs")
        }
    return _open(
        SampleResponse,
        sequences=[_sequence(f"sequences[{position}]", each) for position, each in enumerate(found.sequences)],
        prompt_logprobs=_optional_numbers(numbers("prompt_logprobs", found.prompt_logprobs, FLOAT32)),
        topk_prompt_logprobs=topk,
        prompt_cache_hit_tokens=found.prompt_cache_hit_tokens,
        extra_fields=extra,
    )


def _put_config(filled: Any, config: Mapping[str, float | str], version: str | None) -> None:
    """Numbers go into both maps, and texts, which only the second takes, into that; it came later than the first."""
    has_texts = has_field(version, "ForwardBackwardRequest", "loss_fn_config_v2")
    for name, value in config.items():
        if isinstance(value, str):
            filled.loss_fn_config_v2[name].text = value
            continue
        if float(value) != value:
            raise ValueError(f"loss_fn_config[{name!r}]: {value} cannot be sent exactly, it is beyond 53 bits")
        filled.loss_fn_config[name] = float(value)
        if has_texts:
            filled.loss_fn_config_v2[name].number = float(value)


def _put_chunk(filled: Any, place: str, chunk: Any, version: str | None) -> None:
    if isinstance(chunk, EncodedTextChunk):
        filled.encoded_text.tokens = int32_bytes(f"{place}.tokens", chunk.tokens)
    elif isinstance(chunk, ImageChunk):
        check_model(chunk, version)
        filled.image.data, filled.image.format = chunk.data, chunk.format
        if chunk.expected_tokens is not None:
            filled.image.expected_tokens = int32(f"{place}.expected_tokens", chunk.expected_tokens)
    elif isinstance(chunk, DmelChunk):
        filled.dmel.dmel = chunk.dmel
    else:
        raise ValueError(
            f"{place}: {type(chunk).__name__} has no binary form; load the image and send it as an ImageChunk"
        )


def _put_spans(filled: Any, place: str, datum: Datum) -> None:
    if (datum.model_input_spans is None) != (datum.loss_fn_input_spans is None):
        raise ValueError(f"{place}: has one of model_input_spans and loss_fn_input_spans; with_provenance gives both")
    for name in ("model_input_spans", "loss_fn_input_spans"):
        for span in getattr(datum, name) or ():
            part = getattr(getattr(filled, name).add(), span.type)
            part.sequence_id, part.offset, part.length = span.sequence_id, span.offset, span.length


def _outputs(place: str, record: Any) -> Iterator[dict[str, TensorData]]:
    """One map of tensors per datum of a record; the fields themselves tell how many where the record does not."""
    columns = {name: list(split(f"{place}.fields[{name!r}]", each)) for name, each in sorted(record.fields.items())}
    count = record.num_datums or len(next(iter(columns.values()), ()))
    if count < 0:
        raise ValueError(f"{place}.num_datums: {count} is negative")
    for name, column in columns.items():
        if len(column) != count:
            raise ValueError(f"{place}.fields[{name!r}]: holds {len(column)} tensors for {count} datums")
    for position in range(count):
        yield {name: column[position] for name, column in columns.items()}


def _sequence(place: str, each: Any) -> SampledSequence:
    extra = {}
    if each.HasField("topk_sampled_logprobs"):
        extra["topk_logprobs"] = topk_of(f"{place}.topk_sampled_logprobs", each.topk_sampled_logprobs)
    return _open(
        SampledSequence,
        stop_reason=STOP_REASONS.get(each.stop_reason, str(each.stop_reason)),
        tokens=numbers(f"{place}.tokens", each.tokens, INT32).tolist(),
        logprobs=numbers(f"{place}.logprobs", each.logprobs, FLOAT32).tolist() or None,
        extra_fields=extra,
    )


def _open(kind: type[T], **fields: Any) -> T:
    """A model with ``extra_fields``, of which type checkers know nothing."""
    make: Any = kind
    found: T = make(**fields)
    return found


def _optional_numbers(values: Any) -> list[float | None] | None:
    """A list with None for NaN; no values at all are None."""
    found: list[float | None] = values.tolist()
    for position in np.flatnonzero(np.isnan(values)):
        found[position] = None
    return found or None
