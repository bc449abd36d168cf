"""Protobuf-only fields: models hold them, JSON of no version carries them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_base.errors import DialectError
from tinkerwire_generated import models as m
from tinkerwire_generated.availability import FIELD_VERSIONS, NEWEST

RUN = {"sequence_id": "s", "length": 2}
DATUM = m.Datum(model_input=m.ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3]})
LOGPROBS = m.TensorData(data=[-0.5], dtype="float32")
CONVERTERS = {v: Converter(VersionRules(min_version=v, fields=FIELD_VERSIONS)) for v in ("0.16.1", NEWEST)}
CONVERTERS["None"] = Converter()


@pytest.mark.parametrize("version", CONVERTERS)
@pytest.mark.parametrize(
    ("model", "field"),
    [
        (
            DATUM.with_provenance([m.PromptProvenanceSpan(**RUN)], [m.SampledProvenanceSpan(**RUN)]),
            "Datum.model_input_spans",
        ),
        (m.SampledSequence(stop_reason="stop", tokens=[], sequence_id="s"), "SampledSequence.sequence_id"),
        (m.SampledSequence(stop_reason="stop", tokens=[], topk_logprobs=[]), "SampledSequence.topk_logprobs"),
        (m.SampleResponse(sequences=[], target_prompt_logprobs=LOGPROBS), "SampleResponse.target_prompt_logprobs"),
        (
            m.SampleResponse(sequences=[], prompt_alt_tokens=m.PromptAltTokens(tokens=LOGPROBS, logprobs=LOGPROBS)),
            "SampleResponse.prompt_alt_tokens",
        ),
    ],
)
def test_json_rejects_protobuf_only_fields(model: Any, field: str, version: str) -> None:
    """The error names the field and the remedy."""
    with pytest.raises(DialectError, match="JSON cannot represent") as caught:
        CONVERTERS[version].encode(model)
    assert caught.value.what == field


@pytest.mark.parametrize("version", CONVERTERS)
def test_json_without_protobuf_only_fields_is_unchanged(version: str) -> None:
    """JSON omits protobuf-only fields at their defaults."""
    body = orjson.loads(CONVERTERS[version].encode(DATUM))
    assert body.keys() == {"model_input", "loss_fn_inputs"}


def test_protobuf_only_keys_in_json_are_extra_fields() -> None:
    """A request rejects the key like any unknown key; a result keeps it unchanged."""
    json_datum = orjson.loads(CONVERTERS["None"].encode(DATUM))
    with pytest.raises(ValueError, match="model_input_spans"):
        CONVERTERS["None"].structure({**json_datum, "model_input_spans": [RUN]}, m.Datum)
    wire = {"stop_reason": "stop", "tokens": [1], "topk_logprobs": [None]}
    sequence = CONVERTERS["None"].structure(wire, m.SampledSequence)
    assert (sequence.topk_logprobs, sequence.extra_fields) == (None, {"topk_logprobs": [None]})
    assert orjson.loads(CONVERTERS["None"].encode(sequence)) == wire
