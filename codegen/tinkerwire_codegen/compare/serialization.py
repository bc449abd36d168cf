"""Changes of the way in which parameters, headers and parts of forms are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .change import Change
from .dialect import strip_annotations
from .merging import kinds_of
from .schemas import Schemas
from .signatures import SignaturePart, normalize_media_type

Json = dict[str, Any]

DEFAULT_STYLES = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}


def compare_serialization(old: Schemas, new: Schemas, before: SignaturePart, after: SignaturePart) -> Iterator[Change]:
    """Yield the changes of how the values of one place are written."""
    direction, place, operations = before.direction, before.part, [before.operation]
    if "in" in before.details:
        texts = [_describe_form(schemas, part) for schemas, part in ((old, before), (new, after))]
        if texts[0] != texts[1]:
            reason = f"values are written with {texts[1]} now, instead of {texts[0]}"
            yield Change("breaking", direction, place, reason, operations)
        if before.details.get("allowReserved", False) != after.details.get("allowReserved", False):
            reason = "reserved characters are written in another way now (allowReserved)"
            yield Change("risky", direction, place, reason, operations)
        yield from _compare_empty_values(before, after)
        if after.details.get("deprecated") is True and before.details.get("deprecated") is not True:
            yield Change("safe", direction, place, "it is deprecated now", operations)
    else:
        yield from _compare_encodings(before, after)


def _compare_empty_values(before: SignaturePart, after: SignaturePart) -> Iterator[Change]:
    allowed = [bool(part.details.get("allowEmptyValue", False)) for part in (before, after)]
    if allowed[0] and not allowed[1]:
        yield Change("breaking", before.direction, before.part, "an empty value is rejected now", [before.operation])
    elif allowed[1] and not allowed[0]:
        yield Change("safe", before.direction, before.part, "an empty value is accepted now", [before.operation])


def _describe_form(schemas: Schemas, part: SignaturePart) -> str:
    """Describe the form of a parameter or header; forms that write the same texts have the same description."""
    details = part.details
    if details.get("content"):
        return f"the media type {normalize_media_type(next(iter(details['content'])))}"
    style = details.get("style", DEFAULT_STYLES.get(details["in"], "simple"))
    explode = details.get("explode", style in ("form", "cookie"))
    kinds = _possible_kinds(schemas, schemas.select(part.schema), 0) & {"array", "object"}
    if not kinds:
        # One text is written the same in all styles of a query.
        return f"the style {style}" if details["in"] == "path" else "the style of single values"
    if kinds == {"array"} and (style == "simple" or (explode and style in ("form", "spaceDelimited", "pipeDelimited"))):
        return "the style simple" if style == "simple" else "the style form, exploded"
    return f"the style {style}{', exploded' if explode else ''}"


def _possible_kinds(schemas: Schemas, schema: Any, depth: int) -> frozenset[str]:
    merged = schemas.merge(strip_annotations(schema))
    if merged is False:
        return frozenset()
    kinds = kinds_of(merged)
    for part in merged.get("allOf", []) if depth < 4 else []:
        for key in ("anyOf", "oneOf"):
            if key in part:
                members = [_possible_kinds(schemas, member, depth + 1) for member in part[key]]
                kinds &= frozenset().union(*members)
    return kinds


def _compare_encodings(before: SignaturePart, after: SignaturePart) -> Iterator[Change]:
    old, new = (part.details.get("encoding") or {} for part in (before, after))
    for name in sorted(old.keys() | new.keys()):
        first, second = (_normalize_encoding(side.get(name, {})) for side in (old, new))
        if first == second:
            continue
        place, operations = f"{before.part} {name}", [before.operation]
        changed = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
        types = [set(side.get("contentType", ())) for side in (first, second)]
        if changed == ["contentType"] and types[0] and types[1]:
            is_request = before.direction == "request"
            lost, won = types[0] - types[1], types[1] - types[0]
            broken, harmless = (lost, won) if is_request else (won, lost)
            verbs = ("no longer accepted", "accepted now") if is_request else ("possible now", "no longer returned")
            for level, media_types, verb in (("breaking", broken, verbs[0]), ("safe", harmless, verbs[1])):
                if media_types:
                    reason = f"the media type {', '.join(sorted(media_types))} is {verb}"
                    yield Change(level, before.direction, place, reason, operations)
        else:
            reason = f"not understood: encoding ({', '.join(changed)}); this part may be written in another way now"
            yield Change("risky", before.direction, place, reason, operations)


def _normalize_encoding(encoding: Json) -> Json:
    result: Json = {key: json.dumps(item, sort_keys=True) for key, item in encoding.items() if not key.startswith("x-")}
    if "contentType" in encoding:
        result["contentType"] = [normalize_media_type(media) for media in str(encoding["contentType"]).split(",")]
    return result
