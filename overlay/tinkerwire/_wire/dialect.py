"""The dialect of a server: which wire versions it may speak, which bodies it takes, what it wants of clients."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Call
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import dialect_error, is_in_range, overlaps
from tinkerwire_base.conversion.versioning import OLDEST_MODELS_VERSION, VersionRange, parse_version
from tinkerwire_base.unset import UNSET
from tinkerwire_generated.availability import (
    FIELD_VERSIONS,
    NEWEST,
    OPERATION_VERSIONS,
    PARAMETER_VERSIONS,
    REQUIRED_VERSIONS,
    SCALAR_TYPE_VERSIONS,
    TYPE_VERSIONS,
    VALUE_VERSIONS,
)
from tinkerwire_generated.models import ClientConfigResponse, ForwardBackwardOutput, SampleResponse

from .._futures.logger import log

BATCHES = frozenset({"forward", "forward_backward"})
"""The calls whose bodies may be binary messages; both are the same message."""
BINARY_RESULTS = (SampleResponse, ForwardBackwardOutput)
BINARY_RESULTS_SINCE = "0.18.2"
ONLY_BINARY_SINCE = "0.25.0"
"""From here on batches and their results, and samples, have no JSON form."""
LAST_WITHOUT_CONFIG = "0.16.1"
FIRST_WITH_CONFIG = "0.18.2"
TAKES = "; it takes batches as "
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
    """True if ``binary`` is a guess, which the response to the first such call confirms or corrects."""
    config: ClientConfigResponse = attrs.field(factory=ClientConfigResponse, repr=False)
    """What the server said it wants; the defaults where it was not asked."""
    has_binary_results: bool = True
    """True if results may be requested as protobuf; False once the server has rejected that."""

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
        return self.config.create_model_via_load_weights or is_in_range(self.floor, LOAD_CREATES_SINCE, None)

    def may_have(self, span: VersionRange | None) -> bool:
        """Whether any version of the range has a thing of that span; None: all versions have it."""
        return span is None or overlaps(self.floor, self.ceiling, *span)

    def may_have_operation(self, name: str) -> bool:
        """Whether the server may have this call."""
        return self.may_have(OPERATION_VERSIONS.get(name))

    def may_have_field(self, owner: str, name: str) -> bool:
        """Whether the server may know this field of a model."""
        return self.may_have(FIELD_VERSIONS.get(owner, {}).get(name))

    def check(self, call: Call[Any]) -> None:
        """Raise DialectError for a call, or a parameter in use, that the server surely lacks."""
        name = call.operation.name
        if not self.may_have_operation(name):
            raise dialect_error(f"the call {name}", self.ceiling, *OPERATION_VERSIONS[name], name=str(self))
        for parameter, value in call.query.items():
            span = PARAMETER_VERSIONS.get(name, {}).get(parameter)
            if span is not None and value not in (None, UNSET) and not self.may_have(span):
                raise dialect_error(f"{name}'s parameter {parameter}", self.ceiling, *span, name=str(self))

    def accept(self, result_type: type) -> str:
        """The Accept header that asks for a result of a type."""
        is_protobuf = self.has_binary_results and is_in_range(self.ceiling, BINARY_RESULTS_SINCE, None)
        if result_type not in BINARY_RESULTS or not is_protobuf:
            return JSON
        return PROTOBUF if is_in_range(self.floor, ONLY_BINARY_SINCE, None) else f"{PROTOBUF}, {JSON}"

    @property
    def is_given(self) -> bool:
        """True if the user gave the version, which no response changes."""
        return self.floor == self.ceiling

    def forms(self, name: str) -> tuple[Dialect, ...]:
        """The forms in which the server may take the body of a call, the most likely one first."""
        if name not in BATCHES or self.is_given:
            return (self,)
        protobuf = attrs.evolve(self, binary=self.binary | {name}, ceiling=NEWEST)
        json = attrs.evolve(self, binary=self.binary - {name})
        forms = (protobuf, json) if name in self.binary else (json, protobuf)
        if not self.config.proto_compress_fwdbwd:
            return forms
        return (*forms, attrs.evolve(protobuf, config=attrs.evolve(self.config, proto_compress_fwdbwd=False)))

    def form_name(self, name: str) -> str:
        """Return the name of the form of a call's body, for errors and logs."""
        if name not in self.binary:
            return "JSON"
        return "compressed protobuf" if self.config.proto_compress_fwdbwd else "protobuf"

    def learned(self, name: str, form: Dialect) -> Dialect:
        """The dialect once the server has taken the body of a call in a form."""
        if self.is_given or name not in BATCHES:
            return self
        is_protobuf = name in form.binary
        if not self.is_guess:
            binary = self.binary | {name} if is_protobuf else self.binary - {name}
        elif is_protobuf == (name in self.binary):
            binary = self.binary
        else:
            binary = BATCHES if is_protobuf else frozenset()
        # A forward that goes out as JSON all the same says nothing about forward_backward.
        is_guess = self.is_guess and bool(binary) and name not in binary
        taken = "protobuf" if binary else "JSON"
        if binary not in (BATCHES, frozenset()):
            taken = " and ".join(f"{'protobuf' if each in binary else 'JSON'} for {each}" for each in sorted(BATCHES))
        return attrs.evolve(
            self,
            binary=binary,
            ceiling=NEWEST if is_protobuf else self.ceiling,
            is_guess=is_guess,
            source=self.source if is_guess else f"{self.source.partition(TAKES)[0]}{TAKES}{taken}",
            config=form.config if is_protobuf else self.config,
        )


def given(version: str, config: ClientConfigResponse | None = None) -> Dialect:
    """The dialect of a known version; ``config`` is what such a server would want in client/config.

    Raises:
        ValueError: a version that is none, or that the contract does not cover.
    """
    if parse_version(version) > parse_version(NEWEST):
        raise ValueError(f"wire_version: {version} is not known; the newest known is {NEWEST}")
    if parse_version(version) < parse_version(OLDEST_MODELS_VERSION):
        raise ValueError(f"wire_version: {version} is too old; the oldest that is spoken is {OLDEST_MODELS_VERSION}")
    config = config or ClientConfigResponse()
    if is_in_range(version, ONLY_BINARY_SINCE, None):
        binary = BATCHES
    elif config.proto_write_fwdbwd:
        binary = BATCHES if config.fwd_via_fwdbwd else frozenset({"forward_backward"})
    else:
        binary = frozenset()
    return Dialect(floor=version, ceiling=version, source="wire_version", binary=binary, is_guess=False, config=config)


def found(config: ClientConfigResponse | None, flags: Collection[str] = (), *, is_tinker: bool = False) -> Dialect:
    """The dialect of a server that answers client/config so; None: it does not have that call.

    Protobuf is tried first: a server that takes both forms is better off with it, and one that takes only JSON costs
    one request.

    Args:
        flags: names of the flags that the answer held; the others are at their defaults.
        is_tinker: whether this is the Tinker service itself, which is known to take protobuf.
    """
    if config is None:
        return Dialect(
            floor=OLDEST_MODELS_VERSION,
            ceiling=LAST_WITHOUT_CONFIG,
            source="found out: the server has no client/config",
            binary=BATCHES,
            is_guess=True,
        )
    # A server that has the first flag and lacks the second one ignores forward_only: it would take a forward that is
    # sent as protobuf for a forward_backward.
    lacks_forward_only = "proto_write_fwdbwd" in flags and "fwd_via_fwdbwd" not in flags
    return Dialect(
        floor=FIRST_WITH_CONFIG,
        ceiling=NEWEST,
        source="found out: the server has client/config",
        binary=frozenset({"forward_backward"}) if lacks_forward_only and not is_tinker else BATCHES,
        is_guess=not is_tinker,
        config=config,
    )


@cache
def _converter(floor: str, ceiling: str, name: str) -> Converter:
    return Converter(
        ceiling,
        FIELD_VERSIONS,
        types=TYPE_VERSIONS,
        required=REQUIRED_VERSIONS,
        values=VALUE_VERSIONS,
        scalar_types=SCALAR_TYPE_VERSIONS,
        min_version=floor,
        name=name,
        report=log.warning,
    )
