"""The files of the contract to one plain OpenAPI document."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = "openapi.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SECTIONS = ("schemas", "parameters", "responses")
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def load(folder: Path) -> dict[str, Any]:
    """The contract in ``folder`` as one document, the same for the same files.

    Families come in the order of ``x-families``; shared parameters and responses are written out where they
    are used; integers without bounds get those of 64 bits.

    Raises:
        ValueError: a file is missing or no mapping, a name is defined twice, or a $ref leads nowhere.
    """
    document = _read(folder / ROOT)
    families = document.pop("x-families", [])
    homes: dict[str, str] = {}
    paths: dict[str, Any] = {}
    components: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for family in families:
        file = folder / f"{family}.yaml"
        content = _read(file)
        _merge(paths, content.get("paths", {}), "path", file, homes)
        for section, found in content.get("components", {}).items():
            if section not in components:
                raise ValueError(f"{file}: components.{section} is not among {', '.join(SECTIONS)}")
            _merge(components[section], found, section, file, homes)
    document["paths"] = paths
    document["components"] = {"schemas": components.pop("schemas")} | document.get("components", {})
    shared = _by_pointer(components)
    _rewrite(document, lambda node: _written_out(node, shared))
    _rewrite(document, _bounded)
    check_refs(document)
    return document


def check_refs(document: dict[str, Any]) -> None:
    """Raise ValueError naming the first $ref or discriminator target that leads nowhere, and its place."""
    for place, target in find_refs(document):
        if resolve_ref(document, target) is None:
            raise ValueError(f"{place}: {target} leads nowhere; define it or correct the name")


def find_refs(node: Any, place: str = "#") -> Iterator[tuple[str, str]]:
    """Every reference under ``node``, as (place, target)."""
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
    """What a reference of the form #/a/b/c leads to, or None."""
    start, *steps = target.split("/")
    if start != "#":
        return None
    found: Any = document
    for step in steps:
        if not isinstance(found, dict) or step not in found:
            return None
        found = found[step]
    return found


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError:
        raise ValueError(f"{file}: not there; x-families in {ROOT} lists the files of a contract") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: not YAML: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file}: holds {type(content).__name__}, expected a mapping")
    return content


def _merge(target: dict[str, Any], found: dict[str, Any], kind: str, file: Path, homes: dict[str, str]) -> None:
    for name, value in found.items():
        key = f"{kind} {name}"
        if key in homes:
            raise ValueError(f"{key} is in {homes[key]} and in {file.name}; keep one")
        homes[key] = file.name
        target[name] = value


def _by_pointer(components: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        f"#/components/{section}/{name}": value
        for section, found in components.items()
        for name, value in found.items()
    }


def _rewrite(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Put the changed form in the place of every mapping under ``node``."""
    if isinstance(node, list):
        node[:] = [_rewrite(item, change) for item in node]
    elif isinstance(node, dict):
        node = change(node)
        for key, item in node.items():
            node[key] = _rewrite(item, change)
    return node


def _written_out(node: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    target = node.get("$ref")
    return copy.deepcopy(shared[target]) if isinstance(target, str) and target in shared else node


def _bounded(node: dict[str, Any]) -> dict[str, Any]:
    kind = node.get("type")
    if kind == "integer" or (isinstance(kind, list) and "integer" in kind):
        for bound, value in INT64.items():
            node.setdefault(bound, value)
    return node
