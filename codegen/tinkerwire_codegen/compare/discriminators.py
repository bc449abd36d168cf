"""Changes of the tags that select the member of a union."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .change import Change
from .schemas import Equality, Schemas

Json = dict[str, Any]


def compare_discriminators(
    old: Schemas, new: Schemas, equality: Equality, before: Json, after: Json, where: str, reported: set[str]
) -> Iterator[Change]:
    """Yield the changes of the discriminator of one union; ``reported`` are places whose members changed."""
    direction = old.direction
    names = [_property_name(schema) for schema in (before, after)]
    if names[0] == names[1] == "":
        return
    if not names[1]:
        yield Change("risky", direction, where, f"the property {names[0]} no longer selects the member of the union")
    elif not names[0]:
        is_sent = all(_requires(old, target, names[1]) for target in _members(before))
        reason = f"the property {names[1]} selects the member of the union now"
        yield Change("safe" if is_sent or direction == "response" else "risky", direction, where, reason)
    elif names[0] != names[1]:
        reason = f"the property {names[1]} selects the member of the union now, instead of {names[0]}"
        yield Change("breaking", direction, where, reason)
    else:
        yield from _compare_tags(old, new, equality, before, after, where, is_reported=where in reported)


def _compare_tags(
    old: Schemas, new: Schemas, equality: Equality, before: Json, after: Json, where: str, *, is_reported: bool
) -> Iterator[Change]:
    direction = old.direction
    old_tags, new_tags = _list_tags(old, before), _list_tags(new, after)
    for tag in sorted(old_tags.keys() | new_tags.keys()):
        text = json.dumps(tag, ensure_ascii=False)
        if tag in old_tags and tag in new_tags:
            targets = old_tags[tag], new_tags[tag]
            is_same = targets[0] == targets[1] or equality.is_equal({"$ref": targets[0]}, {"$ref": targets[1]})
            if not is_same:
                names = [target.rpartition("/")[2] for target in targets]
                yield Change(
                    "breaking", direction, where, f"the tag {text} means {names[1]} now, instead of {names[0]}"
                )
        elif is_reported:
            continue  # the member itself is new or gone
        elif direction == "request":
            is_gone = tag in old_tags
            verb = "is rejected now" if is_gone else "is accepted now"
            yield Change("breaking" if is_gone else "safe", direction, where, f"the tag {text} {verb}")
        else:
            is_new = tag in new_tags
            verb = "may be returned now" if is_new else "is no longer returned"
            yield Change("breaking" if is_new else "safe", direction, where, f"the tag {text} {verb}")


def _property_name(schema: Json) -> str:
    discriminator = schema.get("discriminator")
    return str(discriminator.get("propertyName", "")) if isinstance(discriminator, dict) else ""


def _members(schema: Json) -> list[str]:
    members = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    return [member["$ref"] for member in members if isinstance(member, dict) and "$ref" in member]


def _list_tags(schemas: Schemas, schema: Json) -> dict[str, str]:
    """Return the tags of a union with the members they select: mapped, of the member's property, or its name."""
    tags = {str(tag): target for tag, target in schema["discriminator"].get("mapping", {}).items()}
    for target in _members(schema):
        if target not in tags.values():
            own = _own_tags(schemas, target, _property_name(schema)) or [target.rpartition("/")[2]]
            tags |= {str(tag): target for tag in own}
    return tags


def _own_tags(schemas: Schemas, target: str, name: str) -> list[Any]:
    member = schemas.merge({"$ref": target})
    tag = schemas.merge(member.get("properties", {}).get(name, True)) if isinstance(member, dict) else False
    return list(tag.get("enum", [])) if isinstance(tag, dict) else []


def _requires(schemas: Schemas, target: str, name: str) -> bool:
    member = schemas.merge({"$ref": target})
    return member is not False and name in member.get("required", []) and bool(_own_tags(schemas, target, name))
