"""Dialects: the wire versions that a server may support, the encodings that it accepts, and its client config."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Call
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_base.conversion.versioning import VersionRange, parse_version, version_before
from tinkerwire_base.unset import UNSET
from tinkerwire_generated import models
from tinkerwire_generated.availability import (
    BODY_VERSIONS,
    FIELD_VERSIONS,
    NEWEST,
    OLDEST_MODELS_VERSION,
    OPERATION_VERSIONS,
    PARAMETER_VERSIONS,
    PROTOBUF_RESULT_VERSIONS,
    TYPE_VERSIONS,
    VERSIONS,
)
from tinkerwire_generated.constants import PROTOBUF_OPERATIONS

from .._futures.logger import log
from .contract_rules import contract_rules

if TYPE_CHECKING:
    from tinkerwire_base.conversion.converter import Converter

BATCH_OPERATIONS = frozenset(PROTOBUF_OPERATIONS)
"""Operations whose requests may be protobuf; all of them send the same message."""
DIRECT_OPERATIONS = frozenset(name for name, target in PROTOBUF_OPERATIONS.items() if name == target)
"""Batch operations that receive the message themselves; a field of the message distinguishes the others."""
CONFIG_SINCE = OPERATION_VERSIONS["client_config"][0]
"""The first wire version with client/config."""
LOAD_CREATES_SINCE = FIELD_VERSIONS["ClientConfigResponse"]["create_model_via_load_weights"][1]
"""The first wire version in which load_weights always creates a model; before, a flag of client/config decides."""
ENCODING_NOTE = "; it takes batches as "


def _default_config() -> models.ClientConfigResponse:
    return models.ClientConfigResponse()


@attrs.frozen(kw_only=True)
class Dialect:
    """The dialect of a server, as far as the client knows it; ``client.dialect`` is the one in use.

    If the user sets the wire version, ``min_version`` and ``max_version`` are that version. If the client discovers
    the dialect, they are the range that the server may support. A field that no version of the range has raises
    DialectError. A field that only some versions have is sent unless its value is the default.
    """

    min_version: str
    """The oldest wire version that the server may support."""
    max_version: str
    """The newest wire version that the server may support."""
    source: str
    """The reason for the range."""
    protobuf_operations: frozenset[str]
    """The operations whose requests are sent as protobuf: none, one or both of forward and forward_backward."""
    is_provisional: bool
    """True if ``protobuf_operations`` is a guess, which the response to the first such request confirms or corrects."""
    config: models.ClientConfigResponse = attrs.field(factory=_default_config, repr=False)
    """The server's client config; the defaults if the client did not request it."""
    accepts_protobuf_results: bool = True
    """True if results may be requested as protobuf; False once the server has rejected that."""

    @classmethod
    def for_version(cls, version: str, config: models.ClientConfigResponse | None = None) -> Dialect:
        """Return the dialect of a known wire version.

        Args:
            version: the wire version.
            config: the client config of such a server.

        Raises:
            ValueError: the text is not a version, or the contract does not cover the version.
        """
        if parse_version(version) > parse_version(NEWEST):
            raise ValueError(f"wire_version: {version} is unknown; the newest known version is {NEWEST}")
        if parse_version(version) < parse_version(OLDEST_MODELS_VERSION):
            raise ValueError(f"wire_version: {version} is too old; the oldest supported is {OLDEST_MODELS_VERSION}")
        config = config or models.ClientConfigResponse()
        if not has_json_batches(version):
            operations = BATCH_OPERATIONS
        elif config.proto_write_fwdbwd:
            operations = BATCH_OPERATIONS if config.fwd_via_fwdbwd else DIRECT_OPERATIONS
        else:
            operations = frozenset()
        return cls(
            min_version=version,
            max_version=version,
            source="wire_version",
            protobuf_operations=operations,
            is_provisional=False,
            config=config,
        )

    @classmethod
    def from_client_config(
        cls, config: models.ClientConfigResponse | None, flags: Collection[str] = (), *, is_tinker: bool = False
    ) -> Dialect:
        """Return the dialect of a server with this client config.

        Protobuf is tried first: it is cheaper if the server accepts both encodings, and costs one request if the
        server accepts only JSON.

        Args:
            config: the response to client/config; None if the server does not have that endpoint.
            flags: names of the flags in the response; the others have their defaults.
            is_tinker: True for the Tinker service itself, which accepts protobuf.
        """
        if config is None:
            return cls(
                min_version=OLDEST_MODELS_VERSION,
                max_version=version_before(VERSIONS, CONFIG_SINCE),
                source="discovered: the server has no client/config",
                protobuf_operations=BATCH_OPERATIONS,
                is_provisional=True,
            )
        # A server that has the first flag and lacks the second ignores forward_only. It would execute a forward that
        # is sent as protobuf as a forward_backward.
        ignores_forward_only = "proto_write_fwdbwd" in flags and "fwd_via_fwdbwd" not in flags
        return cls(
            min_version=CONFIG_SINCE,
            max_version=NEWEST,
            source="discovered: the server has client/config",
            protobuf_operations=DIRECT_OPERATIONS if ignores_forward_only and not is_tinker else BATCH_OPERATIONS,
            is_provisional=not is_tinker,
            config=config,
        )

    def __str__(self) -> str:
        return f"wire {self.version_range.replace('-', ' to ')} ({self.source})"

    @property
    def version_range(self) -> str:
        """The wire version, or the oldest and the newest possible one with a hyphen between them."""
        return self.min_version if self.is_fixed else f"{self.min_version}-{self.max_version}"

    @property
    def is_fixed(self) -> bool:
        """True if the user set the wire version, which no response changes."""
        return self.min_version == self.max_version

    @cached_property
    def rules(self) -> VersionRules:
        """The parts of the contract that these versions support."""
        return contract_rules(self.min_version, self.max_version, str(self))

    @cached_property
    def converter(self) -> Converter:
        """The converter that encodes JSON for these versions and decodes JSON of any version."""
        return _converter(self.min_version, self.max_version, str(self))

    @property
    def creates_model_on_load(self) -> bool:
        """True if load_weights alone creates a model from saved weights."""
        always = LOAD_CREATES_SINCE is not None and self.rules.always_has((LOAD_CREATES_SINCE, None))
        return always or self.config.create_model_via_load_weights

    def may_have(self, versions: VersionRange | None) -> bool:
        """Check whether any supported version is in a range; None stands for all versions."""
        return self.rules.may_have(versions)

    def may_have_operation(self, name: str) -> bool:
        """Check whether the server may have an operation."""
        return self.may_have(OPERATION_VERSIONS.get(name))

    def may_have_field(self, owner: str, name: str) -> bool:
        """Check whether the server may know a field of a model."""
        return self.may_have(FIELD_VERSIONS.get(owner, {}).get(name))

    def check(self, call: Call[Any]) -> None:
        """Raise DialectError for an operation, or a query parameter in use, that the server certainly lacks."""
        name = call.operation.name
        self.rules.require(f"the call {name}", OPERATION_VERSIONS.get(name))
        for parameter, value in call.query.items():
            if value not in (None, UNSET):
                versions = PARAMETER_VERSIONS.get(name, {}).get(parameter)
                self.rules.require(f"{name}'s parameter {parameter}", versions)

    def accept(self, result_type: type) -> str:
        """Return the Accept header of a request for a result of a type."""
        if not self.accepts_protobuf_results:
            return JSON
        return _accept_header(self.min_version, self.max_version, result_type.__name__)

    def forms(self, name: str) -> tuple[Dialect, ...]:
        """Return the encodings in which the server may accept the requests of an operation, the likeliest first."""
        if name not in BATCH_OPERATIONS or self.is_fixed:
            return (self,)
        protobuf = attrs.evolve(self, protobuf_operations=self.protobuf_operations | {name}, max_version=NEWEST)
        json = attrs.evolve(self, protobuf_operations=self.protobuf_operations - {name})
        forms = (protobuf, json) if name in self.protobuf_operations else (json, protobuf)
        if not self.config.proto_compress_fwdbwd:
            return forms
        return (*forms, attrs.evolve(protobuf, config=attrs.evolve(self.config, proto_compress_fwdbwd=False)))

    def form_name(self, name: str) -> str:
        """Return the name of the encoding of an operation's requests, for errors and logs."""
        if name not in self.protobuf_operations:
            return "JSON"
        return "compressed protobuf" if self.config.proto_compress_fwdbwd else "protobuf"

    def as_confirmed(self, name: str, form: Dialect) -> Dialect:
        """Return the dialect after the server has accepted a request of an operation in an encoding."""
        if self.is_fixed or name not in BATCH_OPERATIONS:
            return self
        is_protobuf = name in form.protobuf_operations
        if not self.is_provisional:
            operations = self.protobuf_operations | {name} if is_protobuf else self.protobuf_operations - {name}
        elif is_protobuf == (name in self.protobuf_operations):
            operations = self.protobuf_operations
        else:
            operations = BATCH_OPERATIONS if is_protobuf else frozenset()
        # A forward that is sent as JSON anyway proves nothing about forward_backward.
        is_provisional = self.is_provisional and bool(operations) and name not in operations
        source = self.source
        if not is_provisional:
            source = f"{source.partition(ENCODING_NOTE)[0]}{ENCODING_NOTE}{_describe_encodings(operations)}"
        return attrs.evolve(
            self,
            protobuf_operations=operations,
            max_version=NEWEST if is_protobuf else self.max_version,
            is_provisional=is_provisional,
            source=source,
            config=form.config if is_protobuf else self.config,
        )


def _describe_encodings(protobuf_operations: frozenset[str]) -> str:
    if protobuf_operations in (BATCH_OPERATIONS, frozenset()):
        return "protobuf" if protobuf_operations else "JSON"
    return " and ".join(
        f"{'protobuf' if name in protobuf_operations else 'JSON'} for {name}" for name in sorted(BATCH_OPERATIONS)
    )


def has_json_batches(version: str) -> bool:
    """Return whether clients of a wire version may send batches as JSON."""
    rules = VersionRules(min_version=version)
    return all(rules.may_have(BODY_VERSIONS[name][JSON]) for name in DIRECT_OPERATIONS)


@cache
def _accept_header(min_version: str, max_version: str, type_name: str) -> str:
    rules = contract_rules(min_version, max_version, f"wire {max_version}")
    versions = PROTOBUF_RESULT_VERSIONS.get(type_name)
    if versions is None or not rules.may_have(versions):
        return JSON
    has_json = rules.may_have(TYPE_VERSIONS[type_name])
    return f"{PROTOBUF}, {JSON}" if has_json else PROTOBUF


@cache
def _converter(min_version: str, max_version: str, name: str) -> Converter:
    # The converter imports cattrs, which takes 8 ms.
    from tinkerwire_base.conversion.converter import Converter  # noqa: PLC0415

    return Converter(contract_rules(min_version, max_version, name), report=log.warning)
