"""The YAML files of a contract under edit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import SHAPE, parse_version

from ..comparison import Difference
from ..drift.contract_source import SCHEMAS, ContractSource, Json, Place
from ..drift.edits import Edit
from .yaml_text import rewrite_yaml

ROOT = "openapi.yaml"
MARK_ORDER = ("description", "x-since", "x-until", "x-absent")


class ContractFiles:
    """Files of a contract: their content changes in memory, and the changed files are written at the end."""

    def __init__(self, folder: Path, version: str) -> None:
        """Read the files in ``folder``; edits record changes of ``version``."""
        self.folder, self.version = folder, version
        self.source = ContractSource(folder, version)
        self._written = copy.deepcopy(self.source.files)

    @property
    def contents(self) -> dict[str, Json]:
        """Return the content of each file by name."""
        return self.source.files

    def schemas(self, file: str) -> Json:
        """Return the schemas of a file."""
        return _schemas(self.contents[file])

    def has_schema(self, name: str) -> bool:
        """Report whether any version has a schema of this name."""
        return any(name in _schemas(content) for content in self.contents.values())

    def find_retired(self, difference: Difference) -> tuple[str, Place, Json]:
        """Return file, place and node of an element that only earlier versions have; without one, the file is empty."""
        if difference.kind == "endpoint":
            found = self.source.find_operation(difference.theirs)
            return found if "x-until" in found[2] else ("", (), {})
        owner = difference.theirs if difference.kind == "type" else difference.where
        for file, content in self.contents.items():
            for name, schema in _schemas(content).items():
                if schema.get("x-sdk-name", name) != owner:
                    continue
                place: Place = (*SCHEMAS, name)
                if difference.kind == "field":
                    place = (*place, "properties", difference.theirs)
                    schema = schema.get("properties", {}).get(difference.theirs, {})  # noqa: PLW2901
                if "x-until" in schema:
                    return file, place, schema
        return "", (), {}

    def check_version(self) -> None:
        """Raise ValueError if the contract describes a later version."""
        newest = self.contents[ROOT]["info"]["version"]
        if parse_version(self.version) < parse_version(newest):
            raise ValueError(
                f"release {self.version}: must be at least as new as the contract, {newest}, to be written; "
                f"edit the contract by hand"
            )

    def families(self) -> list[str]:
        """Return the names of the families' files."""
        return [f"{name}.yaml" for name in self.contents[ROOT].get("x-families", [])]

    def add_version(self) -> None:
        """Record the version as the newest one, unless the contract has it or a later one."""
        info = self.contents[ROOT]["info"]
        versions = info.get("x-versions", [info["version"]])
        if self.version not in versions:
            info["x-versions"] = sorted([*versions, self.version], key=parse_version)
            info["version"] = info["x-versions"][-1]

    def apply(self, edit: Edit) -> None:
        """Set the new nodes of an edit."""
        for place, value in edit.nodes.items():
            content = self.contents[self._home(place) or edit.file]
            set_node(content, place, value)
            content[place[0]] = without_unborn(content[place[0]], self.version)

    def _home(self, place: Place) -> str | None:
        """Return the file of an existing schema, which may be another than that of the rest of an edit."""
        if place[:2] != SCHEMAS or len(place) < 3:
            return None
        return next((file for file, content in self.contents.items() if place[2] in _schemas(content)), None)

    def complete_mappings(self) -> None:
        """Map the tags of each changed union with a discriminator to its members."""
        schemas = {name: schema for content in self.contents.values() for name, schema in _schemas(content).items()}
        written = {name: schema for content in self._written.values() for name, schema in _schemas(content).items()}
        for name, schema in schemas.items():
            discriminator = schema.get("discriminator")
            if schema == written.get(name) or not isinstance(discriminator, dict) or "anyOf" not in schema:
                continue
            mapping = dict(discriminator.get("mapping", {}))
            for target in [member["$ref"] for member in schema["anyOf"] if "$ref" in member]:
                member = schemas.get(target.rpartition("/")[2], {})
                tag = member.get("properties", {}).get(discriminator.get("propertyName"), {}).get("const")
                if tag is not None:
                    mapping.setdefault(tag, target)
            if mapping != discriminator.get("mapping", {}):
                schema["discriminator"] = {**discriminator, "mapping": mapping}

    def write(self) -> list[Path]:
        """Write the changed files, and return them."""
        changed = []
        for name, content in self.contents.items():
            if content == self._written[name]:
                continue
            path = self.folder / name
            text = path.read_text(encoding="utf-8")
            edited = rewrite_yaml(text, content)
            if edited != text:
                path.write_text(edited, encoding="utf-8", newline="\n")
                changed.append(path)
        return changed


def _schemas(content: Json) -> Json:
    schemas: Json = (content.get("components") or {}).get("schemas") or {}
    return schemas


def set_node(content: Json, place: Place, value: Any) -> None:
    """Set the node at a place, with its marks in the usual order."""
    here: Any = content
    for step in place[:-1]:
        here = here.setdefault(step, {})
    here[place[-1]] = order_marks(merge_history(value))


def merge_history(node: Any) -> Any:
    """Merge the entries of a history that end in the same version; the entry that came first has the earlier form."""
    if not isinstance(node, dict) or len(node.get("x-history", [])) < 2:
        return node
    merged: list[Json] = []
    for entry in node["x-history"]:
        if merged and merged[-1]["until"] == entry["until"]:
            first = merged.pop()
            is_whole = bool(SHAPE & first.get("schema", {}).keys())
            schema = first["schema"] if is_whole else {**entry.get("schema", {}), **first.get("schema", {})}
            entry = {**entry, **first, "schema": schema}  # noqa: PLW2901
        merged.append(entry)
    return {**node, "x-history": merged}


def without_unborn(node: Any, version: str) -> Any:
    """Remove the parts that begin and end in one version: an absorption corrects itself."""
    if isinstance(node, list):
        return [without_unborn(item, version) for item in node if not _is_unborn(item, version)]
    if isinstance(node, dict):
        return {key: without_unborn(item, version) for key, item in node.items() if not _is_unborn(item, version)}
    return node


def _is_unborn(node: Any, version: str) -> bool:
    return isinstance(node, dict) and node.get("x-since") == version == node.get("x-until")


def order_marks(value: Any) -> Any:
    """Move the description and the version marks of a mapping to its start."""
    if not isinstance(value, dict) or ("x-since" not in value and "x-until" not in value):
        return value
    first = {key: value[key] for key in MARK_ORDER if key in value}
    if "operationId" in value or ("name" in value and "in" in value):
        return value
    return {**first, **{key: item for key, item in value.items() if key not in first}}
