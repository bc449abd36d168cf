"""Fields whose form in protobuf differs from their form in the models.

Fields without a row here are copied by their names, see :mod:`.protobuf_fields`. Numbers of samples stay arrays; the
models convert them on access.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any

from tinkerwire_base.unset import UNSET
from tinkerwire_generated import models

from . import protobuf_tensors as tensors
from .protobuf_fields import Form, FormTables, MessageCodec
from .protobuf_messages import check_model, has_field

REQUEST = "ForwardBackwardRequest"
"""The message of forward and forward_backward; it holds the fields of the request and those of its input."""


def _read_logprobs(place: str, data: bytes) -> Any:
    return tensors.raw_array(place, data, tensors.FLOAT32) if data else UNSET


def _write_input(codec: MessageCodec, message: Any, prefix: str, value: models.ForwardBackwardInput) -> None:
    check_model(value, codec.newest)
    codec.write(REQUEST, message, value)


def _read_input(codec: MessageCodec, _: str, message: Any) -> Any:
    return codec.read(REQUEST, message, models.ForwardBackwardInput)


def _write_config(codec: MessageCodec, message: Any, prefix: str, config: Mapping[str, float | str]) -> None:
    """Put numbers into both maps, and texts into the second, which came later and alone accepts texts.

    A server that may lack the second map gets it only if the config has texts.
    """
    has_texts = has_field(codec.oldest, REQUEST, "loss_fn_config_v2")
    has_texts = has_texts or any(isinstance(value, str) for value in config.values())
    for name, value in config.items():
        if isinstance(value, str):
            message.loss_fn_config_v2[name].text = value
            continue
        if float(value) != value and not math.isnan(value):
            raise ValueError(f"{prefix}loss_fn_config[{name!r}]: float64 cannot hold {value} exactly; pass a float")
        message.loss_fn_config[name] = float(value)
        if has_texts:
            message.loss_fn_config_v2[name].number = float(value)


def _read_config(_: MessageCodec, prefix: str, message: Any) -> Any:
    config: dict[str, float | str] = dict(sorted(message.loss_fn_config.items()))
    for name, value in sorted(message.loss_fn_config_v2.items()):
        kind = value.WhichOneof("value")
        if kind is None:
            raise ValueError(f"{prefix}loss_fn_config_v2[{name!r}]: must be a number or a text")
        config[name] = getattr(value, kind)
    return config or UNSET


def _write_chunks(codec: MessageCodec, message: Any, prefix: str, value: models.ModelInput) -> None:
    form = codec.form_of("Chunk")
    for position, chunk in enumerate(value.chunks):
        form.write(message.model_input.add(), f"{prefix}model_input.chunks[{position}]", chunk)


def _read_chunks(codec: MessageCodec, prefix: str, message: Any) -> models.ModelInput:
    form = codec.form_of("Chunk")
    chunks = [form.read(f"{prefix}model_input[{i}]", chunk) for i, chunk in enumerate(message.model_input)]
    return models.ModelInput(chunks=chunks)


def _spans_reader(field: str) -> Callable[[MessageCodec, str, Any], Any]:
    """Return the reader of one of two lists, which come together: the message does not record that a list is set."""

    def read(codec: MessageCodec, prefix: str, message: Any) -> Any:
        if not message.model_input_spans and not message.loss_fn_input_spans:
            return UNSET
        read_span = codec.form_of("ProvenanceSpan").read
        return [read_span(f"{prefix}{field}[{i}]", span) for i, span in enumerate(getattr(message, field))]

    return read


def _write_outputs(
    _: MessageCodec, message: Any, prefix: str, outputs: Sequence[Mapping[str, models.TensorData]]
) -> None:
    start = 0
    for names, group in groupby(outputs, _record_key):
        record_outputs = list(group)
        # The model has the type before the outputs, so the message has the type already.
        record = message.loss_fn_outputs.add(type_tag=message.loss_fn_output_type, num_datums=len(record_outputs))
        for name, *_dtypes in names:
            tensors.join(
                record.fields[name],
                f"{prefix}loss_fn_outputs[{start}:][{name!r}]",
                [output[name] for output in record_outputs],
            )
        start += len(record_outputs)


def _record_key(output: Mapping[str, models.TensorData]) -> Sequence[tuple[str, str, tuple[int, ...]]]:
    """Return the properties that outputs of a record share: names, dtypes and shapes without the first dimension."""
    return [
        (name, tensor.dtype, tuple(tensors.trailing_shape(f"loss_fn_outputs[{name!r}]", tensor)))
        for name, tensor in sorted(output.items())
    ]


def _read_outputs(_: MessageCodec, prefix: str, message: Any) -> list[dict[str, models.TensorData]]:
    return [
        output
        for position, record in enumerate(message.loss_fn_outputs)
        for output in _split_record(f"{prefix}loss_fn_outputs[{position}]", record)
    ]


def _split_record(place: str, record: Any) -> Iterator[dict[str, models.TensorData]]:
    """Return one map of tensors per datum of a record; without a count in the record, the fields give it."""
    columns = {
        name: list(tensors.split(f"{place}.fields[{name!r}]", field)) for name, field in sorted(record.fields.items())
    }
    count = record.num_datums or len(next(iter(columns.values()), ()))
    if count < 0:
        raise ValueError(f"{place}.num_datums: must be at least 0, got {count}")
    for name, column in columns.items():
        if len(column) != count:
            raise ValueError(f"{place}.fields[{name!r}]: expected {count} tensors, one per datum, got {len(column)}")
    for position in range(count):
        yield {name: column[position] for name, column in columns.items()}


def _read_output_type(_: MessageCodec, prefix: str, message: Any) -> str:
    kind: str = message.loss_fn_output_type
    return kind.rpartition(":")[2] if message.loss_fn_outputs else kind or "ArrayRecord"


_INPUT = Form(_write_input, _read_input)
TABLES = FormTables(
    names={"SampledSequence": {"topk_logprobs": "topk_sampled_logprobs"}},
    fields={
        REQUEST: {
            "forward_backward_input": _INPUT,
            "forward_input": _INPUT,
            "loss_fn_config": Form(_write_config, _read_config),
        },
        "Datum": {
            "model_input": Form(_write_chunks, _read_chunks),
            "model_input_spans": Form(None, _spans_reader("model_input_spans")),
            "loss_fn_input_spans": Form(None, _spans_reader("loss_fn_input_spans")),
        },
        "ForwardBackwardOutput": {
            "loss_fn_output_type": Form(None, _read_output_type),
            "loss_fn_outputs": Form(_write_outputs, _read_outputs),
        },
    },
    values={
        "EncodedTextChunk": {"tokens": Form(tensors.int32_bytes, partial(tensors.numbers, dtype=tensors.INT32))},
        "SampledSequence": {
            "tokens": Form(tensors.int32_bytes, partial(tensors.raw_array, dtype=tensors.INT32)),
            "logprobs": Form(tensors.float32_bytes, _read_logprobs),
        },
        "SampleResponse": {"prompt_logprobs": Form(tensors.float32_bytes, _read_logprobs)},
    },
    messages={
        "Tensor": Form(tensors.put_tensor, tensors.tensor_of),
        "TopkLogprobs": Form(tensors.put_topk, tensors.topk_of),
    },
)


@cache
def message_codec(oldest: str | None = None, newest: str | None = None) -> MessageCodec:
    """Return the codec of the messages for a range of wire versions; None for the newest of the contract."""
    return MessageCodec(TABLES, oldest, newest)
