"""Changes of the credentials that an operation needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .change import Change

Json = dict[str, Any]

Credential = tuple[str, frozenset[str]]
"""A scheme in words, and its scopes."""
Requirement = frozenset[Credential]
"""Credentials that are needed together; none for requests without credentials."""


def compare_security(key: str, old: Json, new: Json, before: Json, after: Json) -> Iterator[Change]:
    """Yield the changes of the credentials of one operation."""
    old_ways, new_ways = list_requirements(old, before), list_requirements(new, after)
    gone = [way for way in old_ways if not any(_suffices(way, other) for other in new_ways)]
    fresh = [way for way in new_ways if not any(_suffices(other, way) for other in old_ways)]
    news = [way for way in new_ways if not any(_suffices(way, other) for other in old_ways)]
    for way in gone:
        needed = " or ".join(_describe(other) for other in new_ways)
        yield Change("breaking", "request", "security", f"{_describe(way)} no longer suffices; {needed} does", [key])
    if not gone:
        for way in new_ways:
            if way not in old_ways and (way in news or way in fresh):
                yield Change("safe", "request", "security", f"{_describe(way)} suffices now", [key])
    yield from _compare_details(key, old, new, before, after)


def list_requirements(document: Json, operation: Json) -> list[Requirement]:
    """Return the alternative credentials of an operation."""
    requirements = operation.get("security", document.get("security"))
    schemes = document.get("components", {}).get("securitySchemes", {})
    if not requirements:
        return [frozenset()]
    return [
        frozenset((_describe_scheme(schemes.get(name), name), frozenset(scopes or ())) for name, scopes in item.items())
        for item in requirements
    ]


def _suffices(sent: Requirement, needed: Requirement) -> bool:
    """Report whether a client that sends some credentials satisfies a requirement."""
    return all(any(name == other and scopes <= other_scopes for other, other_scopes in sent) for name, scopes in needed)


def _describe_scheme(scheme: Any, name: str) -> str:
    if not isinstance(scheme, dict):
        return f"the undefined scheme {name}"
    kind = scheme.get("type")
    if kind == "apiKey":
        place = scheme.get("in")
        key = scheme.get("name", "")
        return f"the key in the {place} {key.lower() if place == 'header' else key}"
    if kind == "http":
        return f"HTTP {str(scheme.get('scheme', '')).lower()} authentication"
    if kind == "oauth2":
        return "a token of OAuth 2"
    if kind == "openIdConnect":
        return f"a token of {scheme.get('openIdConnectUrl')}"
    return "a client certificate" if kind == "mutualTLS" else f"the scheme {json.dumps(scheme, sort_keys=True)}"


def _describe(way: Requirement) -> str:
    texts = [name + (f" with {', '.join(sorted(scopes))}" if scopes else "") for name, scopes in sorted(way, key=str)]
    return " and ".join(texts) if texts else "a request without credentials"


def _compare_details(key: str, old: Json, new: Json, before: Json, after: Json) -> Iterator[Change]:
    """Yield the changes of schemes that keep their kind, such as addresses for tokens."""
    sides = [_oauth_schemes(document, operation) for document, operation in ((old, before), (new, after))]
    if not (sides[0] and sides[1]):
        return
    texts = [sorted(json.dumps(scheme, sort_keys=True) for scheme in side) for side in sides]
    if texts[0] != texts[1]:
        yield Change("risky", "request", "security", "the flows or addresses of OAuth 2 are others now", [key])


def _oauth_schemes(document: Json, operation: Json) -> list[Any]:
    requirements = operation.get("security", document.get("security")) or []
    schemes = document.get("components", {}).get("securitySchemes", {})
    found = [schemes.get(name) for item in requirements for name in item]
    return [
        {name: {k: v for k, v in flow.items() if k.endswith("Url")} for name, flow in scheme.get("flows", {}).items()}
        for scheme in found
        if isinstance(scheme, dict) and scheme.get("type") == "oauth2"
    ]
