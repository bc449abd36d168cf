"""Parts of operations that were added, removed, or made required or optional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .change import Change
from .signatures import SignaturePart

Json = dict[str, Any]

Pair = tuple[SignaturePart | None, SignaturePart | None]
PARAMETERS = ("query", "header", "cookie", "path")


def pair_parts(old: list[SignaturePart], new: list[SignaturePart]) -> list[Pair]:
    """Pair the parts of two versions of an operation; ranges of media types and statuses cover single ones."""
    before, after = ({(part.direction, part.key): part for part in side} for side in (old, new))
    pairs: list[Pair] = []
    for identity in sorted(before.keys() | after.keys()):
        first, second = before.get(identity), after.get(identity)
        if second is None:
            second = _find_cover(identity, after)
        elif first is None:
            first = _find_cover(identity, before)
        pairs.append((first, second))
    return pairs


def compare_presence(
    old: SignaturePart | None, new: SignaturePart | None, before: Json, after: Json
) -> Iterator[Change]:
    """Yield the change of a part that only one version has, or that is required in only one."""
    if old and new:
        yield from _compare_required(old, new)
    elif old:
        yield from _describe_removed(old, after)
    elif new:
        yield from _describe_added(new, before)


def compare_statuses(key: str, before: Json, after: Json) -> Iterator[Change]:
    """Yield the statuses that were added or removed."""
    old, new = before["responses"], after["responses"]
    gone = [status for status in sorted(old.keys() - new.keys()) if _range(status) not in new]
    fresh = [status for status in sorted(new.keys() - old.keys()) if _range(status) not in old]
    if before["x-reversed"]:
        for status in gone:
            level = "safe" if "default" in new else "risky"
            yield Change(level, "request", status, "the status is no longer listed; a server may reject it", [key])
        for status in fresh:
            yield Change("safe", "request", status, "the status is accepted now", [key])
        return
    for status in gone:
        level = "breaking" if status.startswith("2") else "safe"
        yield Change(level, "response", status, "the status is no longer returned", [key])
    for status in fresh:
        had_default = "default" in old
        level = "risky" if status.startswith(("2", "3")) or not had_default else "safe"
        yield Change(level, "response", status, "the status may be returned now", [key])


def _list_covers(status: str) -> list[str]:
    """Return a status, its range, and for errors the default response, which describes them if they are not listed."""
    default = ["default"] if status.startswith(("4", "5")) else []
    return list(dict.fromkeys((status, _range(status), *default)))


def _find_response(responses: Json, status: str) -> Json | None:
    """Return the response that describes a status."""
    return next((responses[cover] for cover in _list_covers(status) if cover in responses), None)


def _range(status: str) -> str:
    return f"{status[0]}XX" if status[:1].isdigit() else status


def _find_cover(identity: tuple[str, str], parts: dict[tuple[str, str], SignaturePart]) -> SignaturePart | None:
    """Return the part whose range of media types or statuses has the part of this identity."""
    direction, key = identity
    place, _, media = key.partition(" ")
    ranges = [media, f"{media.partition('/')[0]}/*", "*/*"] if "/" in media else [media]
    for outer in _list_covers(place):
        for candidate in ranges:
            part = parts.get((direction, f"{outer} {candidate}"))
            if part is not None and part.key != key:
                return part
    return None


def _compare_required(old: SignaturePart, new: SignaturePart) -> Iterator[Change]:
    if old.required == new.required or old.part.partition(" ")[0] == "body":
        return
    is_header = old.part.partition(" ")[0] not in PARAMETERS
    noun = "header" if is_header else "parameter"
    if old.direction == "request":
        level, reason = ("breaking", "is required now") if new.required else ("safe", "may be omitted now")
    else:
        level, reason = ("safe", "is always sent now") if new.required else ("breaking", "may be omitted now")
    yield Change(level, old.direction, old.part, f"the {noun} {reason}", [old.operation])


def _describe_removed(part: SignaturePart, after: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    operations = [part.operation]
    if kind == "body":
        has_body = bool(after.get("requestBody"))
        if part.direction == "request":
            reason = f"{name} is no longer accepted" if has_body else "a body is no longer accepted"
        else:
            reason = f"{name} is no longer sent" if has_body else "a body is no longer sent"
        yield Change("breaking", part.direction, "body", reason, operations)
    elif kind in PARAMETERS and part.direction == "request":
        reason = "the parameter was removed; a server ignores or rejects it"
        yield Change("risky", "request", part.part, reason, operations)
    elif kind in PARAMETERS:
        yield Change("breaking" if part.required else "risky", "response", part.part, "is no longer sent", operations)
    elif _find_response(after["responses"], kind) is not None:
        is_header, is_request = name.startswith("header "), part.direction == "request"
        level = "risky" if is_header and (is_request or not part.required) else "breaking"
        reason = "is no longer accepted" if is_request else "is no longer returned"
        yield Change(level, part.direction, part.part, reason, operations)


def _describe_added(part: SignaturePart, before: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    operations = [part.operation]
    if kind == "body":
        if part.direction == "request":
            yield Change("safe", "request", "body", f"{name} is accepted now", operations)
        else:
            yield Change("risky", "response", "body", f"{name} may be sent now", operations)
    elif kind in PARAMETERS and part.direction == "request":
        reason = "a new required parameter" if part.required else "a new optional parameter"
        yield Change("breaking" if part.required else "safe", "request", part.part, reason, operations)
    elif kind in PARAMETERS:
        yield Change("safe", "response", part.part, "a new parameter, which readers may ignore", operations)
    elif (response := _find_response(before["responses"], kind)) is not None:
        yield _describe_added_to_response(part, response, is_header=name.startswith("header "))


def _describe_added_to_response(part: SignaturePart, before: Json, *, is_header: bool) -> Change:
    has_body = bool(before.get("content"))
    if part.direction == "request" and is_header:
        level, reason = ("breaking", "a new required header") if part.required else ("safe", "a new optional header")
    elif part.direction == "request":
        level = "safe" if has_body else "risky"
        reason = "is accepted now" if has_body else "a body is accepted now; a server may require it"
    elif is_header:
        level, reason = "safe", "a new header, which readers may ignore"
    elif has_body:
        level, reason = "risky", "may be returned now; a client that does not accept it must not receive it"
    else:
        level, reason = "safe", "a body is returned now, although the old contract has no body"
    return Change(level, part.direction, part.part, reason, [part.operation])
