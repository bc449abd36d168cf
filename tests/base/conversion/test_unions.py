"""Unions: the tag of an object selects a member, or its keys do in unions without a discriminator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.unions import tag_table
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_generated import models

m: Any = models
PREFIX = "#/components/schemas/"
UNIONS = load(Path(__file__).parents[3] / "schema")["components"]["schemas"]
ANY = Converter()
MEMBERS: list[tuple[Any, str]] = [
    ({"type": "try_again", "request_id": "r", "queue_state": "active"}, "TryAgainResponse"),
    ({"request_id": "r", "queue_state": "paused_capacity"}, "TryAgainResponse"),
    ({"error": "boom", "category": "user"}, "RequestFailedResponse"),
    ({"status": "complete_metadata", "response_payload_size": 9}, "CompleteMetadataResponse"),
    ({"sequences": [], "type": "sample"}, "SampleResponse"),
    ({"sequences": []}, "SampleResponse"),
    ({"loss_fn_output_type": "x", "loss_fn_outputs": [], "metrics": {}}, "ForwardBackwardOutput"),
    ({"model_id": "m", "type": "create_model"}, "CreateModelResponse"),
    ({"model_id": "m", "type": "unload_model"}, "UnloadModelResponse"),
    ({"model_id": "m", "type": None}, "UnloadModelResponse"),
    ({"path": "p", "type": "save_weights"}, "SaveWeightsResponse"),
    ({"path": "p", "type": "save_weights_for_sampler"}, "SaveWeightsForSamplerResponse"),
    ({"sampling_session_id": "s"}, "SaveWeightsForSamplerResponseInternal"),
    ({"sampling_session_id": "s", "type": "save_weights_for_sampler"}, "SaveWeightsForSamplerResponseInternal"),
    ({"path": "p", "type": "load_weights"}, "LoadWeightsResponse"),
    ({"path": None, "type": "load_weights"}, "LoadWeightsResponse"),
    ({"path": None, "sampling_session_id": "s", "type": None}, "SaveWeightsForSamplerResponseInternal"),
    ({"path": "p", "type": "save_weights_external"}, "SaveWeightsExternalResponse"),
    ({"size_bytes": 9, "type": "save_weights_external"}, "SaveWeightsExternalResponseInternal"),
    ({"loss_id": "l", "type": "create_custom_loss"}, "CreateCustomLossResponse"),
    ({"path": "p", "size_bytes": 9, "type": "save_weights_external"}, "SaveWeightsExternalResponseInternal"),
    ({"path": None, "type": "save_weights_external"}, "SaveWeightsExternalResponseInternal"),
    ({"metrics": {"a": 1.0}}, "OptimStepResponse"),
    ({"metrics": None, "new": 1}, "OptimStepResponse"),
    ({"sequences": [], "type": "sample", "new": 1}, "SampleResponse"),
]


@pytest.mark.parametrize(("wire", "name"), MEMBERS)
def test_results_are_distinguished_by_tag_or_keys(wire: Any, name: str) -> None:
    """Tag or keys select each member of the union of results, in any order of the members."""
    assert type(ANY.structure(wire, m.FutureRetrieveResponse)).__name__ == name


def test_every_result_has_a_case() -> None:
    """The list above has every member of the union."""
    assert {name for _, name in MEMBERS} == {member.__name__ for member in m.FutureRetrieveResponse.__args__}


@pytest.mark.parametrize("wire", [{"error": "boom"}, {"status": "ok"}, {"type": "brand_new"}, {"new": 1}])
def test_other_objects_are_rejected_as_results(wire: Any) -> None:
    """An object that shares no key with a member is an error, not an empty result."""
    with pytest.raises(
        ValueError, match=r"expected the keys of TryAgainResponse or .*, got \['(error|status|type|new)'\] "
    ):
        ANY.structure(wire, m.FutureRetrieveResponse)


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        ({"tokens": [1]}, m.EncodedTextChunk),
        ({"tokens": [1], "type": "encoded_text"}, m.EncodedTextChunk),
        ({"location": "x", "format": "png"}, m.ImageAssetPointerChunk),
        ({"data": "iVBORw==", "format": "png"}, m.ImageChunk),
        ({"data": "iVBORw==", "format": "png", "height": 1, "width": 1, "tokens": 9}, m.ImageChunk),
    ],
)
def test_chunks_are_distinguished_without_tags(wire: Any, kind: type) -> None:
    """Clients of these versions leave the tags out."""
    assert type(ANY.structure({"chunks": [wire]}, m.ModelInput).chunks[0]) is kind


def test_unknown_tag_is_rejected() -> None:
    """A chunk of a kind to come is named, not misread."""
    with pytest.raises(
        ValueError, match=r"type must be one of 'encoded_text', .*'dmel', got 'audio' @ ModelInput.chunks\[0\]"
    ):
        ANY.structure({"chunks": [{"tokens": [1], "type": "audio"}]}, m.ModelInput)


@pytest.mark.parametrize(
    ("tag_field", "problem"),
    [
        ({}, "got no state"),
        ({"state": None}, "got None"),
        ({"state": ["finished"]}, r"got \['finished'\]"),
        ({"state": "lost"}, "got 'lost'"),
    ],
)
def test_missing_or_wrong_tag_is_named_with_the_accepted_tags(tag_field: dict[str, Any], problem: str) -> None:
    """A union with a discriminator never guesses by keys."""
    with pytest.raises(ValueError, match=rf"state must be one of 'finished', 'failed', {problem} @ "):
        ANY.structure({"completions": [{"request_id": "r"} | tag_field], "cursor": 1}, m.FuturesRetrieveResponse)


@pytest.mark.parametrize("name", [name for name, schema in UNIONS.items() if "discriminator" in schema])
def test_discriminators_equal_those_of_the_contract(name: str) -> None:
    """The tags of the models select the same members as the discriminator of their union."""
    discriminator = UNIONS[name]["discriminator"]
    tag, classes = tag_table(getattr(m, name).__args__)
    assert tag == discriminator["propertyName"]
    assert {value: PREFIX + cls.__name__ for value, cls in classes.items()} == discriminator["mapping"]


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        ({"learning_rate": 0.1}, m.AdamParams),
        ({"learning_rate": 0.1, "beta1": 0.5, "grad_clip_norm": 1}, m.AdamParams),
        ({}, m.AdamParams),
        ({"learning_rate": 0.1, "type": "dimuon"}, m.DimuonParams),
        ({"learning_rate": 0.1, "type": "muon"}, m.OptimParamsBase),
    ],
)
def test_settings_without_a_tag_are_those_of_adamw(wire: Any, kind: type) -> None:
    """AdamW's settings are the only ones that have no tag; what needs a key is not meant by that key alone."""
    assert type(ANY.structure(wire, m.OptimParams)) is kind
