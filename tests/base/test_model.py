"""Models: validation of request fields, equality and representations."""

from __future__ import annotations

import math
import pickle
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire_base import model as base
from tinkerwire_base import validators
from tinkerwire_base.unset import UNSET, UnsetType
from tinkerwire_base.validators import field_validator, validator_of
from tinkerwire_generated import models

m: Any = models

PROMPT = m.ModelInput.from_ints([1])
DATUM = m.Datum(model_input=PROMPT, loss_fn_inputs={})


@base.define
class _Limits(base.ForbidExtra):
    """A request with all the checks that a user's own contract can use."""

    count: int = attrs.field(default=1, validator=field_validator(validators.at_least(1), validators.at_most(9)))
    share: float | UnsetType = attrs.field(
        default=UNSET,
        validator=field_validator(validators.at_least(0, exclusive=True), validators.at_most(1, exclusive=True)),
    )
    name: str | None = attrs.field(
        default=None, validator=field_validator(validators.has_size(2, 4), validators.matches("^[a-z]+$"))
    )
    names: list[str] = attrs.field(factory=list, validator=field_validator(validators.has_size(0, 2)))
    pair: tuple[int, float] | None = attrs.field(default=None, validator=field_validator())
    blob: bytes = attrs.field(default=b"", validator=field_validator())


_Limits.__name__ = "Limits"
Limits: Any = _Limits


@pytest.mark.parametrize(
    ("make", "kind", "pattern"),
    [
        (
            lambda: m.AdamParams(learning_rate="fast"),
            TypeError,
            r"AdamParams.learning_rate: expected a number, got 'fast' \(str\)",
        ),
        (lambda: m.AdamParams(learning_rate=None), TypeError, r"AdamParams.learning_rate: expected a number, got None"),
        (lambda: m.AdamParams(learning_rate=True), TypeError, r"expected a number, got True \(bool\)"),
        (lambda: m.AdamParams(learning_rate=Decimal("0.1")), TypeError, r"expected a number, got Decimal"),
        (lambda: m.AdamParams(learning_rate=math.nan), ValueError, r"AdamParams.learning_rate: nan cannot be sent"),
        (lambda: m.AdamParams(learning_rate=np.float32("inf")), ValueError, r"inf.* cannot be sent"),
        (lambda: m.AdamParams(learning_rate=10**400), ValueError, r"does not fit into 64 bits"),
        (lambda: m.SamplingParams(temperature=math.inf), ValueError, r"SamplingParams.temperature: inf cannot be sent"),
        (lambda: m.SamplingParams(max_tokens=1.0), TypeError, r"SamplingParams.max_tokens: expected an int, got 1.0"),
        (lambda: m.SamplingParams(max_tokens=True), TypeError, r"expected an int, got True"),
        (lambda: m.SamplingParams(seed=2**63), ValueError, r"SamplingParams.seed: 9223372036854775808 does not fit"),
        (
            lambda: m.SamplingParams(stop=5),
            TypeError,
            r"SamplingParams.stop: expected str \| list\[str\] \| list\[int\]",
        ),
        (lambda: m.SamplingParams(stop=["a", 5]), TypeError, r"SamplingParams.stop: expected str"),
        (lambda: m.LoraConfig(rank="8"), TypeError, r"LoraConfig.rank: expected an int, got '8' \(str\)"),
        (lambda: m.LoraConfig(rank=8, train_mlp=1), TypeError, r"LoraConfig.train_mlp: expected True or False, got 1"),
        (lambda: m.GetInfoRequest(model_id=5), TypeError, r"GetInfoRequest.model_id: expected a str, got 5 \(int\)"),
        (lambda: m.GetInfoRequest(model_id=b"m"), TypeError, r"expected a str, got b'm' \(bytes\)"),
        (
            lambda: m.GetInfoRequest(model_id="m", type="x"),
            ValueError,
            r"GetInfoRequest.type: must be one of 'get_info', got 'x'",
        ),
        (
            lambda: m.CreateSessionRequest(tags="abc", user_metadata=None, sdk_version="0"),
            TypeError,
            r"CreateSessionRequest.tags: expected a list, got 'abc' \(str\)",
        ),
        (
            lambda: m.CreateSessionRequest(tags=["a", 1], user_metadata=None, sdk_version="0"),
            TypeError,
            r"CreateSessionRequest.tags\[1\]: expected a str, got 1 \(int\)",
        ),
        (
            lambda: m.CreateSessionRequest(tags=[], user_metadata={1: 2}, sdk_version="0"),
            TypeError,
            r"CreateSessionRequest.user_metadata key: expected a str, got 1",
        ),
        (
            lambda: m.CreateSessionRequest(tags=[], user_metadata="x", sdk_version="0"),
            TypeError,
            r"CreateSessionRequest.user_metadata: expected a dict, got 'x'",
        ),
        (
            lambda: m.ForwardBackwardInput(data=DATUM, loss_fn="ppo"),
            TypeError,
            r"ForwardBackwardInput.data: expected a list, got Datum",
        ),
        (
            lambda: m.ForwardBackwardInput(data=[DATUM, PROMPT], loss_fn="ppo"),
            TypeError,
            r"ForwardBackwardInput.data\[1\]: expected Datum, got ModelInput",
        ),
        (
            lambda: m.ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config={"clip": b"x"}),  # type: ignore
            TypeError,
            r"ForwardBackwardInput.loss_fn_config\['clip'\]: expected a number",
        ),
        (
            lambda: m.SampleRequest(prompt="hi", sampling_params=m.SamplingParams()),
            TypeError,
            r"SampleRequest.prompt: expected ModelInput, got 'hi' \(str\)",
        ),
        (
            lambda: m.SampleRequest(prompt=PROMPT, sampling_params={}),
            TypeError,
            r"expected SamplingParams, got {} \(dict\)",
        ),
        (lambda: Limits(count=0), ValueError, r"Limits.count: must be at least 1, got 0"),
        (lambda: Limits(count=10), ValueError, r"Limits.count: must be at most 9, got 10"),
        (lambda: Limits(share=0.0), ValueError, r"Limits.share: must be greater than 0, got 0.0"),
        (lambda: Limits(share=1), ValueError, r"Limits.share: must be less than 1, got 1"),
        (lambda: Limits(share=None), TypeError, r"Limits.share: expected a number, got None"),
        (lambda: Limits(name="a"), ValueError, r"Limits.name: must have 2 to 4 entries, got 1"),
        (lambda: Limits(name="AB"), ValueError, r"Limits.name: must match '\^\[a-z\]\+\$', got 'AB'"),
        (lambda: Limits(name=UNSET), TypeError, r"Limits.name: expected a str, got UNSET"),
        (lambda: Limits(names=["a", "b", "c"]), ValueError, r"Limits.names: must have 0 to 2 entries, got 3"),
        (lambda: Limits(blob="x"), TypeError, r"Limits.blob: expected bytes, got 'x'"),
    ],
)
def test_invalid_values_raise_errors_in_the_constructor(make: Any, kind: type[Exception], pattern: str) -> None:
    """Each wrong type, range, length, form and non-finite number: class, field, value and what would do."""
    with pytest.raises(kind, match=pattern):
        make()


def test_constructors_accept_valid_values() -> None:
    """None, UNSET, numpy numbers, tuples for lists, and the ends of every range are valid."""
    Limits(count=9, share=0.5, name="ab", names=["a"], blob=b"x")
    Limits(count=np.int32(1), share=UNSET, name=None, names=("a", "b"))
    m.SamplingParams(stop="a", seed=-(2**63))
    m.SamplingParams(stop=[1, 2], max_tokens=None)
    m.SamplingParams(stop=["a"], temperature=0)
    m.CreateSessionRequest(tags=("a",), user_metadata={"any": object()}, sdk_version="0")


def test_naive_datetimes_are_rejected() -> None:
    """A datetime needs its offset."""
    with pytest.raises(ValueError, match=r"x: .* has no time zone"):
        validator_of(datetime)("x", datetime(2025, 1, 1))


def test_validators_resolve_types_per_class() -> None:
    """An inherited field is checked in both classes, each under its own name."""

    @base.define
    class StricterLimits(_Limits):
        """Model that inherits a field."""

        extra: int = attrs.field(default=0, validator=field_validator())

    for cls in (Limits, StricterLimits, Limits):
        with pytest.raises(ValueError, match=f"{cls.__name__}.count: must be at least 1"):
            cls(count=0)


def test_long_values_are_shortened_in_errors_and_reprs() -> None:
    """A prompt of a million tokens or an image fits into a line of a log."""
    with pytest.raises(TypeError) as caught:
        m.GetInfoRequest(model_id=list(range(10**6)))
    assert len(str(caught.value)) < 200
    assert len(repr(m.ModelInput.from_ints(range(10**5)))) < 200
    assert len(repr(m.ImageChunk(data=b"x" * 10**6, format="png"))) < 3000
    assert len(repr(m.TensorData(data=np.zeros(10**6), dtype="float32"))) < 200


def test_reprs_contain_only_fields_that_are_not_default() -> None:
    """A repr names the class and the fields that were set."""
    assert repr(m.AdamParams(beta1=0.5)) == "AdamParams(beta1=0.5)"
    assert repr(m.ModelInput.from_ints([1])) == "ModelInput(chunks=[EncodedTextChunk(tokens=[1])])"


def test_models_are_equal_by_their_fields() -> None:
    """Equal fields and the same class make equal models; models of plain values can be keys."""
    assert m.AdamParams() == m.AdamParams() != m.AdamParams(beta1=0.5)
    assert m.SessionHeartbeatResponse() != m.TelemetryResponse()
    assert len({m.AdamParams(), m.AdamParams(), m.AdamParams(beta1=0.5)}) == 2
    assert m.SupportedModel(extra_fields={"a": 1}) != m.SupportedModel()
    assert len({m.SamplingParams(), m.SamplingParams(), m.SamplingParams(extra_fields={"a": 1})}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(PROMPT)


def test_unset_is_a_falsy_singleton() -> None:
    """UNSET is false, prints as UNSET and is still itself after pickling."""
    assert not UNSET
    assert repr(UNSET) == str(UNSET) == f"{UNSET}" == "UNSET"
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET


def test_reprs_and_errors_contain_no_secrets() -> None:
    """Neither a repr nor an error shows a token that a field is for."""
    request = models.LoadWeightsRequest(path="tinker://m/weights/a", optimizer=False, weights_access_token="s3cret")
    assert "s3cret" not in repr(request)
    assert "weights_access_token=<secret>" in repr(request)
    with pytest.raises(TypeError, match="weights_access_token") as caught:
        models.LoadWeightsRequest(path="tinker://m/weights/a", optimizer=False, weights_access_token=b"s3cret")  # type: ignore[arg-type]
    assert "s3cret" not in str(caught.value)
