"""The files of a contract as written, to find the place where a change belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import is_available, parse_version

from ...contract.source import LOADER

Json = dict[str, Any]
Place = tuple[str, ...]

SCHEMAS: Place = ("components", "schemas")


def place_below(place: Place, *steps: str) -> Place:
    """Return the place that many steps below another."""
    return (*place, *steps)


class ContractSource:
    """The YAML files of a contract before bundling, where a person records a change at ``version``."""

    def __init__(self, folder: Path, version: str) -> None:
        """Read all YAML files in ``folder``."""
        self.version = version
        self._now = parse_version(version)
        self.files: dict[str, Json] = {}
        for file in sorted(folder.glob("*.yaml")):
            content = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
            if isinstance(content, dict):
                self.files[file.name] = content

    def find_schema(self, sdk_name: str) -> tuple[str, Place, Json]:
        """Return file, place and node of the schema with this SDK name; the file is empty if it does not exist."""
        for file, name, node in self._schemas():
            if node.get("x-sdk-name", name) == sdk_name and is_available(node, self._now):
                return file, (*SCHEMAS, name), node
        return "", (*SCHEMAS, sdk_name), {}

    def find_field(self, owner: str, sdk_name: str) -> tuple[str, Place, Json]:
        """Return file, place and node of a property by the SDK's names."""
        file, place, node = self.find_schema(owner)
        for name, detail in node.get("properties", {}).items():
            if detail.get("x-sdk-name", name) == sdk_name and is_available(detail, self._now):
                return file, (*place, "properties", name), detail
        return file, (*place, "properties", sdk_name), {}

    def find_operation(self, key: str) -> tuple[str, Place, Json]:
        """Return file, place and node of an operation such as GET /api/v1/x/{}; variables have any name."""
        method, _, path_key = key.partition(" ")
        for file, content in self.files.items():
            for path, item in (content.get("paths") or {}).items():
                if re.sub(r"{[^}]*}", "{}", path) == path_key and method.lower() in item:
                    return file, ("paths", path, method.lower()), item[method.lower()]
        return "", ("paths", path_key, method.lower()), {}

    def _schemas(self) -> Iterator[tuple[str, str, Json]]:
        for file, content in self.files.items():
            for name, node in ((content.get("components") or {}).get("schemas") or {}).items():
                yield file, name, node
