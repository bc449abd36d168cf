"""All changes between two plain contracts, for what clients send and for what they read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .change import NO_EXAMPLE, Change, merge_changes
from .dialect import strip_annotations
from .documents import align_unions, prepare_document
from .parts import compare_presence, compare_statuses, pair_parts
from .schemas import Schemas
from .security import compare_security
from .serialization import compare_serialization
from .servers import common_path, compare_servers
from .signatures import OPPOSITE, SignaturePart, index_operations, list_parts
from .structure import StructureComparison
from .values import OPTIONAL, ValueComparison

Json = dict[str, Any]


def compare_contracts(old: Json, new: Json) -> list[Change]:
    """Find every change between two contracts, the most severe first."""
    return compare_prepared(PreparedContract(prepare_document(old)), PreparedContract(prepare_document(new)))


class PreparedContract:
    """A prepared document with its schemas by direction, for any number of comparisons."""

    def __init__(self, document: Json) -> None:
        """Initialize with a prepared document."""
        self.document = document
        self.schemas = {direction: Schemas(document, direction) for direction in OPPOSITE}

    def align(self, other: PreparedContract) -> PreparedContract:
        """Return the contract with the kinds of unions that the other contract has."""
        aligned = align_unions(self.document, other.document)
        return self if aligned is self.document else PreparedContract(aligned)


def compare_prepared(old: PreparedContract, new: PreparedContract) -> list[Change]:
    """Find every change between two prepared contracts, the most severe first."""
    return merge_changes(list(_Comparison(old.align(new), new.align(old)).changes()))


@dataclass
class _Direction:
    """The schemas of both documents as one direction sees them, and their comparisons."""

    old: Schemas
    new: Schemas
    values: ValueComparison
    structure: StructureComparison


class _Comparison:
    def __init__(self, old: PreparedContract, new: PreparedContract) -> None:
        self._old, self._new = old.document, new.document
        self._directions: dict[str, _Direction] = {}
        for direction in OPPOSITE:
            sides = old.schemas[direction], new.schemas[direction]
            self._directions[direction] = _Direction(*sides, ValueComparison(*sides), StructureComparison(*sides))
        self._before, self._after = index_operations(self._old), index_operations(self._new)
        self._known: dict[str, list[Change]] = {}

    def changes(self) -> Iterator[Change]:
        """Yield the changes of all operations, unmerged."""
        moved = self._find_moved()
        for key in sorted(self._before):
            if key in moved or key in self._after:
                yield from self._compare_operation(key, self._before[key], self._after[moved.get(key, key)])
            elif self._before[key]["x-reversed"]:
                yield Change("breaking", "response", key, "the server no longer calls it", [key])
            else:
                yield Change("breaking", "request", key, "the operation was removed", [key])
        for key in sorted(self._after.keys() - self._before.keys() - set(moved.values())):
            if self._after[key]["x-reversed"]:
                yield Change("risky", "response", key, "the server may call it now", [key])
            else:
                yield Change("safe", "request", key, "the operation is new", [key])

    def _find_moved(self) -> dict[str, str]:
        """Pair operations whose path moved between the address of the servers and their own path."""
        full = {}
        for document, operations, others in (
            (self._old, self._before, self._after),
            (self._new, self._after, self._before),
        ):
            found = {}
            for key, operation in operations.items():
                if key not in others and not operation["x-reversed"]:
                    method, _, path = key.partition(" ")
                    found[f"{method} {common_path(document, operation)}{path}"] = key
            full[id(document)] = found
        old, new = full[id(self._old)], full[id(self._new)]
        moved = {old[key]: new[key] for key in old.keys() & new.keys()}
        for key in self._before:
            caller, mark, name = key.partition(" callback ")
            if mark and caller in moved:
                moved[key] = f"{moved[caller]}{mark}{name}"
        return {key: target for key, target in moved.items() if target in self._after}

    def _compare_operation(self, key: str, before: Json, after: Json) -> Iterator[Change]:
        old, new = list(list_parts(key, before)), list(list_parts(key, after))
        if not before["x-reversed"]:
            yield from compare_security(key, self._old, self._new, before, after)
            if key == after["x-key"]:
                yield from compare_servers(key, self._old, self._new, before, after)
            if after.get("deprecated") is True and before.get("deprecated") is not True:
                yield Change("safe", "request", key, "the operation is deprecated now", [key])
        yield from _compare_body(key, before, after)
        yield from compare_statuses(key, before, after)
        for first, second in pair_parts(old, new):
            yield from compare_presence(first, second, before, after)
            if first and second:
                schemas = self._directions[first.direction]
                yield from compare_serialization(schemas.old, schemas.new, first, second)
                yield from self._compare_part(first, second)

    def _compare_part(self, old: SignaturePart, new: SignaturePart) -> Iterator[Change]:
        schemas = self._directions[old.direction]
        if schemas.structure.is_unchanged(old.schema, new.schema):
            return
        key = json.dumps([old.direction, old.schema, new.schema], sort_keys=True)
        if key not in self._known:
            selected = (
                replace(old, schema=schemas.old.select(old.schema)),
                replace(new, schema=schemas.new.select(new.schema)),
            )
            self._known[key] = list(_compare_schemas(schemas, *selected))
        for change in self._known[key]:
            where, shown_in = change.where or old.part, change.example_of or old.part
            example_of = "" if change.example is NO_EXAMPLE else shown_in
            operation = [old.operation]
            yield Change(change.level, change.direction, where, change.reason, operation, change.example, example_of)


def _compare_schemas(schemas: _Direction, old: SignaturePart, new: SignaturePart) -> Iterator[Change]:
    """Yield the changes of a schema: first those of its values, then the others."""
    before, after = strip_annotations(old.schema), strip_annotations(new.schema)
    changes: list[Change] = []
    is_same = schemas.values.equality.is_equal(before, after)
    if not is_same:
        changes += schemas.values.compare(before, after)
        shared = schemas.old.union_members(old.schema) & schemas.new.union_members(new.schema)
        for name in sorted(shared - schemas.values.equality.unchanged):
            member = {"$ref": f"#/components/schemas/{name}"}
            known = {change.key for change in changes}
            changes += [
                replace(change, example_of=name)
                for change in schemas.values.compare(member, member)
                if change.key not in known
            ]
    # A property that may be omitted now may be unknown now, too.
    reported = {change.where for change in changes if (change.level, change.reason) != ("safe", OPTIONAL)}
    changes += schemas.structure.compare(old, new, reported)
    if not is_same and not changes:
        changes.append(Change("safe", old.direction, "", "written differently; the same values are accepted"))
    yield from changes


def _compare_body(key: str, before: Json, after: Json) -> Iterator[Change]:
    was_required, is_required = (
        bool(operation.get("requestBody", {}).get("required")) for operation in (before, after)
    )
    if before["x-reversed"]:
        if was_required and not is_required and "requestBody" in after:
            yield Change("breaking", "response", "body", "the body may be omitted now", [key])
    elif is_required and not was_required:
        yield Change("breaking", "request", "body", "a body is required now", [key])
    elif was_required and not is_required and "requestBody" in after:
        yield Change("safe", "request", "body", "the body may be omitted now", [key])
