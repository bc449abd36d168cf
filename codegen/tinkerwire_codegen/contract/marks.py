"""The marks of a contract: their values, and the versions that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from tinkerwire_base.conversion.versioning import Version, parse_version

from .structure import Part

VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")
Problem = tuple[str, str]
"""The place of an error, and its text."""


def is_version(value: Any) -> bool:
    """Return whether a value is the text of a version."""
    return isinstance(value, str) and bool(VERSION.fullmatch(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_versions(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_version, value))


def _are_versions_by_value(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_version, value.values()))


def _are_gaps(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(gap, dict) and gap.keys() == {"since", "until"} and all(map(is_version, gap.values()))
        for gap in value
    )


def _are_earlier_forms(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and {"until"} <= entry.keys() <= {"until", "required", "schema"}
        and is_version(entry["until"])
        and isinstance(entry.get("required", True), bool)
        and isinstance(entry.get("schema", {}), dict)
        for entry in value
    )


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and _is_text(entry.get("message"))
        and entry.keys() <= {"message", "x-since", "x-until"}
        and all(is_version(entry[key]) for key in entry.keys() - {"message"})
        for entry in value
    )


_VERSION_TEXT = "the text of a version, such as 0.16.1; put a number such as 0.30 in quotes"
_VERSIONS_TEXT = "a mapping of values to texts of versions, such as {cispo: 0.6.0}"
_HISTORY_TEXT = "a list of mappings with until (the text of a version), required (true or false) and schema (a mapping)"

MARKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("x-since", "x-until", "x-models-since", "x-contract-version"), (is_version, _VERSION_TEXT)),
    **dict.fromkeys(("x-enum-since", "x-enum-until"), (_are_versions_by_value, _VERSIONS_TEXT)),
    "x-absent": (_are_gaps, "a list of gaps, such as [{since: 0.3.0, until: 0.4.0}]"),
    "x-history": (_are_earlier_forms, _HISTORY_TEXT),
    "x-versions": (_are_versions, "a list of texts of versions; put a number such as 0.30 in quotes"),
    "x-dataclass": (lambda value: value in ("positional", "keyword"), "positional or keyword"),
    **dict.fromkeys(
        ("x-untagged", "x-protobuf-only", "x-undeclared", "x-multi-segment"), (_is_switch, "true or false")
    ),
    **dict.fromkeys(
        ("x-mixin", "x-example", "x-array", "x-sdk-name", "x-result", "x-protobuf-operation"), (_is_text, "a text")
    ),
    **dict.fromkeys(("x-families", "x-essential", "x-methods"), (_are_texts, "a list of texts")),
    **dict.fromkeys(("x-stated", "x-constants", "x-headers"), (_is_mapping, "a mapping")),
    "x-protobuf-messages": (_are_messages, "a list of mappings with message, and x-since or x-until"),
}
"""The marks by name: the check of their values, and what the check expects."""


def find_wrong_marks(part: Part, newest: str) -> Iterator[Problem]:
    """Yield unknown marks, values of a wrong type, and versions in the wrong order, of one node.

    Args:
        part: the node and its place.
        newest: the newest version of the contract.
    """
    if not isinstance(part.node, dict):
        return
    for name, value in part.node.items():
        if name in MARKS:
            is_valid, expected = MARKS[name]
            if not is_valid(value):
                yield f"{part.place}/{name}", f"expected {expected}, got {value!r:.100}"
        elif name.lower().startswith(("x-", "x_")):
            close = get_close_matches(name.lower().replace("_", "-"), MARKS, n=1)
            hint = f"did you mean {close[0]}?" if close else "schema/README.md lists the marks"
            yield f"{part.place}/{name}", f"the mark {name} is unknown; {hint}"
    yield from _find_wrong_order(part, newest)


def _find_wrong_order(part: Part, newest: str) -> Iterator[Problem]:
    """Yield an end before a start, and versions that the contract does not reach."""
    last = parse_version(newest) if is_version(newest) else None
    start = max(filter(None, (_parse_since(owner.node) for owner in (*part.owners, part))), default=None)
    for steps, since, until in _list_ranges(part.node, start):
        place, version = f"{part.place}/{steps}", until or since
        if since and until and until <= since:
            yield place, f"{_render(until)} must be newer than the start, {_render(since)}"
        if last and version and version > last:
            yield place, f"{_render(version)} must not be newer than info.version, {newest}"


def _list_ranges(node: Any, start: Version | None) -> Iterator[tuple[str, Version | None, Version | None]]:
    """Yield the place, the start and the end of each range of versions; the end is None for a mark of a start."""
    values = {name: value for name, value in node.items() if name in MARKS and MARKS[name][0](value)}
    if "x-since" in values:
        yield "x-since", parse_version(values["x-since"]), None
    if "x-until" in values:
        yield "x-until", start, parse_version(values["x-until"])
    for index, entry in enumerate(values.get("x-history", [])):
        yield f"x-history/{index}/until", start, parse_version(entry["until"])
    for index, gap in enumerate(values.get("x-absent", [])):
        yield f"x-absent/{index}/until", parse_version(gap["since"]), parse_version(gap["until"])
    begins, ends = values.get("x-enum-since", {}), values.get("x-enum-until", {})
    for name, version in begins.items():
        yield f"x-enum-since/{name}", parse_version(version), None
    for name, version in ends.items():
        since = parse_version(begins[name]) if name in begins else start
        yield f"x-enum-until/{name}", since, parse_version(version)


def _parse_since(node: Any) -> Version | None:
    since = node.get("x-since") if isinstance(node, dict) else None
    return parse_version(since) if isinstance(since, str) and is_version(since) else None


def _render(version: Version) -> str:
    return ".".join(map(str, version))
