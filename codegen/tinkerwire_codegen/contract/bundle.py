"""The files of the contract as one plain OpenAPI document."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

import yaml

ROOT = "openapi.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SECTIONS = ("schemas", "parameters", "responses")
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def load(folder: Path) -> dict[str, Any]:
    """Load the contract in ``folder`` as one document; equal files give equal documents.

    Families come in the order of ``x-families``. Shared parameters and responses are copied to each place that refers
    to them. Integers without bounds get those of 64 bits.

    Raises:
        ValueError: a family cannot be the name of a module, a file is missing or not a mapping, a name is defined
            twice, or a $ref has no target.
    """
    document, families = _read_families(folder)
    homes: dict[str, str] = {}
    paths: dict[str, Any] = {}
    components: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for file, content in families.items():
        _merge(paths, content.get("paths", {}), "path", file, homes)
        for section, section_nodes in content.get("components", {}).items():
            if section not in components:
                raise ValueError(f"{file}: components.{section} is unknown; use one of {', '.join(SECTIONS)}")
            _merge(components[section], section_nodes, section, file, homes)
    document["paths"] = paths
    document["components"] = {"schemas": components.pop("schemas")} | document.get("components", {})
    shared = _by_pointer(components)
    _rewrite(document, lambda node: _inline_shared(node, shared))
    _rewrite(document, _add_int64_bounds)
    check_refs(document)
    return document


def families_of_schemas(folder: Path) -> dict[str, str]:
    """Return the family of each schema of the contract in ``folder``.

    Raises:
        ValueError: a family cannot be the name of a module, or a file is missing or not a mapping.
    """
    _, families = _read_families(folder)
    return {
        name: file.stem
        for file, content in families.items()
        for name in content.get("components", {}).get("schemas", {})
    }


def check_refs(document: dict[str, Any]) -> None:
    """Raise ValueError for the first $ref or discriminator target that does not exist; the error names its place."""
    for place, target in find_refs(document):
        if resolve_ref(document, target) is None:
            raise ValueError(f"{place}: {target} does not exist; define it or correct the name")


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


def _read_families(folder: Path) -> tuple[dict[str, Any], dict[Path, dict[str, Any]]]:
    """Return the root of a contract, and the content of its families by file."""
    document = _read(folder / ROOT)
    names = document.pop("x-families", [])
    for name in names:
        if not name.isidentifier() or iskeyword(name):
            raise ValueError(f"{ROOT}: x-families: {name!r} cannot be the name of a module; rename the family")
    files = [folder / f"{name}.yaml" for name in names]
    return document, {file: _read(file) for file in files}


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError:
        raise ValueError(f"{file}: file does not exist; x-families in {ROOT} lists the files of a contract") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: must be YAML: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file}: must be a mapping, got {type(content).__name__}")
    return content


def _merge(target: dict[str, Any], nodes: dict[str, Any], kind: str, file: Path, homes: dict[str, str]) -> None:
    for name, value in nodes.items():
        key = f"{kind} {name}"
        if key in homes:
            raise ValueError(f"{key} is defined in {homes[key]} and in {file.name}; keep one")
        homes[key] = file.name
        target[name] = value


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
