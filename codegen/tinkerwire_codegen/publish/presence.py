"""Wire versions that have each operation, parameter, header, type and field, as a note in its description."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..contract.evidence import MARK as EVIDENCE

Json = dict[str, Any]
Place = tuple[str, ...]
UNCOMPARED = ("description", EVIDENCE)


class Presence:
    """The documents of all versions as one history: the versions that have each place, and each form of it."""

    def __init__(self, documents: Mapping[str, Json]) -> None:
        """Read the documents, which are in the order of their versions."""
        self._versions = list(documents)
        self._forms: dict[Place, dict[str, str]] = {}
        for version, document in documents.items():
            for place, _, form in _list_places(document):
                self._forms.setdefault(place, {})[version] = json.dumps(form, sort_keys=True)
            for name, schema in _list_schemas(document):
                for value in schema.get("enum", []):
                    self._forms.setdefault(_value_place(name, value), {})[version] = ""

    def describe(self, place: Place) -> str:
        """Describe the versions that have a place: "Since 0.3.0, until 0.7.0, changed in 0.4.1."."""
        forms = self._forms[place]
        notes: list[str] = []
        changed: list[str] = []
        was: str | None = None
        for version in self._versions:
            form = forms.get(version)
            if form is not None and was is None:
                notes.append(f"since {version}")
            elif form is None and was is not None:
                notes.append(f"until {version}")
            elif form != was:
                changed.append(version)
            was = form
        if changed:
            notes.append(f"changed in {', '.join(changed)}")
        text = ", ".join(notes)
        return f"{text[0].upper()}{text[1:]}."

    def annotate(self, document: Json) -> Json:
        """Append the note on each place to its description in ``document``.

        A type lists its values that are not as old as the type.
        """
        for place, node, _ in _list_places(document):
            text = node.get("description", "")
            separator = "\n\n" if "\n" in text else " "
            node["description"] = f"{text}{separator}*{self.describe(place)}*".lstrip()
        for name, schema in _list_schemas(document):
            for value in schema.get("enum", []):
                note = self.describe(_value_place(name, value))
                if note != f"Since {self._first(('type', name))}.":
                    schema["description"] += f"\n\n`{json.dumps(value, ensure_ascii=False)}`: *{note}*"
        return document

    def _first(self, place: Place) -> str:
        return next(version for version in self._versions if version in self._forms[place])


def _list_places(document: Json) -> Iterator[tuple[Place, Json, Any]]:
    """Yield the parts of a document that have versions: place, node, and what counts as its form."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not isinstance(operation, dict) or "responses" not in operation:
                continue
            yield ("operation", method, path), operation, None
            for parameter in operation.get("parameters", []):
                place = ("parameter", method, path, parameter["in"], parameter["name"])
                yield place, parameter, _reduce(parameter)
            for status, response in operation["responses"].items():
                yield ("response", method, path, status), response, None
                for name, header in response.get("headers", {}).items():
                    yield ("header", method, path, status, name), header, _reduce(header)
    for name, schema in _list_schemas(document):
        rules = {key: value for key, value in schema.items() if key not in ("properties", "required")}
        yield ("type", name), schema, _reduce(rules)
        for field, node in schema.get("properties", {}).items():
            if isinstance(node, dict):
                yield ("field", name, field), node, [field in schema.get("required", []), _reduce(node)]


def _list_schemas(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield the named schemas; boolean ones have no place for a note."""
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        if isinstance(schema, dict):
            yield name, schema


def _value_place(name: str, value: Any) -> Place:
    return "value", name, json.dumps(value, sort_keys=True)


def _reduce(node: Any) -> Any:
    """Return a node without texts that describe it."""
    if isinstance(node, list):
        return [_reduce(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _reduce(value) for key, value in node.items() if key not in UNCOMPARED}
