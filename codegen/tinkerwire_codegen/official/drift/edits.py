"""How each difference would be written into the contract: the place, and what should stand there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..comparison import Difference
from .contract_source import ContractSource, Json, Place, place_below
from .operation_edits import OperationEditBuilder
from .schema_builder import SchemaBuilder, camel, field_schema, type_schema

TIME_MARKS = frozenset({"description", "x-since", "x-until", "x-history"})


@dataclass
class Edit:
    """New nodes of one file of the contract, by place."""

    file: str
    nodes: dict[Place, Any] = field(default_factory=dict)


class EditBuilder:
    """Makes the edits that record differences as changes of one wire version."""

    def __init__(self, source: ContractSource, facts: Json) -> None:
        self._source, self._facts, self._version = source, facts, source.version
        self._operations = OperationEditBuilder(source, facts)

    def edit(self, difference: Difference) -> Edit:
        """The edit for one difference; without nodes when a person has to think first."""
        handlers: dict[str, Callable[[Difference, Edit], None]] = {
            "field": self._field,
            "value": self._value,
            "member": self._member,
            "required": self._required,
            "default": self._default,
            "strictness": self._strictness,
            "target": self._target,
            "discriminator": self._discriminator,
            "result": self._result,
        }
        edit = Edit("")
        is_of_operation = difference.where.partition(" ")[2].startswith("/") or difference.kind == "endpoint"
        if is_of_operation:
            edit.file, edit.nodes = self._operations.nodes(difference)
        elif difference.kind == "type":
            handler = self._type if difference.where == "types" else self._field_type
            handler(difference, edit)
        elif difference.kind in handlers:
            handlers[difference.kind](difference, edit)
        return edit

    def _type(self, difference: Difference, edit: Edit) -> None:
        if difference.theirs is None:
            edit.file, place, node = self._source.schema(difference.ours)
            edit.nodes[place] = {**node, "x-until": self._version}
            return
        name, builder = difference.theirs, SchemaBuilder()
        _, place, _ = self._source.schema(name)
        edit.nodes[place] = type_schema(self._facts["types"][name], name, self._version, builder)
        self._add_components(edit, builder)

    def _field(self, difference: Difference, edit: Edit) -> None:
        owner = difference.where
        if difference.theirs is None:
            edit.file, place, node = self._source.field(owner, difference.ours)
            edit.nodes[place] = {**node, "x-until": self._version}
            return
        name, builder = difference.theirs, SchemaBuilder()
        edit.file, place, node = self._source.schema(owner)
        fact = self._facts["types"][owner]["fields"][name]
        detail = field_schema(fact, f"{owner}{camel(name)}", builder)
        edit.nodes[place_below(place, "properties", name)] = {"x-since": self._version, **detail}
        if fact["required"]:
            edit.nodes[place_below(place, "required")] = [*node.get("required", []), name]
        self._add_components(edit, builder)

    def _value(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.schema(difference.where)
        added = difference.theirs is not None
        key = "x-enum-since" if added else "x-enum-until"
        value = difference.theirs if added else difference.ours
        if added:
            edit.nodes[place_below(place, "enum")] = [*(each for each in node.get("enum", []) if each != value), value]
        edit.nodes[place_below(place, key)] = {**node.get(key, {}), value: self._version}

    def _member(self, difference: Difference, edit: Edit) -> None:
        name = difference.theirs if difference.theirs is not None else difference.ours
        edit.file, place, node = self._source.schema(difference.where)
        target = {"$ref": "#/components/schemas/" + self._source.schema(name)[1][-1]}
        members = node.get("anyOf", [])
        if difference.theirs is not None:
            edit.nodes[place_below(place, "anyOf")] = [*members, {**target, "x-since": self._version}]
        else:
            end = {"x-until": self._version}
            edit.nodes[place_below(place, "anyOf")] = [
                {**each, **end} if target.items() <= each.items() else each for each in members
            ]

    def _result(self, difference: Difference, edit: Edit) -> None:
        added = Difference("member", "FutureRetrieveResponse", None, difference.theirs.removesuffix("#inmem"))
        self._member(added, edit)

    def _required(self, difference: Difference, edit: Edit) -> None:
        owner, _, name = difference.where.rpartition(".")
        edit.file, place, detail = self._source.field(owner, name)
        owner_place, key = place[:-2], place[-1]
        required = [each for each in self._source.schema(owner)[2].get("required", []) if each != key]
        fact = self._facts["types"][owner]["fields"][name]
        default = {"default": fact["default"]} if "default" in fact else {}
        earlier = _shape(detail) if default and "default" not in detail else {}
        edit.nodes[place] = {**self._after(detail, earlier, required=bool(difference.ours)), **default}
        edit.nodes[place_below(owner_place, "required")] = [*required, key] if difference.theirs else required

    def _default(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, detail = self._source.field(*_split(difference.where))
        earlier = {"default": detail["default"]} if "default" in detail else _shape(detail)
        edit.nodes[place] = {**self._after(detail, earlier), "default": difference.theirs}

    def _field_type(self, difference: Difference, edit: Edit) -> None:
        owner, name = _split(difference.where)
        edit.file, place, detail = self._source.field(owner, name)
        builder = SchemaBuilder()
        fresh = field_schema(self._facts["types"][owner]["fields"][name], f"{owner}{camel(name)}", builder)
        kept = {key: value for key, value in detail.items() if key in TIME_MARKS or key.startswith("x-sdk")}
        edit.nodes[place] = {**fresh, **self._after(kept, _shape(detail))}
        self._add_components(edit, builder)

    def _strictness(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.schema(difference.where)
        earlier = {"additionalProperties": node.get("additionalProperties", True)}
        edit.nodes[place_below(place, "additionalProperties")] = not difference.theirs
        edit.nodes[place_below(place, "x-history")] = self._after(node, earlier)["x-history"]

    def _target(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, node = self._source.schema(difference.where)
        builder = SchemaBuilder()
        fresh = builder.schema(self._facts["types"][difference.where]["target"], difference.where)
        kept = {key: value for key, value in node.items() if key in TIME_MARKS}
        edit.nodes[place] = {**self._after(kept, _shape(node)), **fresh}
        self._add_components(edit, builder)

    def _discriminator(self, difference: Difference, edit: Edit) -> None:
        edit.file, place, _ = self._source.schema(difference.where)
        if difference.theirs is not None:
            edit.nodes[place_below(place, "discriminator")] = {"propertyName": difference.theirs}

    def _after(self, node: Json, earlier: Json, *, required: bool | None = None) -> Json:
        """The node with one more entry of history: until this version it was so."""
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


def _shape(node: Json) -> Json:
    return {key: value for key, value in node.items() if key not in TIME_MARKS and not key.startswith("x-sdk")}
