"""The facts of any wire version, restored from the history of all versions that were read."""

from __future__ import annotations

import copy
from typing import Any

from tinkerwire_base.conversion.versioning import parse_version

Json = dict[str, Any]
FIELD_CHANGES = {"type_changes": "type", "default_changes": "default", "required_changes": "required"}


def restore_facts(history: Json, version: str) -> Json:
    """Restore the types, endpoints, results and protobuf messages of ``version`` from a history."""
    types = {
        name: _restore_type(entry, version) for name, entry in history["types"].items() if _is_present(entry, version)
    }
    endpoints = {
        name: _undo_changes(entry, version)
        for name, entry in history["endpoints"].items()
        if _is_present(entry, version)
    }
    futures = [
        {"request_type": name, "result": result}
        for name, entry in history["futures"].items()
        if _is_present(entry, version)
        for result in _undo_changes({**entry, "changes": _label_changes(entry.get("changes", []), "result")}, version)[
            "result"
        ]
    ]
    results = history["proto_response_types"]
    results = _undo_changes(
        {"types": results["current"], "changes": _label_changes(results["changes"], "types")}, version
    )["types"]
    return {
        "version": version,
        "types": types,
        "endpoints": endpoints,
        "futures": futures,
        "proto": restore_proto(history["proto"], version),
        "proto_response_types": results,
    }


def restore_proto(proto: Json, version: str) -> Json:
    """Restore the protobuf messages and enums of ``version`` in the form of a fact file."""
    messages = {}
    for name, message in proto["messages"].items():
        if _is_present(message, version):
            messages[name] = {
                "fields": {
                    field: _restore_proto_field(entry, version)
                    for field, entry in message["fields"].items()
                    if _is_present(entry, version)
                }
            }
    enums = {name: entry["values"] for name, entry in proto["enums"].items() if _is_present(entry, version)}
    return {"messages": messages, "enums": enums}


def _is_present(node: Json, version: str) -> bool:
    now = parse_version(version)
    spans = node.get("presence") or [(node["first"], node["removed_in"])]
    return any(parse_version(first) <= now and (end is None or now < parse_version(end)) for first, end in spans)


def _restore_type(node: Json, version: str) -> Json:
    type_ = _undo_changes(node, version)
    if "fields" in type_:
        type_["fields"] = {
            name: _restore_field(field, version)
            for name, field in type_["fields"].items()
            if _is_present(field, version)
        }
    return type_


def _restore_field(field: Json, version: str) -> Json:
    restored = {"default": "<none>", **field}
    for changes, key in FIELD_CHANGES.items():
        restored = _undo_changes({**restored, "changes": _label_changes(field.get(changes, []), key)}, version)
    return restored


def _restore_proto_field(field: Json, version: str) -> Json:
    restored = field
    for change in _list_later_changes(field.get("changes", []), version):
        restored = change["from"]
    return {key: item for key, item in restored.items() if key in ("number", "type", "optional", "oneof")}


def _undo_changes(node: Json, version: str) -> Json:
    """Copy ``node`` and undo the changes that came after ``version``."""
    restored = copy.deepcopy(node)
    for change in _list_later_changes(restored.pop("changes", []), version):
        if change["from"] is None and change["what"] in ("query", "request"):
            restored.pop(change["what"], None)
        else:
            restored[change["what"]] = change["from"]
    return restored


def _list_later_changes(changes: list[Json], version: str) -> list[Json]:
    """Return the changes after ``version``, newest first."""
    selected = [change for change in changes if parse_version(change["version"]) > parse_version(version)]
    return sorted(selected, key=lambda change: parse_version(change["version"]), reverse=True)


def _label_changes(changes: list[Json], kind: str) -> list[Json]:
    return [{**change, "what": kind} for change in changes]
