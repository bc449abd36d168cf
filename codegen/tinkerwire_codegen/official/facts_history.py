"""The facts of any wire version, from the history of all that were read."""

from __future__ import annotations

import copy
from typing import Any

from tinkerwire_base.conversion.versioning import parse_version

Json = dict[str, Any]
FIELD_CHANGES = {"type_changes": "type", "default_changes": "default", "required_changes": "required"}


def restore_facts(history: Json, version: str) -> Json:
    """What a fact file of ``version`` says of types, endpoints, results and protobuf, taken from a history."""
    types = {name: _type_at(each, version) for name, each in history["types"].items() if _is_there(each, version)}
    endpoints = {
        name: _changed(each, version) for name, each in history["endpoints"].items() if _is_there(each, version)
    }
    futures = [
        {"request_type": name, "result": result}
        for name, each in history["futures"].items()
        if _is_there(each, version)
        for result in _changed({**each, "changes": _named(each.get("changes", []), "result")}, version)["result"]
    ]
    binary = history["proto_response_types"]
    binary = _changed({"types": binary["current"], "changes": _named(binary["changes"], "types")}, version)["types"]
    return {
        "version": version,
        "types": types,
        "endpoints": endpoints,
        "futures": futures,
        "proto": restore_proto(history["proto"], version),
        "proto_response_types": binary,
    }


def restore_proto(proto: Json, version: str) -> Json:
    """The messages and enums that the binary messages had at ``version``, in the form of a fact file."""
    messages = {}
    for name, message in proto["messages"].items():
        if _is_there(message, version):
            messages[name] = {
                "fields": {
                    field: _proto_field(each, version)
                    for field, each in message["fields"].items()
                    if _is_there(each, version)
                }
            }
    enums = {name: each["values"] for name, each in proto["enums"].items() if _is_there(each, version)}
    return {"messages": messages, "enums": enums}


def _is_there(node: Json, version: str) -> bool:
    now = parse_version(version)
    spans = node.get("presence") or [(node["first"], node["removed_in"])]
    return any(parse_version(first) <= now and (end is None or now < parse_version(end)) for first, end in spans)


def _type_at(node: Json, version: str) -> Json:
    found = _changed(node, version)
    if "fields" in found:
        found["fields"] = {
            name: _field_at(field, version) for name, field in found["fields"].items() if _is_there(field, version)
        }
    return found


def _field_at(field: Json, version: str) -> Json:
    found = {"default": "<none>", **field}
    for changes, key in FIELD_CHANGES.items():
        found = _changed({**found, "changes": _named(field.get(changes, []), key)}, version)
    return found


def _proto_field(field: Json, version: str) -> Json:
    found = field
    for change in _later(field.get("changes", []), version):
        found = change["from"]
    return {key: item for key, item in found.items() if key in ("number", "type", "optional", "oneof")}


def _changed(node: Json, version: str) -> Json:
    """A copy of ``node`` as it was before the changes that came after ``version``."""
    found = copy.deepcopy(node)
    for change in _later(found.pop("changes", []), version):
        if change["from"] is None and change["what"] in ("query", "request"):
            found.pop(change["what"], None)
        else:
            found[change["what"]] = change["from"]
    return found


def _later(changes: list[Json], version: str) -> list[Json]:
    """The changes after ``version``, newest first."""
    later = [change for change in changes if parse_version(change["version"]) > parse_version(version)]
    return sorted(later, key=lambda change: parse_version(change["version"]), reverse=True)


def _named(changes: list[Json], what: str) -> list[Json]:
    return [{**change, "what": what} for change in changes]
