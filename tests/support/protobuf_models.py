"""Strategies for the models that have a protobuf form, and the values that a round trip must keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinkerwire_generated import models as m

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(codec="utf-8"), max_size=8)


@st.composite
def tensors(draw: st.DrawFn, dtype: str | None = None, trailing: list[int] | None = None) -> m.TensorData:
    """Draw dense tensors of up to three dimensions, as lists or arrays, sometimes without a shape."""
    kind: Any = dtype or draw(st.sampled_from(["float32", "int64"]))
    if trailing is None:
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
    else:
        shape = [draw(st.integers(0, 3)) if all(trailing) else 0, *trailing]
    size = int(np.prod(shape))
    values: Any = draw(st.lists(FLOAT32 if kind == "float32" else INT64, min_size=size, max_size=size))
    if draw(st.booleans()):
        values = np.array(values, kind)
    is_flat = len(shape) == 1 and draw(st.booleans())
    return m.TensorData(data=values, dtype=kind, shape=None if is_flat else shape)


@st.composite
def sparse(draw: st.DrawFn) -> m.TensorData:
    """Draw sparse matrices."""
    matrix = np.array(draw(st.lists(st.lists(st.sampled_from([0, 0, 0, 7]), min_size=4, max_size=4), max_size=4)))
    matrix = matrix.reshape(-1, 4)
    starts = [0, *np.cumsum((matrix != 0).sum(1)).tolist()]
    return m.TensorData(
        data=matrix[matrix != 0].tolist(),
        dtype="int64",
        shape=list(matrix.shape),
        sparse_crow_indices=starts,
        sparse_col_indices=np.nonzero(matrix)[1].tolist(),
    )


CHUNKS = st.one_of(
    st.builds(m.EncodedTextChunk, tokens=st.lists(INT32, max_size=5)),
    st.builds(
        m.ImageChunk,
        data=st.binary(max_size=5),
        format=st.sampled_from(["png", "jpeg"]),
        expected_tokens=st.none() | INT32,
    ),
    st.builds(m.DmelChunk, dmel=st.binary(max_size=5)),
)
NONNEGATIVE_INT64 = st.integers(0, 2**63 - 1)
SPAN_FIELDS = {
    "sequence_id": st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    "offset": NONNEGATIVE_INT64,
    "length": NONNEGATIVE_INT64,
}
SPANS = st.lists(
    st.builds(m.PromptProvenanceSpan, **SPAN_FIELDS) | st.builds(m.SampledProvenanceSpan, **SPAN_FIELDS), max_size=3
)


@st.composite
def datums(draw: st.DrawFn) -> m.Datum:
    """Draw examples, sometimes with both lists of provenance spans; two empty lists equal no spans."""
    model_input = m.ModelInput(chunks=draw(st.lists(CHUNKS, max_size=3)))
    inputs = draw(st.dictionaries(NAMES, tensors() | sparse(), max_size=3))
    first, second = draw(st.tuples(SPANS, SPANS))
    spans: Any = {"model_input_spans": first, "loss_fn_input_spans": second} if first or second else {}
    return m.Datum(model_input=model_input, loss_fn_inputs=inputs, **spans)


INPUTS = st.builds(
    m.ForwardBackwardInput,
    data=st.lists(datums(), max_size=3),
    loss_fn=st.sampled_from(["cross_entropy", "ppo", "dro"]),
    loss_fn_config=st.none()
    | st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False) | NAMES, min_size=1, max_size=3),
)
SEQ_IDS = st.none() | st.integers(1, 2**31 - 1)
REQUESTS = st.builds(m.ForwardBackwardRequest, forward_backward_input=INPUTS, model_id=NAMES, seq_id=SEQ_IDS)
FORWARD_REQUESTS = st.builds(m.ForwardRequest, forward_input=INPUTS, model_id=NAMES, seq_id=SEQ_IDS)


@st.composite
def outputs(draw: st.DrawFn) -> m.ForwardBackwardOutput:
    """Draw outputs whose datums differ in fields, dtypes and shapes."""
    datum_outputs = []
    for _ in range(draw(st.integers(0, 3))):
        kinds = draw(
            st.dictionaries(
                NAMES, st.tuples(st.sampled_from(["float32", "int64"]), st.lists(st.integers(0, 3), max_size=2))
            )
        )
        datum_outputs += [
            {name: draw(tensors(dtype, trailing)) for name, (dtype, trailing) in kinds.items()}
            for _ in range(draw(st.integers(1, 3)))
        ]
    return m.ForwardBackwardOutput(
        loss_fn_output_type=draw(st.sampled_from(["ArrayRecord", "TorchLossReturn"])),
        loss_fn_outputs=datum_outputs,
        metrics=draw(st.dictionaries(NAMES, st.floats(allow_nan=False), max_size=3)),
    )


TOPK = st.lists(
    st.none() | st.lists(st.tuples(INT32, FLOAT32.filter(lambda x: x != -99999.0)), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@st.composite
def sequences(draw: st.DrawFn) -> m.SampledSequence:
    """Draw sampled sequences, including unknown stop reasons, sometimes with top-k tokens."""
    return m.SampledSequence(
        stop_reason=draw(st.sampled_from(["stop", "length", "2", "2147483647", "-3"])),
        tokens=draw(st.lists(INT32, max_size=5)),
        logprobs=draw(st.none() | st.lists(FLOAT32, min_size=1, max_size=5)),
        topk_logprobs=draw(st.none() | TOPK),
    )


@st.composite
def samples(draw: st.DrawFn, sequence: st.SearchStrategy[m.SampledSequence] | None = None) -> m.SampleResponse:
    """Draw sample responses with all fields that only protobuf has."""
    alternatives = st.builds(m.PromptAltTokens, tokens=tensors("int64"), logprobs=tensors("float32"))
    return m.SampleResponse(
        sequences=draw(st.lists(sequences() if sequence is None else sequence, max_size=3)),
        prompt_logprobs=draw(st.none() | st.lists(st.none() | FLOAT32, min_size=1, max_size=5)),
        topk_prompt_logprobs=draw(st.none() | TOPK),
        prompt_cache_hit_tokens=draw(INT32),
        target_prompt_logprobs=draw(st.none() | tensors("float32") | sparse()),
        prompt_alt_tokens=draw(st.none() | alternatives),
    )


def to_plain(value: Any) -> Any:
    """Return a model as plain values; lists equal arrays, and a missing shape equals one dimension."""
    if isinstance(value, m.TensorData):
        shape = [len(value.data)] if value.shape is None else value.shape
        rows = [to_plain(value.sparse_crow_indices), to_plain(value.sparse_col_indices)]
        return ("tensor", value.dtype, shape, to_plain(value.data), rows)
    if hasattr(value, "__attrs_attrs__"):
        return (
            type(value).__name__,
            {field.alias: to_plain(getattr(value, field.alias)) for field in value.__attrs_attrs__},
        )
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
