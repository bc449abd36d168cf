"""Version rules with the availability tables of the contract."""

from __future__ import annotations

from functools import cache

from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_generated.availability import (
    FIELD_VERSIONS,
    REQUIRED_VERSIONS,
    SCALAR_TYPE_VERSIONS,
    TYPE_VERSIONS,
    VALUE_VERSIONS,
)


@cache
def contract_rules(min_version: str, max_version: str, name: str) -> VersionRules:
    """Return the rules of a range of wire versions; ``name`` is the name of the range in errors."""
    return VersionRules(
        min_version=min_version,
        max_version=max_version,
        name=name,
        fields=FIELD_VERSIONS,
        types=TYPE_VERSIONS,
        required=REQUIRED_VERSIONS,
        values=VALUE_VERSIONS,
        scalar_types=SCALAR_TYPE_VERSIONS,
    )


@cache
def protobuf_rules(version: str) -> VersionRules:
    """Return the rules of protobuf at a wire version: its messages have versions of their own, not those of types."""
    return VersionRules(min_version=version, fields=FIELD_VERSIONS, required=REQUIRED_VERSIONS, values=VALUE_VERSIONS)
