"""Edits of the contract that record differences: the place, and the new node there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..comparison import Difference
from .contract_source import ContractSource, Json, Place, place_below
from .operation_edits import OperationEditBuilder
from .schema_builder import SchemaBuilder, build_field, build_type, to_camel_case

TIME_MARKS = frozenset({"description", "x-since", "x-until", "x-history"})


@dataclass
class Edit:
    """New nodes of one file of the contract, by place."""

    file: str
    nodes: dict[Place, Any] = field(default_factory=dict)


class EditBuilder:
    """Builder of the edits that record differences as changes of one wire version."""

    def __init__(self, source: ContractSource, facts: Json) -> None:
        """Initialize with the contract to edit and the facts of the release."""
        self._source, self._facts, self._version = source, facts, source.version
        self._operations = OperationEditBuilder(source, facts)

    def build(self, difference: Difference) -> Edit:
        """Build the edit for one difference; it has no nodes if a person must decide first."""
        handlers: dict[str, Callable[[Difference, Edit], None]] = {
            "field": self._edit_field,
            "value": self._edit_value,
            "member": self._edit_member,
            "required": self._edit_required,
            "default": self._edit_default,
            "strictness": self._edit_strictness,
            "target": self._edit_target,
            "discriminator": self._edit_discriminator,
            "result": self._edit_result,
        }
        edit = Edit("")
        is_of_operation = difference.where.partition(" ")[2].startswith("/") or difference.kind == "endpoint"
        if is_of_operation:
            edit.file, edit.nodes = self._operations.build(difference)
        elif difference.kind == "type":
            handler = self._edit_type if difference.where == "types" else self._edit_field_type
            handler(difference, edit)
        elif difference.kind in handlers:
            handlers[difference.kind](difference, edit)
        return edit

    def _edit_type(self, difference: Difference, edit: Edit) -> None:
        if difference.theirs is None:
            edit.file, place, node = self._source.find_schema(difference.ours)
            edit.nodes[place] = {**node, "x-until": self._version}
            return
        name, builder = difference.theirs, SchemaBuilder()
        _, place, _ = self._source.find_schema(name)
        edit.nodes[place] = build_type(self._facts["types"][name], name, self._version, builder)
        self._add_components(edit, builder)

    def _edit_field(self, difference: Difference, edit: Edit) -> None:
        owner = difference.where
        if difference.theirs is None:
            edit.file, place, node = self._source.find_field(owner, difference.ours)
            edit.nodes[place] = {**node, "x-until": self._version}
            return
        name, builder = difference.theirs, SchemaBuilder()
        edit.file, place, node = self._source.find_schema(owner)
        fact = self._facts["types"][owner]["fields"][name]
        detail = build_field(fact, f"{owner}{to_camel_case(name)}", builder)
        edit.nodes[place_below(place, "properties", name)] = {"x-since": self._version, **detail}
        if fact["required"]:
            edit.nodes[place_below(place, "required")] = [*node.get("required", []), name]
        self._add_components(edit, builder)

    def _edit_value(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.find_schema(difference.where)
        added = difference.theirs is not None
        key = "x-enum-since" if added else "x-enum-until"
        value = difference.theirs if added else difference.ours
        if added:
            edit.nodes[place_below(place, "enum")] = [
                *(existing for existing in node.get("enum", []) if existing != value),
                value,
            ]
        edit.nodes[place_below(place, key)] = {**node.get(key, {}), value: self._version}

    def _edit_member(self, difference: Difference, edit: Edit) -> None:
        name = difference.theirs if difference.theirs is not None else difference.ours
        edit.file, place, node = self._source.find_schema(difference.where)
        target = {"$ref": "#/components/schemas/" + self._source.find_schema(name)[1][-1]}
        members = node.get("anyOf", [])
        if difference.theirs is not None:
            edit.nodes[place_below(place, "anyOf")] = [*members, {**target, "x-since": self._version}]
        else:
            end = {"x-until": self._version}
            edit.nodes[place_below(place, "anyOf")] = [
                {**member, **end} if target.items() <= member.items() else member for member in members
            ]

    def _edit_result(self, difference: Difference, edit: Edit) -> None:
        added = Difference("member", "FutureRetrieveResponse", None, difference.theirs.removesuffix("#inmem"))
        self._edit_member(added, edit)

    def _edit_required(self, difference: Difference, edit: Edit) -> None:
        owner, _, name = difference.where.rpartition(".")
        edit.file, place, detail = self._source.find_field(owner, name)
        owner_place, key = place[:-2], place[-1]
        required = [
            required_name
            for required_name in self._source.find_schema(owner)[2].get("required", [])
            if required_name != key
        ]
        fact = self._facts["types"][owner]["fields"][name]
        default = {"default": fact["default"]} if "default" in fact else {}
        earlier = _without_marks(detail) if default and "default" not in detail else {}
        edit.nodes[place] = {**self._with_history(detail, earlier, required=bool(difference.ours)), **default}
        edit.nodes[place_below(owner_place, "required")] = [*required, key] if difference.theirs else required

    def _edit_default(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, detail = self._source.find_field(*_split(difference.where))
        earlier = {"default": detail["default"]} if "default" in detail else _without_marks(detail)
        edit.nodes[place] = {**self._with_history(detail, earlier), "default": difference.theirs}

    def _edit_field_type(self, difference: Difference, edit: Edit) -> None:
        owner, name = _split(difference.where)
        edit.file, place, detail = self._source.find_field(owner, name)
        builder = SchemaBuilder()
        schema = build_field(self._facts["types"][owner]["fields"][name], f"{owner}{to_camel_case(name)}", builder)
        marks = {key: value for key, value in detail.items() if key in TIME_MARKS or key.startswith("x-sdk")}
        edit.nodes[place] = {**schema, **self._with_history(marks, _without_marks(detail))}
        self._add_components(edit, builder)

    def _edit_strictness(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.find_schema(difference.where)
        earlier = {"additionalProperties": node.get("additionalProperties", True)}
        edit.nodes[place_below(place, "additionalProperties")] = not difference.theirs
        edit.nodes[place_below(place, "x-history")] = self._with_history(node, earlier)["x-history"]

    def _edit_target(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.find_schema(difference.where)
        builder = SchemaBuilder()
        schema = builder.build(self._facts["types"][difference.where]["target"], difference.where)
        marks = {key: value for key, value in node.items() if key in TIME_MARKS}
        edit.nodes[place] = {**self._with_history(marks, _without_marks(node)), **schema}
        self._add_components(edit, builder)

    def _edit_discriminator(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.find_schema(difference.where)
        union = {key: value for key, value in node.items() if key not in ("discriminator", "x-untagged")}
        if difference.theirs is not None:
            edit.nodes[place] = {**union, "discriminator": {"propertyName": difference.theirs}}
        else:
            members = [member for member in node.get("anyOf", []) if member.get("x-since") != self._version]
            earlier = {"anyOf": members, "discriminator": node["discriminator"]}
            edit.nodes[place] = self._with_history({**union, "x-untagged": True}, earlier)

    def _with_history(self, node: Json, earlier: Json, *, required: bool | None = None) -> Json:
        """Add an entry of history to a node: the earlier form, until this version."""
        entry: Json = {"until": self._version}
        if required is not None:
            entry["required"] = required
        return {**node, "x-history": [*node.get("x-history", []), {**entry, "schema": earlier}]}

    def _add_components(self, edit: Edit, builder: SchemaBuilder) -> None:
        for name, node in builder.components.items():
            edit.nodes[("components", "schemas", name)] = {"x-since": self._version, "x-undeclared": True, **node}


def _split(where: str) -> tuple[str, str]:
    owner, _, name = where.rpartition(".")
    return owner, name


def _without_marks(node: Json) -> Json:
    return {key: value for key, value in node.items() if key not in TIME_MARKS and not key.startswith("x-sdk")}
