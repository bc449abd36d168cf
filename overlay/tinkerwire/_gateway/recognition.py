"""Recognition of the wire version that a client speaks, by what it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from tinkerwire_base.call import JSON
from tinkerwire_base.conversion.versioning import parse_version, version_before
from tinkerwire_generated.availability import BODY_VERSIONS, NEWEST, OLDEST_MODELS_VERSION, VERSIONS

from .._connection.call_codec import WIRE_HEADER

VERSION_HEADERS = ("x-stainless-package-version", "x-sdk-version")
"""Headers of official SDKs with their version."""
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,3}")
_AGENT = re.compile(rf"\b(?:Async)?Tinker/Python ({_VERSION.pattern})")
LAST_JSON_BATCHES = version_before(VERSIONS, BODY_VERSIONS["forward_backward"][JSON][1] or NEWEST)
"""The newest wire version whose batches may be JSON."""


@attrs.frozen
class ClientWire:
    """The wire versions that a client may speak, the likeliest first."""

    versions: tuple[str, ...]
    is_known: bool
    """True if the client has named its version."""


UNKNOWN = ClientWire((NEWEST, LAST_JSON_BATCHES, OLDEST_MODELS_VERSION), is_known=False)
"""The wire of a client that names no version: the form of a request decides."""


@lru_cache(maxsize=1024)
def contract_version(version: str) -> str:
    """Return the version of the contract that describes an SDK version: the newest that is not newer.

    Raises:
        ValueError: the text is not a version, or the models do not fit it.
    """
    match = _VERSION.match(version)
    if match is None:
        raise ValueError(f"{version!r} is not a version; expected numbers such as {NEWEST}")
    wanted = parse_version(match[0])
    if wanted < parse_version(OLDEST_MODELS_VERSION):
        raise ValueError(f"wire version must be {OLDEST_MODELS_VERSION} or newer, got {match[0]}")
    return next(known for known in reversed(VERSIONS) if parse_version(known) <= wanted)


def recognize(headers: Mapping[str, str]) -> ClientWire:
    """Return the wire of the client that sent these headers; :data:`UNKNOWN` if they name no version.

    Args:
        headers: headers by lower-case name.

    Raises:
        ValueError: the client is older than the oldest version of the models.
    """
    own = headers.get(WIRE_HEADER)
    if own is not None:
        return _read_range(own)
    for name in VERSION_HEADERS:
        version = headers.get(name)
        if version is not None and names_version(version):
            return _exactly(version)
    match = _AGENT.search(headers.get("user-agent", ""))
    return _exactly(match[1]) if match else UNKNOWN


def names_version(text: Any) -> bool:
    """Return whether a text starts with a version; some clients name none, or only a word."""
    return isinstance(text, str) and _VERSION.match(text) is not None


def exact_wire(version: str) -> ClientWire:
    """Return the wire of a client whose version is certain; errors are those of :func:`contract_version`."""
    return _exactly(version)


@lru_cache(maxsize=1024)
def _exactly(version: str) -> ClientWire:
    older = contract_version(version)
    newer = _next_patch(version)
    return ClientWire((older,) if newer is None else (newer, older), is_known=True)


def _next_patch(version: str) -> str | None:
    """Return the contract's next version with the same major and minor numbers; None if it has the version itself.

    The contract has only the last releases of each minor version. Most changes come with the first release of a minor
    version, so that a release in between is more like the next one than like those of the minor version before.
    """
    match = _VERSION.match(version)
    wanted = parse_version(match[0]) if match else ()
    if parse_version(contract_version(version)) == wanted:
        return None
    newer = (known for known in VERSIONS if parse_version(known) > wanted)
    return next((known for known in newer if parse_version(known)[:2] == wanted[:2]), None)


@lru_cache(maxsize=1024)
def _read_range(text: str) -> ClientWire:
    """Return the wire of a tinkerwire client, which knows its server's version only as a range."""
    oldest, _, newest = text.partition("-")
    versions = [contract_version(newest or oldest)]
    if newest and parse_version(oldest) <= parse_version(LAST_JSON_BATCHES) < parse_version(newest):
        versions.append(LAST_JSON_BATCHES)
    return ClientWire(tuple(versions), is_known=True)
