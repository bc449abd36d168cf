"""Evidence from releases of the official SDK, captures of their requests, and responses of other servers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from ..contract.bundle import find_refs
from .release.archive import Release
from .release.read import read_facts

Json = dict[str, Any]

OBSERVATION = re.compile(r"`(GET|POST|PUT|DELETE) ([^\s:`]+): (\d{3}) ?([^`]*)`")
SERVER = re.compile(r"^## (\S+ \d+(?:\.\d+)+)$")
MISSING_ROUTES = ("Not Found", "Method Not Allowed")
"""Texts of responses about a path that a server lacks; they show nothing about the operation."""


def collect_evidence(
    document: Json, releases: Iterable[tuple[str, Release]], captures: list[Json], observations: str
) -> Json:
    """Collect the evidence for the contract ``document`` of all versions.

    Args:
        document: the contract, with its marks.
        releases: releases by version, oldest first.
        captures: captured requests, each list with the version that sent them.
        observations: Markdown with a heading per server, and the responses of the server as METHOD path: status.
    """
    paths = _operations_by_path(document)
    evidence: Json = {"releases": [], "types": {}, "operations": {}, "headers": {}, "statuses": {}, "names": {}}
    for version, release in releases:
        add_release(evidence, document, version, release, read_facts(release))
    evidence["captures"] = _read_captures(document, paths, captures)
    evidence["observed"] = _read_observations(paths, observations)
    evidence["observed_fields"] = _read_observed_fields(document, observations)
    return evidence


def add_release(evidence: Json, document: Json, version: str, release: Release, facts: Json) -> None:
    """Add what a release shows, which is later than the releases in the evidence, or the last of them again."""
    if version not in evidence["releases"]:
        evidence["releases"].append(version)
    for name, fact in {**facts["inmemory_types"], **facts["types"]}.items():
        known = evidence["types"].setdefault(name, {"files": {}, "fields": {}})
        _add_file(known["files"], version, _file_of(release, fact["module"]))
        for field in fact.get("fields", {}):
            known["fields"].setdefault(field, version)
    paths = _operations_by_path(document)
    for fact in facts["endpoints"].values():
        for name in paths.get((fact["method"], _shape(fact["path"])), []):
            _add_operation(evidence["operations"], name, version, release, fact)
    constants = _read_constants(release)
    groups = (("headers", _header_names), ("statuses", _statuses), ("names", _specific_names))
    for group, list_names in groups:
        for name in list_names(document):
            file = constants.get(name.lower(), "")
            if file or name in evidence[group]:
                _add_file(evidence[group].setdefault(name, {}), version, file)


def _add_operation(operations: Json, name: str, version: str, release: Release, fact: Json) -> None:
    known = operations.setdefault(name, {"files": {}})
    _add_file(known["files"], version, _file_of(release, fact["sites"][0].partition(":")[0]))
    for group, key in (("query", "query"), ("body", "body_fields")):
        for item in fact.get(key) or ():
            known.setdefault(group, {}).setdefault(item, version)


def _add_file(files: dict[str, str], version: str, file: str) -> None:
    """Add the file of a release unless that of the release before has the same path."""
    if not files or next(reversed(files.values())) != file:
        files[version] = file


def _file_of(release: Release, module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}.py" if f"{path}.py" in release.files else f"{path}/__init__.py"


def _read_constants(release: Release) -> dict[str, str]:
    """Return the first file that has each text, and that compares or names each status."""
    found: dict[str, str] = {}
    for file in sorted(release.files):
        if PurePosixPath(file).stem.endswith("_test"):
            continue
        for node in ast.walk(ast.parse(release.files[file])):
            for name in _names_of(node):
                found.setdefault(name, file)
    return found


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.lower()
    if isinstance(node, ast.Compare) or _declares_status(node):
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and type(part.value) is int and 100 <= part.value <= 599:
                yield str(part.value)


def _declares_status(node: ast.AST) -> bool:
    """Return whether a class of errors declares the status that it stands for."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "status_code"


def _operations_by_path(document: Json) -> dict[tuple[str, str], list[str]]:
    paths: dict[tuple[str, str], list[str]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            paths.setdefault((method.upper(), _shape(path)), []).append(operation["operationId"])
    return paths


def _shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def _header_names(document: Json) -> list[str]:
    common = document.get("x-headers", {})
    names = {header["name"]: None for header in common.get("request", [])} | dict.fromkeys(common.get("response", {}))
    for item in document["paths"].values():
        for operation in item.values():
            names |= {p["name"]: None for p in operation.get("parameters", []) if p["in"] == "header"}
            for response in operation["responses"].values():
                names |= dict.fromkeys(response.get("headers", {}))
    return list(names)


def _specific_names(document: Json) -> list[str]:
    """Return the names of fields and parameters that can mean nothing else in the text of a release."""
    names = {name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})}
    for item in document["paths"].values():
        for operation in item.values():
            names |= {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
    return sorted(name for name in names if "_" in name)


def _statuses(document: Json) -> list[str]:
    statuses = {status for item in document["paths"].values() for op in item.values() for status in op["responses"]} - {
        "200",
        "default",
    }
    return sorted(statuses)


def _read_captures(document: Json, paths: dict[tuple[str, str], list[str]], captures: list[Json]) -> Json:
    """Return the versions whose captured bodies have each field, by schema."""
    operations = {op["operationId"]: op for item in document["paths"].values() for op in item.values()}
    found: Json = {}
    for capture in captures:
        for request in capture["requests"]:
            names = _match_path(paths, request["method"], f"/api/v1/{request['path']}")
            if request["body"] and names:
                content = operations[names[0]]["requestBody"]["content"].get("application/json", {})
                _walk_body(document, content.get("schema", {}), request["body"], capture["version"], found)
    return {name: dict(sorted(fields.items())) for name, fields in sorted(found.items())}


def _walk_body(document: Json, schema: Json, value: Any, version: str, found: Json) -> None:
    """Record the fields of a captured value, as far as the schema determines its type."""
    schemas = document["components"]["schemas"]
    name = schema.get("$ref", "").rpartition("/")[2]
    target = schemas.get(name, schema)
    members = [member for member in target.get("anyOf", []) if member != {"type": "null"}]
    if isinstance(value, list):
        items = target.get("items", members[0].get("items", {}) if members else {})
        for item in value:
            _walk_body(document, items, item, version, found)
    elif isinstance(value, dict) and members:
        fitting = [member for member in members if _fits(document, member, value)]
        if len(fitting) == 1:
            _walk_body(document, fitting[0], value, version, found)
    elif isinstance(value, dict):
        fields = target.get("properties", {})
        for key, item in value.items():
            if key in fields:
                versions = found.setdefault(name, {}).setdefault(key, [])
                versions += [] if version in versions else [version]
            inner = fields.get(key, target.get("additionalProperties"))
            if isinstance(inner, dict):
                _walk_body(document, inner, item, version, found)


def _fits(document: Json, member: Json, value: Json) -> bool:
    name = member.get("$ref", "").rpartition("/")[2]
    fields = document["components"]["schemas"].get(name, member).get("properties", {})
    tags = {key: field["const"] for key, field in fields.items() if "const" in field}
    return value.keys() <= fields.keys() and all(value.get(key, tag) == tag for key, tag in tags.items())


def _match_path(paths: dict[tuple[str, str], list[str]], method: str, path: str) -> list[str]:
    for (known_method, shape), names in paths.items():
        pattern = re.escape(shape).replace(r"\{\}", "[^/]+(?:/[^/]+)?")
        if known_method == method and re.fullmatch(pattern, path.partition("?")[0]):
            return names
    return []


def _read_observed_fields(document: Json, text: str) -> Json:
    """Return the servers whose errors have each field, by schema."""
    schemas = document["components"]["schemas"]
    bodies = {
        name: _servers_by_key(text, status)
        for item in document["paths"].values()
        for operation in item.values()
        for status, response in operation["responses"].items()
        for _, target in find_refs(response.get("content", {}))
        if status == "default" or status >= "400"
        for name in [target.rpartition("/")[2]]
    }
    observed: Json = {}
    while bodies:
        name, keys = bodies.popitem()
        fields = schemas[name].get("properties", {})
        found = {field: keys[field] for field in fields if field in keys}
        if found and name not in observed:
            observed[name] = found
            bodies |= {target.rpartition("/")[2]: keys for _, target in find_refs(fields)}
    return dict(sorted(observed.items()))


def _servers_by_key(text: str, status: str) -> dict[str, list[str]]:
    """Return the servers whose responses with a status, or with any error, have each key."""
    server = ""
    keys: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            heading = SERVER.match(line)
            server = heading[1] if heading else ""
        for _, _, seen, body in OBSERVATION.findall(line) if server else ():
            if seen == status or (status == "default" and seen >= "400"):
                for key in re.findall(r'"(\w+)":', body):
                    keys.setdefault(key, {})[server] = None
    return {key: list(servers) for key, servers in keys.items()}


def _read_observations(paths: dict[tuple[str, str], list[str]], text: str) -> Json:
    """Return the servers that responded with each status, by operation."""
    server = ""
    observed: Json = {}
    for line in text.splitlines():
        if line.startswith("## "):
            heading = SERVER.match(line)
            server = heading[1] if heading else ""
        for method, path, status, body in OBSERVATION.findall(line) if server else ():
            if any(missing in body for missing in MISSING_ROUTES):
                continue
            for name in _match_path(paths, method, f"/api/v1/{path}"):
                servers = observed.setdefault(name, {}).setdefault(status, [])
                servers += [] if server in servers else [server]
    return {name: dict(sorted(statuses.items())) for name, statuses in sorted(observed.items())}
