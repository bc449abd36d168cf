"""The files of the contract as one plain OpenAPI document."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .source import ContractFiles, read_files
from .structure import Part, find_wrong_forms, list_parts

SECTIONS = ("schemas", "parameters", "responses")
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def load(folder: Path) -> dict[str, Any]:
    """Load the contract in ``folder`` as one document; equal files give equal documents.

    Families come in the order of ``x-families``. Shared parameters and responses are copied to each place that refers
    to them. Integers without bounds get those of 64 bits.

    Raises:
        ValueError: a file is missing or malformed, a key or a name is defined twice, a family cannot be the name of a
            module, a node has the wrong type, or a $ref has no target; one line per error.
    """
    files = read_files(folder)
    errors = [*files.errors, *find_malformed_nodes(files)]
    if errors:
        raise ValueError("\n".join(errors))
    document, errors = bundle(files)
    if errors:
        raise ValueError("\n".join(errors))
    return document


def find_malformed_nodes(files: ContractFiles) -> Iterator[str]:
    """Yield each node of the files that has another type than OpenAPI requires, with file and line."""
    for file in files.files:
        for part in list_parts(Part("#", "document", file.content)):
            for place, text in find_wrong_forms(part):
                yield f"{file.path}:{file.find_line(place)[1]}: {place}: {text}"


def bundle(files: ContractFiles) -> tuple[dict[str, Any], list[str]]:
    """Bundle well-formed files, whose content changes.

    Returns:
        The document, and an error for each repeated name and each $ref without a target.
    """
    root = files.root
    document = {} if root is None else {key: value for key, value in root.content.items() if key != "x-families"}
    homes: dict[str, str] = {}
    paths: dict[str, Any] = {}
    errors: list[str] = []
    components: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for file in files.families.values():
        targets = [("paths", "path", paths, file.content.get("paths", {}))]
        for section, nodes in file.content.get("components", {}).items():
            if section in components:
                targets.append((f"components/{section}", section, components[section], nodes))
            else:
                line = file.find_line(f"#/components/{section}")[1]
                known = ", ".join(SECTIONS)
                errors.append(f"{file.path}:{line}: components.{section} is unknown; use one of {known}")
        for place, kind, target, nodes in targets:
            for name in nodes:
                home = homes.setdefault(f"{kind} {name}", file.path.name)
                if home != file.path.name:
                    line = file.find_line(f"#/{place}/{name}")[1]
                    text = f"{kind} {name} is defined in {home} and in {file.path.name}; keep one"
                    errors.append(f"{file.path}:{line}: {text}")
            target.update(nodes)
    document["paths"] = paths
    document["components"] = {"schemas": components.pop("schemas")} | document.get("components", {})
    shared = _by_pointer(components)
    _rewrite(document, lambda node: _inline_shared(node, shared))
    _rewrite(document, _add_int64_bounds)
    errors += [f"{files.locate(place)}: {place}: {text}" for place, text in _find_dangling_refs(document)]
    return document, errors


def families_of_schemas(folder: Path) -> dict[str, str]:
    """Return the family of each schema of the contract in ``folder``, which can be loaded."""
    return list_families_of_schemas(read_files(folder))


def list_families_of_schemas(files: ContractFiles) -> dict[str, str]:
    """Return the family of each schema of well-formed files."""
    return {
        name: family
        for family, file in files.families.items()
        for name in file.content.get("components", {}).get("schemas", {})
    }


def check_refs(document: dict[str, Any]) -> None:
    """Raise ValueError for each $ref or discriminator target that does not exist; the error names its place."""
    errors = [f"{place}: {text}" for place, text in _find_dangling_refs(document)]
    if errors:
        raise ValueError("\n".join(errors))


def _find_dangling_refs(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for place, target in find_refs(document):
        if resolve_ref(document, target) is None:
            yield place, f"{target} does not exist; define it or correct the name"


def find_refs(node: Any, place: str = "#") -> Iterator[tuple[str, str]]:
    """Yield every reference under ``node`` as (place, target)."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from find_refs(item, f"{place}/{index}")
    elif isinstance(node, dict):
        for key, item in node.items():
            if key == "$ref" and isinstance(item, str):
                yield place, item
            elif key == "mapping" and "propertyName" in node:
                yield from ((f"{place}/mapping/{name}", target) for name, target in item.items())
            else:
                yield from find_refs(item, f"{place}/{key}")


def resolve_ref(document: dict[str, Any], target: str) -> Any:
    """Return the node that a reference of the form #/a/b/c points to, or None."""
    start, *steps = target.split("/")
    if start != "#":
        return None
    node: Any = document
    for step in steps:
        if not isinstance(node, dict) or step not in node:
            return None
        node = node[step]
    return node


def _by_pointer(components: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        f"#/components/{section}/{name}": value
        for section, nodes in components.items()
        for name, value in nodes.items()
    }


def _rewrite(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Replace every mapping under ``node`` by its changed form."""
    if isinstance(node, list):
        node[:] = [_rewrite(item, change) for item in node]
    elif isinstance(node, dict):
        node = change(node)
        for key, item in node.items():
            node[key] = _rewrite(item, change)
    return node


def _inline_shared(node: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    target = node.get("$ref")
    return copy.deepcopy(shared[target]) if isinstance(target, str) and target in shared else node


def _add_int64_bounds(node: dict[str, Any]) -> dict[str, Any]:
    kind = node.get("type")
    if kind == "integer" or (isinstance(kind, list) and "integer" in kind):
        for bound, value in INT64.items():
            node.setdefault(bound, value)
    return node
