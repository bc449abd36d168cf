"""The functions of ``dataclasses`` on the models whose official types are dataclasses."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import attrs
import pytest

from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_generated import models as m

DATUM = m.Datum(m.ModelInput.from_ints([1]), {"weights": m.TensorData([0.5], "float32", [1])})


def test_positional_arguments_equal_the_official_ones() -> None:
    """Each constructor accepts the positional arguments of the official one."""
    assert m.TensorData([1], "int64", [1]) == m.TensorData(data=[1], dtype="int64", shape=[1])
    batch = m.ForwardBackwardInput([DATUM], "ppo", {"clip": 0.2})
    assert batch == m.ForwardBackwardInput(data=[DATUM], loss_fn="ppo", loss_fn_config={"clip": 0.2})
    assert m.ForwardBackwardRequest(batch, "run", 3).seq_id == 3
    assert m.ForwardRequest(batch, "run").forward_input is batch
    assert m.ForwardBackwardOutput("kind", [], {"a": 1.0}).metrics == {"a": 1.0}
    span_class: Any = m.PromptProvenanceSpan
    with pytest.raises(TypeError):
        span_class("a", 0, 1)


def test_dataclass_functions_work_on_models() -> None:
    """Models behave like dataclasses; nested values that are not dataclasses stay unchanged."""
    datum: Any = DATUM
    names = ["model_input", "loss_fn_inputs", "model_input_spans", "loss_fn_input_spans"]
    assert [field.name for field in dataclasses.fields(datum)] == names
    assert dataclasses.is_dataclass(m.Datum) and not dataclasses.is_dataclass(m.ModelInput)
    changed = dataclasses.replace(datum, loss_fn_inputs={})
    assert changed.model_input is DATUM.model_input and changed.loss_fn_inputs == {}
    fields = dataclasses.asdict(datum)
    assert fields["model_input"] == DATUM.model_input and isinstance(fields["model_input"], m.ModelInput)
    assert fields["loss_fn_inputs"]["weights"]["data"] == [0.5]
    sequence: Any = m.SampledSequence(stop_reason="stop", tokens=[1], extra_fields={"k": 1})  # type: ignore[call-arg]
    assert dataclasses.replace(sequence, stop_reason="length") == attrs.evolve(sequence, stop_reason="length")
    assert dataclasses.replace(sequence, _tokens_list=[2]).tokens == [2]
    by_name = {field.name: field for field in dataclasses.fields(sequence)}
    assert by_name["logprobs"].default is None and by_name["extra_fields"].default_factory is dict
    assert by_name["tokens"].default is dataclasses.MISSING


def test_only_models_are_dataclasses() -> None:
    """An inspection of all classes of a module raises no error."""
    assert not dataclasses.is_dataclass(DataclassMethods)


def test_provenance_spans_are_dataclasses() -> None:
    """Spans must cover each token once; other spans are rejected."""
    sampled = m.SampledProvenanceSpan(sequence_id="s", length=1)
    prompt = m.PromptProvenanceSpan(sequence_id="s", length=1)
    datum = m.Datum(m.ModelInput.from_ints([1, 2]), {"target_tokens": [2, 3]})
    annotated = datum.with_provenance(model_input=[prompt, sampled], loss_fn_inputs=[sampled, sampled])
    assert annotated.model_input_spans == [prompt, sampled] and annotated.model_input == datum.model_input
    assert pickle.loads(pickle.dumps(annotated)) == annotated
    assert prompt != sampled
    with pytest.raises(ValueError, match="model_input: the spans must cover 2 tokens, got 1"):
        datum.with_provenance([prompt], [sampled, sampled])
    with pytest.raises(ValueError, match="loss_fn_inputs: the spans must cover 2 tokens, got 3"):
        datum.with_provenance([prompt, sampled], [sampled] * 3)
    with pytest.raises(TypeError, match="model_input_spans"):
        datum.with_provenance([1, sampled], [sampled] * 2)  # type: ignore[list-item]


def test_spans_keep_their_class() -> None:
    """Objects are taken as they are; dicts, which both classes dump alike, are not guessed at."""
    run = {"sequence_id": "s", "length": 2}
    spans: Any = {
        "model_input_spans": [m.SampledProvenanceSpan(**run)],
        "loss_fn_input_spans": [m.PromptProvenanceSpan(**run)],
    }
    assert spans["model_input_spans"] != spans["loss_fn_input_spans"]
    datum = m.Datum(m.ModelInput.from_ints([1, 2]), {"target_tokens": [2, 3]}, **spans)
    assert m.Datum.model_validate({**DATUM.model_dump(), **spans}).model_input_spans == spans["model_input_spans"]
    assert dataclasses.asdict(datum)["model_input_spans"] == [{**run, "offset": 0}]
    with pytest.raises(ValueError, match=r"fit PromptProvenanceSpan and SampledProvenanceSpan equally"):
        m.Datum.model_validate(datum.model_dump())


def test_alternatives_take_positional_arguments() -> None:
    """The tokens come before the logprobs."""
    tokens, logprobs = m.TensorData([1], "int64", [1, 1]), m.TensorData([-0.5], "float32", [1, 1])
    assert m.PromptAltTokens(tokens, logprobs) == m.PromptAltTokens(tokens=tokens, logprobs=logprobs)
