"""The two contracts to compare, from what stands on a command line: a folder or document, and a wire version."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import project

from ..contract.bundle import check_refs, load, resolve_ref

Json = dict[str, Any]


@dataclass(frozen=True)
class ContractInput:
    """One contract at one wire version, as a plain document, with a short name; the folder it came from, if any."""

    name: str
    version: str
    document: Json
    folder: Path | None


def open_contract(given: str, default: Path) -> ContractInput:
    """The contract that ``given`` means: DIR, FILE, DIR@VERSION, FILE@VERSION, or @VERSION of ``default``.

    Without a version it is the newest that the contract describes.

    Raises:
        ValueError: there is no such contract, or it does not reach that version.
    """
    place, _, version = given.rpartition("@") if "@" in given else (given, "", "")
    path = Path(place) if place else default
    if path.is_dir():
        document, folder = load(path), path
    elif path.is_file():
        document, folder = _bundled(path), None
    else:
        raise ValueError(f"contract {given!r}: no file or folder {path}; give DIR, FILE, DIR@VERSION or @VERSION")
    newest_version = str(document.get("info", {}).get("version", ""))
    wanted = version or newest_version
    try:
        # A document of somebody else may have a version that is none of ours, and no times.
        plain = project(document, wanted) if version or _is_version(newest_version) else document
    except ValueError as error:
        raise ValueError(f"contract {given!r}: {error}") from error
    name = "/".join(path.parts[-2:]) + (f"@{version}" if version else "") if place else given
    return ContractInput(name, wanted, plain, folder)


def _is_version(text: str) -> bool:
    return bool(text) and all(part.isdigit() for part in text.split("."))


def _bundled(path: Path) -> Json:
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"contract {path}: neither JSON nor YAML: {error}") from error
    if not isinstance(document, dict) or "paths" not in document:
        raise ValueError(f"contract {path}: holds no paths; give an OpenAPI document or the folder of a contract")
    check_refs(document)
    plain: Json = _written_out(document, document)
    return plain


def _written_out(node: Any, document: Json) -> Any:
    """The node with shared parameters, responses and bodies in the place of their references; schemas stay named."""
    if isinstance(node, list):
        return [_written_out(item, document) for item in node]
    if not isinstance(node, dict):
        return node
    target = node.get("$ref")
    if isinstance(target, str) and not target.startswith("#/components/schemas/"):
        return _written_out(copy.deepcopy(resolve_ref(document, target)), document)
    return {key: _written_out(item, document) for key, item in node.items()}
