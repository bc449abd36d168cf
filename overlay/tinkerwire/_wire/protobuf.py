"""Requests to protobuf, and results from protobuf, with the same models as JSON.

Fields that the contract does not know are dropped. Numbers of samples stay arrays; the models convert them on access.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tinkerwire_generated.models import (
    DmelChunk,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    ImageChunk,
    PromptAltTokens,
    ProvenanceSpan,
    SampledProvenanceSpan,
    SampledSequence,
    SampleResponse,
    TensorData,
)
from tinkerwire_generated.protobuf import ENUM_VALUES, message_class

from .protobuf_messages import check_model, has_field, parsed, serialized
from .protobuf_tensors import FLOAT32, INT32, int32, int32_bytes, put_tensor, split, stored, tensor_of, topk_of

STOP_REASONS: Mapping[int, str] = {
    number: name.removeprefix("STOP_REASON_").lower() for name, number in ENUM_VALUES["StopReason"].items()
}


def encode_request(
    request: ForwardBackwardRequest | ForwardRequest, version: str | None = None, floor: str | None = None
) -> bytes:
    """Return the ForwardBackwardRequest message of a request; for a ForwardRequest, one that is forward_only.

    A ``seq_id`` of None is sent as 0, the default of the message.

    Args:
        request: what to send.
        version: the wire version of the server; None for the newest.
        floor: the oldest possible version, if only a range is known; ``version`` is then the newest.

    Raises:
        DialectError: the version lacks the message or a set field.
        OverflowError: a token id or seq_id beyond 32 bits, or a value beyond float32; with its place.
        ValueError, TypeError: a value without a protobuf form, such as an asset pointer; with its place.
    """
    batch = request.forward_input if isinstance(request, ForwardRequest) else request.forward_backward_input
    check_model(batch, version)
    filled = message_class("ForwardBackwardRequest")(
        model_id=request.model_id,
        seq_id=int32("seq_id", request.seq_id or 0),
        loss_fn=batch.loss_fn,
        forward_only=isinstance(request, ForwardRequest),
    )
    _put_config(filled, batch.loss_fn_config or {}, floor or version)
    for position, datum in enumerate(batch.data):
        place, part = f"data[{position}]", filled.data.add()
        for index, chunk in enumerate(datum.model_input.chunks):
            _put_chunk(part.model_input.add(), f"{place}.model_input.chunks[{index}]", chunk, version)
        for name, tensor in datum.loss_fn_inputs.items():
            put_tensor(part.loss_fn_inputs[name], f"{place}.loss_fn_inputs[{name!r}]", tensor)
        _put_spans(part.model_input_spans, datum.model_input_spans or ())
        _put_spans(part.loss_fn_input_spans, datum.loss_fn_input_spans or ())
    return serialized(filled, version)


def decode_output(data: bytes) -> ForwardBackwardOutput:
    """Return the result of a ForwardBackwardOutput message; raise ValueError with the position if it is malformed."""
    message = parsed("ForwardBackwardOutput", data)
    outputs = [
        output
        for position, record in enumerate(message.loss_fn_outputs)
        for output in _outputs(f"loss_fn_outputs[{position}]", record)
    ]
    kind = message.loss_fn_output_type
    return ForwardBackwardOutput(
        loss_fn_output_type=kind.rpartition(":")[2] if message.loss_fn_outputs else kind or "ArrayRecord",
        loss_fn_outputs=outputs,
        metrics=dict(message.metrics),
    )


def decode_sample(data: bytes) -> SampleResponse:
    """Return the result of a SampleResponse message; raise ValueError with the position if it is malformed."""
    message = parsed("SampleResponse", data)
    topk: Any = None
    target = alternatives = None
    if message.HasField("topk_prompt_logprobs"):
        topk = topk_of("topk_prompt_logprobs", message.topk_prompt_logprobs)
    if message.HasField("target_prompt_logprobs"):
        target = tensor_of("target_prompt_logprobs", message.target_prompt_logprobs)
    if message.HasField("prompt_alt_tokens"):
        alternatives = PromptAltTokens(
            tokens=tensor_of("prompt_alt_tokens.tokens", message.prompt_alt_tokens.tokens),
            logprobs=tensor_of("prompt_alt_tokens.logprobs", message.prompt_alt_tokens.logprobs),
        )
    return SampleResponse(
        sequences=[
            _sequence(f"sequences[{position}]", sequence) for position, sequence in enumerate(message.sequences)
        ],
        prompt_logprobs=_logprobs("prompt_logprobs", message.prompt_logprobs),
        topk_prompt_logprobs=topk,
        prompt_cache_hit_tokens=message.prompt_cache_hit_tokens,
        target_prompt_logprobs=target,
        prompt_alt_tokens=alternatives,
    )


def _put_config(filled: Any, config: Mapping[str, float | str], floor: str | None) -> None:
    """Put numbers into both maps, and texts into the second, which came later and alone accepts texts.

    A server that may lack the second map gets it only if the config has texts.
    """
    has_texts = has_field(floor, "ForwardBackwardRequest", "loss_fn_config_v2")
    has_texts = has_texts or any(isinstance(value, str) for value in config.values())
    for name, value in config.items():
        if isinstance(value, str):
            filled.loss_fn_config_v2[name].text = value
            continue
        if float(value) != value and not math.isnan(value):
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


def _put_spans(filled: Any, spans: Iterable[ProvenanceSpan]) -> None:
    for span in spans:
        message = filled.add()
        part = message.sampled_tokens if isinstance(span, SampledProvenanceSpan) else message.prompt_tokens
        part.sequence_id, part.offset, part.length = span.sequence_id, span.offset, span.length


def _outputs(place: str, record: Any) -> Iterator[dict[str, TensorData]]:
    """Return one map of tensors per datum of a record; without a count in the record, the fields give it."""
    columns = {
        name: list(split(f"{place}.fields[{name!r}]", batched)) for name, batched in sorted(record.fields.items())
    }
    count = record.num_datums or len(next(iter(columns.values()), ()))
    if count < 0:
        raise ValueError(f"{place}.num_datums: {count} is negative")
    for name, column in columns.items():
        if len(column) != count:
            raise ValueError(f"{place}.fields[{name!r}]: holds {len(column)} tensors for {count} datums")
    for position in range(count):
        yield {name: column[position] for name, column in columns.items()}


def _sequence(place: str, message: Any) -> SampledSequence:
    topk: Any = None
    if message.HasField("topk_sampled_logprobs"):
        topk = topk_of(f"{place}.topk_sampled_logprobs", message.topk_sampled_logprobs)
    tokens: Any = stored(f"{place}.tokens", message.tokens, INT32)
    return SampledSequence(
        stop_reason=STOP_REASONS.get(message.stop_reason, str(message.stop_reason)),
        tokens=tokens,
        logprobs=_logprobs(f"{place}.logprobs", message.logprobs),
        topk_logprobs=topk,
    )


def _logprobs(place: str, data: bytes) -> Any:
    """Return the array of log probabilities, or None without log probabilities."""
    return stored(place, data, FLOAT32) if data else None
