"""Components for the parts that an exported document repeats, which make it smaller."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Replace = Callable[[str, str, Json], Json]


def share_parts(document: Json) -> Json:
    """Move repeated headers, responses and parameters of ``document`` to its components."""
    counts: Counter[str] = Counter()

    def count(section: str, _: str, part: Json) -> Json:
        counts[_key(section, part)] += 1
        return part

    for response in _list_responses(document):
        _replace_headers(response, count)
    _replace_parts(document, count)
    components = _Components(document.setdefault("components", {}))

    def share(section: str, name: str, part: Json) -> Json:
        repeated = counts[_key(section, part)] > 1 and "$ref" not in part
        return components.add(section, name, part) if repeated else part

    _replace_parts(document, share)
    # Headers come last, because the keys of responses were counted with their headers.
    for response in _list_responses(document):
        _replace_headers(response, share)
    return document


class _Components:
    def __init__(self, components: Json) -> None:
        self._components = components
        self._references: dict[str, str] = {}

    def add(self, section: str, name: str, part: Json) -> Json:
        """Return the reference to a part, which is in the components once."""
        key = _key(section, part)
        if key not in self._references:
            parts = self._components.setdefault(section, {})
            base = re.sub(r"[^A-Za-z0-9._-]", "_", name)
            names = [base, *(f"{base}-{number}" for number in range(2, len(parts) + 3))]
            free = next(candidate for candidate in names if candidate not in parts)
            parts[free] = part
            self._references[key] = f"#/components/{section}/{free}"
        return {"$ref": self._references[key]}


def _key(section: str, part: Json) -> str:
    return section + json.dumps(part, sort_keys=True)


def _replace_parts(document: Json, replace: Replace) -> None:
    for operation in _list_operations(document):
        if "parameters" in operation:
            operation["parameters"] = [
                replace("parameters", part.get("name", ""), part) for part in operation["parameters"]
            ]
        responses = operation["responses"]
        operation["responses"] = {
            status: replace("responses", f"Response{status.capitalize()}", part) for status, part in responses.items()
        }


def _replace_headers(response: Json, replace: Replace) -> None:
    if "headers" in response:
        response["headers"] = {name: replace("headers", name, part) for name, part in response["headers"].items()}


def _list_operations(document: Json) -> Iterator[Json]:
    for item in document["paths"].values():
        yield from (
            operation for operation in item.values() if isinstance(operation, dict) and "responses" in operation
        )


def _list_responses(document: Json) -> Iterator[Json]:
    yield from document.get("components", {}).get("responses", {}).values()
    for operation in _list_operations(document):
        yield from operation["responses"].values()
