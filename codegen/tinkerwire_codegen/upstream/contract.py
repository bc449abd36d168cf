"""The files of a contract as they are written, to find the place where a change belongs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
Place = tuple[str, ...]


class Written:
    """The YAML files of a contract before bundling: what a person would edit."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Json] = {}
        for file in sorted(folder.glob("*.yaml")):
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            if isinstance(content, dict):
                self.files[file.name] = content

    def schema(self, name: str) -> tuple[str, Json]:
        """The file that defines a schema, and its node; an empty node when none does."""
        for file, content in self.files.items():
            found = (content.get("components") or {}).get("schemas", {}).get(name)
            if found is not None:
                return file, found
        return "", {}

    def operation(self, key: str) -> tuple[str, Place, Json]:
        """File, place and node of the operation such as GET /api/v1/x/{}, whatever its variables are called."""
        method, _, wanted = key.partition(" ")
        for file, content in self.files.items():
            for path, item in (content.get("paths") or {}).items():
                if re.sub(r"{[^}]*}", "{}", path) == wanted and method.lower() in item:
                    return file, ("paths", path, method.lower()), item[method.lower()]
        return "", ("paths", wanted, method.lower()), {}
