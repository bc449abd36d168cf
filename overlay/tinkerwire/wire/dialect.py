"""The dialect of a server: which wire versions it may speak, which bodies it takes, what it wants of clients."""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Call
from tinkerwire_base.converter import Converter
from tinkerwire_base.projection import MODELS_FLOOR, parse_version
from tinkerwire_base.unset import UNSET
from tinkerwire_base.vocabulary import Span, dialect_error, is_in, may_be_in
from tinkerwire_generated.models import ClientConfigResponse, ForwardBackwardOutput, SampleResponse
from tinkerwire_generated.times import (
    FIELD_TIMES,
    KIND_TIMES,
    NEWEST,
    OPERATION_TIMES,
    PARAMETER_TIMES,
    REQUIRED_TIMES,
    TYPE_TIMES,
    VALUE_TIMES,
)

BATCHES = frozenset({"forward", "forward_backward"})
"""The calls whose bodies may be binary messages; both are the same message."""
BINARY_RESULTS = (SampleResponse, ForwardBackwardOutput)
BINARY_RESULTS_SINCE = "0.18.2"
ONLY_BINARY_SINCE = "0.25.0"
"""From here on batches and their results, and samples, have no JSON form."""
LAST_WITHOUT_CONFIG = "0.16.1"
FIRST_WITH_CONFIG = "0.18.2"
LOAD_CREATES_SINCE = "0.38.0"
"""From here on a model is created from saved weights by one call; before, where the server says so."""


@attrs.frozen(kw_only=True)
class Dialect:
    """What is known of how a server speaks; a client has one, ``client.dialect``.

    Where the wire version was given, floor and ceiling are that version. Where it was found out, they are the range
    that the server may speak: what no version of it has is refused with DialectError, what only some have is sent
    unless it is at its default.
    """

    floor: str
    """The oldest wire version that the server may speak."""
    ceiling: str
    """The newest."""
    source: str
    """How that is known."""
    binary: frozenset[str]
    """The calls whose bodies go out as binary messages: of forward and forward_backward, none, one or both."""
    is_guess: bool
    """Whether ``binary`` is still to be confirmed by the first answer to such a call."""
    config: ClientConfigResponse = attrs.field(factory=ClientConfigResponse, repr=False)
    """What the server said it wants; the defaults where it was not asked."""

    def __str__(self) -> str:
        versions = self.floor if self.floor == self.ceiling else f"{self.floor} to {self.ceiling}"
        return f"wire {versions} ({self.source})"

    @property
    def converter(self) -> Converter:
        """Encodes JSON for these versions, and decodes that of any."""
        return _converter(self.floor, self.ceiling, str(self))

    @property
    def load_creates(self) -> bool:
        """Whether a model is created from saved weights by load_weights alone."""
        return self.config.create_model_via_load_weights or is_in(self.floor, LOAD_CREATES_SINCE, None)

    def may_have(self, span: Span | None) -> bool:
        """Whether any version of the range has a thing of that span; None: all versions have it."""
        return span is None or may_be_in(self.floor, self.ceiling, *span)

    def may_have_operation(self, name: str) -> bool:
        """Whether the server may have this call."""
        return self.may_have(OPERATION_TIMES.get(name))

    def may_have_field(self, owner: str, name: str) -> bool:
        """Whether the server may know this field of a model."""
        return self.may_have(FIELD_TIMES.get(owner, {}).get(name))

    def check(self, call: Call[Any]) -> None:
        """Raise DialectError for a call, or a parameter in use, that the server surely lacks."""
        name = call.operation.name
        if not self.may_have_operation(name):
            raise dialect_error(f"the call {name}", self.ceiling, *OPERATION_TIMES[name], name=str(self))
        for parameter, value in call.query.items():
            span = PARAMETER_TIMES.get(name, {}).get(parameter)
            if span is not None and value not in (None, UNSET) and not self.may_have(span):
                raise dialect_error(f"{name}'s parameter {parameter}", self.ceiling, *span, name=str(self))

    def accept(self, result_type: type) -> str:
        """The Accept header that asks for a result of a type."""
        if result_type not in BINARY_RESULTS or not is_in(self.ceiling, BINARY_RESULTS_SINCE, None):
            return JSON
        return PROTOBUF if is_in(self.floor, ONLY_BINARY_SINCE, None) else f"{PROTOBUF}, {JSON}"

    def confirmed(self) -> Dialect:
        """The same, once the server has taken a batch as it was sent."""
        return attrs.evolve(self, is_guess=False) if self.is_guess else self

    def other_bodies(self, call: Call[Any], status: int) -> Dialect | None:
        """What to try when the server refuses the body of a call; None when that is no question of its form.

        A server that takes only JSON stumbles over a message in its own way; one that takes only messages says so.
        """
        if not self.is_guess or call.operation.name not in BATCHES:
            return None
        if self.binary:
            return attrs.evolve(self, binary=frozenset()) if status in (400, 415, 422) else None
        return attrs.evolve(self, binary=BATCHES, ceiling=NEWEST) if status == 415 else None


def given(version: str, config: ClientConfigResponse | None = None) -> Dialect:
    """The dialect of a known version; ``config`` is what such a server would want in client/config.

    Raises:
        ValueError: a version that is none, or that the contract does not cover.
    """
    if parse_version(version) > parse_version(NEWEST):
        raise ValueError(f"wire_version: {version} is not known; the newest known is {NEWEST}")
    if parse_version(version) < parse_version(MODELS_FLOOR):
        raise ValueError(f"wire_version: {version} is too old; the oldest that is spoken is {MODELS_FLOOR}")
    config = config or ClientConfigResponse()
    if is_in(version, ONLY_BINARY_SINCE, None):
        binary = BATCHES
    elif config.proto_write_fwdbwd:
        binary = BATCHES if config.fwd_via_fwdbwd else frozenset({"forward_backward"})
    else:
        binary = frozenset()
    return Dialect(floor=version, ceiling=version, source="wire_version", binary=binary, is_guess=False, config=config)


def found(config: ClientConfigResponse | None) -> Dialect:
    """The dialect of a server that answers client/config so; None: it does not have that call."""
    if config is None:
        return Dialect(
            floor=MODELS_FLOOR,
            ceiling=LAST_WITHOUT_CONFIG,
            source="found out: the server has no client/config",
            binary=frozenset(),
            is_guess=True,
        )
    return Dialect(
        floor=FIRST_WITH_CONFIG,
        ceiling=NEWEST,
        source="found out: the server has client/config",
        binary=BATCHES,
        is_guess=True,
        config=config,
    )


@cache
def _converter(floor: str, ceiling: str, name: str) -> Converter:
    return Converter(
        ceiling,
        FIELD_TIMES,
        types=TYPE_TIMES,
        required=REQUIRED_TIMES,
        values=VALUE_TIMES,
        kinds=KIND_TIMES,
        floor=floor,
        name=name,
    )
