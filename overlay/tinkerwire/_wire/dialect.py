"""Dialect of a server: its possible wire versions, the body forms that it accepts, and its settings for clients."""

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
"""Calls whose bodies may be protobuf; both have the same message."""
BINARY_RESULTS = (SampleResponse, ForwardBackwardOutput)
BINARY_RESULTS_SINCE = "0.18.2"
ONLY_BINARY_SINCE = "0.25.0"
"""First version without a JSON form of batches, their results, and samples."""
LAST_WITHOUT_CONFIG = "0.16.1"
FIRST_WITH_CONFIG = "0.18.2"
TAKES = "; it takes batches as "
LOAD_CREATES_SINCE = "0.38.0"
"""First version in which load_weights creates a model; before, a flag of the server decides."""


@attrs.frozen(kw_only=True)
class Dialect:
    """Knowledge of the wire of a server; ``client.dialect``.

    For a set wire version, floor and ceiling are that version. For a discovered one they are the range that the server
    may support: DialectError for fields that no version of the range has; fields that only some versions have are sent
    unless they are at their default.
    """

    floor: str
    """Oldest possible wire version of the server."""
    ceiling: str
    """Newest possible wire version of the server."""
    source: str
    """Source of this knowledge."""
    binary: frozenset[str]
    """Calls whose bodies are sent as protobuf: a subset of forward and forward_backward."""
    is_guess: bool
    """True if ``binary`` is a guess, which the response to the first such call confirms or corrects."""
    config: ClientConfigResponse = attrs.field(factory=ClientConfigResponse, repr=False)
    """The server's client/config; defaults without a request for it."""
    has_binary_results: bool = True
    """True if results may be requested as protobuf; False once the server has rejected that."""

    def __str__(self) -> str:
        versions = self.floor if self.floor == self.ceiling else f"{self.floor} to {self.ceiling}"
        return f"wire {versions} ({self.source})"

    @property
    def converter(self) -> Converter:
        """Return the converter that writes JSON for these versions, and reads JSON of any."""
        return _converter(self.floor, self.ceiling, str(self))

    @property
    def load_creates(self) -> bool:
        """Return whether load_weights alone creates a model from saved weights."""
        return self.config.create_model_via_load_weights or is_in_range(self.floor, LOAD_CREATES_SINCE, None)

    def may_have(self, span: VersionRange | None) -> bool:
        """Return whether a version of the range overlaps a span; None is every version."""
        return span is None or overlaps(self.floor, self.ceiling, *span)

    def may_have_operation(self, name: str) -> bool:
        """Return whether the server may have a call."""
        return self.may_have(OPERATION_VERSIONS.get(name))

    def may_have_field(self, owner: str, name: str) -> bool:
        """Return whether the server may know a field of a model."""
        return self.may_have(FIELD_VERSIONS.get(owner, {}).get(name))

    def check(self, call: Call[Any]) -> None:
        """Raise DialectError for a call, or a parameter in use, that the server certainly lacks."""
        name = call.operation.name
        if not self.may_have_operation(name):
            raise dialect_error(f"the call {name}", self.ceiling, *OPERATION_VERSIONS[name], name=str(self))
        for parameter, value in call.query.items():
            span = PARAMETER_VERSIONS.get(name, {}).get(parameter)
            if span is not None and value not in (None, UNSET) and not self.may_have(span):
                raise dialect_error(f"{name}'s parameter {parameter}", self.ceiling, *span, name=str(self))

    def accept(self, result_type: type) -> str:
        """Return the Accept header for a result of a type."""
        is_protobuf = self.has_binary_results and is_in_range(self.ceiling, BINARY_RESULTS_SINCE, None)
        if result_type not in BINARY_RESULTS or not is_protobuf:
            return JSON
        return PROTOBUF if is_in_range(self.floor, ONLY_BINARY_SINCE, None) else f"{PROTOBUF}, {JSON}"

    @property
    def is_given(self) -> bool:
        """True if the user gave the version, which no response changes."""
        return self.floor == self.ceiling

    def forms(self, name: str) -> tuple[Dialect, ...]:
        """Return the forms in which the server may accept the body of a call, the most likely one first."""
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
        """Return the dialect after the server has accepted the body of a call in a form."""
        if self.is_given or name not in BATCHES:
            return self
        is_protobuf = name in form.binary
        if not self.is_guess:
            binary = self.binary | {name} if is_protobuf else self.binary - {name}
        elif is_protobuf == (name in self.binary):
            binary = self.binary
        else:
            binary = BATCHES if is_protobuf else frozenset()
        # A forward that is sent as JSON anyway does not show the form of forward_backward.
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
    """Return the dialect of a known version; ``config`` is the client/config of such a server.

    Raises:
        ValueError: the version is malformed, or the contract does not cover it.
    """
    if parse_version(version) > parse_version(NEWEST):
        raise ValueError(f"wire_version: {version} is not known; the newest known is {NEWEST}")
    if parse_version(version) < parse_version(OLDEST_MODELS_VERSION):
        raise ValueError(f"wire_version: {version} is too old; the oldest supported version is {OLDEST_MODELS_VERSION}")
    config = config or ClientConfigResponse()
    if is_in_range(version, ONLY_BINARY_SINCE, None):
        binary = BATCHES
    elif config.proto_write_fwdbwd:
        binary = BATCHES if config.fwd_via_fwdbwd else frozenset({"forward_backward"})
    else:
        binary = frozenset()
    return Dialect(floor=version, ceiling=version, source="wire_version", binary=binary, is_guess=False, config=config)


def found(config: ClientConfigResponse | None, flags: Collection[str] = (), *, is_tinker: bool = False) -> Dialect:
    """Return the dialect of a server with this client/config; None for a server without that call.

    Protobuf is tried first: it is cheaper if a server accepts both forms, and costs one request otherwise.

    Args:
        config: the server's client/config, or None.
        flags: names of the flags in the response; the others are at their defaults.
        is_tinker: whether this is the Tinker service, which is known to accept protobuf.
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
