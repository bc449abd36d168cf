"""The contracts to compare, from a command line: a folder or document, and a wire version."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tinkerwire_base.conversion.versioning import project

from ..contract.bundle import load
from ..contract.source import LOADER
from ..official.drift.protobuf import read_contract_messages
from .contracts import PreparedContract
from .documents import prepare_document

Json = dict[str, Any]


@dataclass(frozen=True)
class ContractInput:
    """One contract at one wire version: a short name, the plain document, and its folder if it has one."""

    name: str
    version: str
    document: Json
    folder: Path | None

    @cached_property
    def prepared(self) -> PreparedContract:
        """The document, ready to compare."""
        return PreparedContract(prepare_document(self.document))

    @cached_property
    def messages(self) -> Json | None:
        """The protobuf messages of a folder; None for a document."""
        return read_contract_messages(self.folder, self.version) if self.folder else None


def open_contract(text: str, default: Path) -> ContractInput:
    """Open the contract that ``text`` names: DIR, FILE, DIR@VERSION, FILE@VERSION, or @VERSION of ``default``.

    Without a version it is the newest that the contract describes.

    Raises:
        ValueError: the contract does not exist, or does not have that version.
    """
    place, _, version = text.rpartition("@") if "@" in text else (text, "", "")
    path = Path(place) if place else default
    if path.is_dir():
        document, folder = load(path), path
    elif path.is_file():
        document, folder = _read_document(path), None
    else:
        raise ValueError(
            f"contract {text!r}: file or folder {path} does not exist; give DIR, FILE, DIR@VERSION or @VERSION"
        )
    newest_version = str(document.get("info", {}).get("version", ""))
    wire = version or newest_version
    try:
        # Other people's documents may have another kind of version, and have no marks.
        has_marks = bool(folder) or "x-versions" in document.get("info", {})
        projected = project(document, wire) if version or (has_marks and _is_version(newest_version)) else document
    except ValueError as error:
        raise ValueError(f"contract {text!r}: {error}") from error
    name = "/".join(path.parts[-2:]) + (f"@{version}" if version else "") if place else text
    return ContractInput(name, wire, projected, folder)


def _is_version(text: str) -> bool:
    return bool(text) and all(part.isdigit() for part in text.split("."))


class _DocumentLoader(LOADER):  # type: ignore[misc, valid-type]
    """Loader of the values that JSON has: YAML 1.2 knows no dates, and only true and false as booleans."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _DocumentLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first, ""])


def _name_keys(node: Any) -> Any:
    """Return a document whose keys are all texts, as in JSON."""
    if isinstance(node, list):
        return [_name_keys(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key if isinstance(key, str) else json.dumps(key): _name_keys(item) for key, item in node.items()}


def _read_document(path: Path) -> Json:
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if path.suffix == ".json" else _name_keys(yaml.load(text, Loader=_DocumentLoader))
    except (json.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"contract {path}: must be JSON or YAML: {error}") from error
    if not isinstance(document, dict) or not {"paths", "webhooks"} & document.keys():
        raise ValueError(f"contract {path}: has no paths; give an OpenAPI document or the folder of a contract")
    if "swagger" in document or not str(document.get("openapi", "3.1")).startswith("3."):
        version = document.get("swagger", document.get("openapi"))
        raise ValueError(f"contract {path}: must be OpenAPI 3.0 or 3.1, got {version}; convert the document first")
    return document
