"""Evidence for the parts of a document: the release, capture or server that shows each field, status and header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import parse_version

from .source import LOADER

Json = dict[str, Any]

FILE = "evidence.yaml"
NOTE = "# Written by `python -m tinkerwire_codegen evidence --write`; edits are lost.\n"
MARK = "x-evidence"
ASSUMED = "assumed"
ANY = "(any operation)"
"""End of the evidence of code that handles a status or a header whatever the operation is."""


def load_evidence(folder: Path) -> Json | None:
    """Load the evidence of the contract in ``folder``; None for a contract without any."""
    file = folder / FILE
    if not file.exists():
        return None
    evidence: Json = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    return evidence


def write_evidence(folder: Path, evidence: Json) -> None:
    """Write the evidence of the contract in ``folder``."""
    text = yaml.safe_dump(evidence, sort_keys=False, default_flow_style=None, width=118)
    (folder / FILE).write_text(NOTE + text, encoding="utf-8", newline="\n")


def add_evidence(document: Json, evidence: Json, version: str) -> Json:
    """Add ``x-evidence`` to each field, parameter, status and header of the document of one version."""
    for _, node, sources in _list_parts(document, evidence, version):
        node[MARK] = sources or [ASSUMED]
    return document


def count_evidence(document: Json) -> dict[str, Counter[str]]:
    """Count the kinds of evidence in a document with evidence, by kind of part; the best kind of a part counts."""
    counts: dict[str, Counter[str]] = {}
    for kind, node in _list_nodes(document):
        best = ANY if node[MARK][0].endswith(ANY) else node[MARK][0].partition(" ")[0]
        counts.setdefault(kind, Counter())[best] += 1
    return counts


def _list_nodes(document: Json) -> Iterator[tuple[str, Json]]:
    for schema in document["components"]["schemas"].values():
        yield from (("fields", field) for field in schema.get("properties", {}).values())
    for item in document["paths"].values():
        for operation in item.values():
            yield from (("parameters", parameter) for parameter in operation.get("parameters", []))
            for status, response in operation["responses"].items():
                if status != "default":
                    yield "statuses", response
                yield from (("headers of responses", header) for header in response.get("headers", {}).values())


def _list_parts(document: Json, evidence: Json, version: str) -> Iterator[tuple[str, Json, list[str]]]:
    """Yield the name, the node and the sources of each part."""
    look_up = _Sources(evidence, version)
    bodies = _bodies(document)
    for name, schema in document["components"]["schemas"].items():
        for field, node in schema.get("properties", {}).items():
            sources = look_up.field(schema.get("x-sdk-name", name), node.get("x-sdk-name", field))
            yield field, node, sources or look_up.undeclared_field(name, field, bodies.get(name, []))
    for item in document["paths"].values():
        for operation in item.values():
            name = operation["operationId"]
            for parameter in operation.get("parameters", []):
                yield parameter["name"], parameter, look_up.parameter(name, parameter)
            for status, response in operation["responses"].items():
                if status != "default":
                    yield status, response, look_up.status(name, status)
                for header, node in response.get("headers", {}).items():
                    yield header, node, look_up.response_header(header)


def _bodies(document: Json) -> dict[str, list[str]]:
    """Return the operations that send each schema as JSON."""
    bodies: dict[str, list[str]] = {}
    for item in document["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            bodies.setdefault(name, []).append(operation["operationId"])
    return bodies


class _Sources:
    """Sources of one version: what its own release shows comes first."""

    def __init__(self, evidence: Json, version: str) -> None:
        self._evidence = evidence
        self._version = version

    def field(self, schema: str, field: str) -> list[str]:
        known = self._evidence["types"].get(schema, {})
        sources = self._release(known.get("files", {})) if self._reaches(known.get("fields", {}).get(field)) else []
        return sources + self._captured(self._evidence["captures"].get(schema, {}).get(field, []))

    def undeclared_field(self, schema: str, field: str, operations: list[str]) -> list[str]:
        """Return the code that writes or reads a field that no type of the SDK declares."""
        for operation in operations:
            known = self._evidence["operations"].get(operation, {})
            if self._reaches(known.get("body", {}).get(field)):
                return self._release(known["files"])
        servers = self._evidence["observed_fields"].get(schema, {}).get(field, [])
        return self._release(self._evidence["names"].get(field, {})) + [f"observed on {server}" for server in servers]

    def parameter(self, operation: str, parameter: Json) -> list[str]:
        known = self._evidence["operations"].get(operation, {})
        if parameter["in"] == "header":
            return self.header(parameter["name"])
        if parameter["in"] == "query" and not self._reaches(known.get("query", {}).get(parameter["name"])):
            return self._release(self._evidence["names"].get(parameter["name"], {}))
        return self._release(known.get("files", {}))

    def status(self, operation: str, status: str) -> list[str]:
        known = self._evidence["operations"].get(operation, {})
        servers = self._evidence["observed"].get(operation, {}).get(status, [])
        observed = [f"observed on {server}" for server in servers]
        if status == "200":
            return self._release(known.get("files", {})) + observed
        return observed + [f"{source} {ANY}" for source in self._release(self._evidence["statuses"].get(status, {}))]

    def header(self, name: str) -> list[str]:
        return self._release(self._evidence["headers"].get(name, {}))

    def response_header(self, name: str) -> list[str]:
        return [f"{source} {ANY}" for source in self.header(name)]

    def _reaches(self, since: str | None) -> bool:
        return since is not None and parse_version(since) <= parse_version(self._version)

    def _release(self, files: dict[str, str]) -> list[str]:
        """Return the file of the release of this version, from files by the first release that has them."""
        newest = max((since for since in files if self._reaches(since)), key=parse_version, default=None)
        return [f"release {self._version} {files[newest]}"] if newest and files[newest] else []

    def _captured(self, versions: list[str]) -> list[str]:
        reached = [version for version in versions if self._reaches(version)]
        return [f"capture {max(reached, key=parse_version)}"] if reached else []
