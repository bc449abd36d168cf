"""Provenance of the tokens of examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinkerwire_generated import models as m


def make_prompt_span(length: int) -> m.PromptProvenanceSpan:
    return m.PromptProvenanceSpan(sequence_id="s", length=length)


def make_sampled_span(length: int, offset: int = 0) -> m.SampledProvenanceSpan:
    return m.SampledProvenanceSpan(sequence_id="s", offset=offset, length=length)


def make_datum(**inputs: Any) -> m.Datum:
    return m.Datum(model_input=m.ModelInput.from_ints([1, 2, 3]), loss_fn_inputs=inputs)


def test_with_provenance_sets_both_lists() -> None:
    """The datum itself stays as it was."""
    unannotated = make_datum(target_tokens=[2, 3, 4])
    annotated = unannotated.with_provenance(
        model_input=[make_prompt_span(2), make_sampled_span(1)],
        loss_fn_inputs=[make_prompt_span(1), make_sampled_span(2)],
    )
    assert annotated.model_input_spans == [make_prompt_span(2), make_sampled_span(1)]
    assert annotated.loss_fn_input_spans == [make_prompt_span(1), make_sampled_span(2)]
    assert unannotated.model_input_spans is None
    assert annotated.loss_fn_inputs == unannotated.loss_fn_inputs
    assert annotated != unannotated


@pytest.mark.parametrize(
    ("model_input", "loss_fn_inputs", "pattern"),
    [
        ([make_prompt_span(2)], [make_sampled_span(3)], "model_input: the spans must cover 3 tokens, got 2"),
        (
            [make_prompt_span(3)],
            [make_sampled_span(2), make_sampled_span(2, 2)],
            "loss_fn_inputs: the spans must cover 3 tokens, got 4",
        ),
        ([], [make_sampled_span(3)], "model_input: the spans must cover .* tokens, got 0"),
    ],
)
def test_spans_must_cover_all_tokens(model_input: Any, loss_fn_inputs: Any, pattern: str) -> None:
    """A miscount is named at once."""
    with pytest.raises(ValueError, match=pattern):
        make_datum(target_tokens=[2, 3, 4]).with_provenance(model_input, loss_fn_inputs)


def test_targets_of_more_dimensions_are_not_counted() -> None:
    """A matrix of targets, and a datum without any, have no length to hold the runs against."""
    for example in (make_datum(target_tokens=np.zeros((3, 2), np.int64)), make_datum(weights=[1.0])):
        assert example.with_provenance([make_prompt_span(3)], [make_sampled_span(7)]).loss_fn_input_spans == [
            make_sampled_span(7)
        ]


def test_one_list_without_the_other_is_rejected() -> None:
    """They come in pairs."""
    with pytest.raises(ValueError, match="set both"):
        m.Datum(model_input=m.ModelInput.empty(), loss_fn_inputs={}, model_input_spans=[])


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"sequence_id": "", "length": 1}, "sequence_id"),
        ({"sequence_id": "s", "length": -1}, "length: must be at least 0, got -1"),
        ({"sequence_id": "s", "length": 1, "offset": -1}, "offset: must be at least 0, got -1"),
    ],
)
@pytest.mark.parametrize("kind", [m.PromptProvenanceSpan, m.SampledProvenanceSpan])
def test_invalid_spans_are_rejected(kind: Any, fields: Any, pattern: str) -> None:
    """A run belongs to a sample, and neither its place nor its length is negative."""
    with pytest.raises(ValueError, match=pattern):
        kind(**fields)


def test_other_objects_are_rejected_as_spans() -> None:
    """Something else in the lists is named by its place."""
    with pytest.raises(TypeError, match=r"Datum\.model_input_spans\[0\]"):
        m.Datum(
            model_input=m.ModelInput.empty(),
            loss_fn_inputs={},
            model_input_spans=[{"length": 1}],  # type: ignore[list-item]
            loss_fn_input_spans=[],
        )
