"""Checks of a bundled contract, which report each error with its place before a generator runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tinkerwire_base import mixins
from tinkerwire_base.conversion.versioning import parse_version

from .bundle import bundle, find_malformed_nodes, list_families_of_schemas
from .marks import MARKS, Problem, find_wrong_marks, is_version
from .proto_rules import find_proto_errors
from .rules import (
    META_VALIDATOR,
    find_family_cycles,
    find_invalid_earlier_schemas,
    find_missing_descriptions,
    find_reference_cycles,
    find_unknown_keywords,
    find_wrong_enums,
    find_wrong_names,
    find_wrong_operations,
    is_operation_name,
)
from .source import ContractFiles, read_files
from .structure import Part, list_parts

Json = dict[str, Any]


def check_contract(folder: Path) -> Json:
    """Load and check the contract in ``folder``; return its document.

    Raises:
        ValueError: the contract has errors; the text has one line for each, with file and line.
    """
    files = read_files(folder)
    malformed = [*files.errors, *find_malformed_nodes(files)]
    errors = [*malformed, *_rule_errors(files), *find_proto_errors(folder, _newest_version(files))]
    document: Json = {}
    if not malformed:
        document, dangling = bundle(files)
        errors += dangling
        problems = list(_document_problems(document, list_families_of_schemas(files), check_values=not dangling))
        errors += [f"{files.locate(place)}: {place}: {text}" for place, text in problems]
        if not dangling and not problems:
            # A missing description, for example, has a clearer message already.
            invalid = [(f"{files.locate(place)}: {place}: ", text) for place, text in _openapi_errors(document)]
            errors += [at + text for at, text in invalid if not any(error.startswith(at) for error in errors)]
    if errors:
        raise ValueError("the contract has errors:\n" + "\n".join(dict.fromkeys(errors)))
    return document


def _newest_version(files: ContractFiles) -> str:
    info = files.root.content.get("info") if files.root else None
    return str(info.get("version")) if isinstance(info, dict) else ""


def _rule_errors(files: ContractFiles) -> Iterator[str]:
    """Yield the parts of each file that break a rule, with file and line; also of files with malformed nodes."""
    newest = _newest_version(files)
    tags = files.root.content.get("tags") if files.root else None
    names = [tag.get("name") for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    for file in files.files:
        for part in list_parts(Part("#", "document", file.content)):
            for place, text in (
                *find_wrong_marks(part, newest),
                *find_missing_descriptions(part),
                *find_unknown_keywords(part),
                *find_wrong_enums(part),
                *find_invalid_earlier_schemas(part),
                *find_wrong_operations(part, names),
            ):
                yield f"{file.path}:{file.find_line(place)[1]}: {place}: {text}"


def _document_problems(document: Json, families: Mapping[str, str], *, check_values: bool) -> Iterator[Problem]:
    """Yield what is wrong with the schemas of the document, and what the generators cannot use."""
    schemas = document["components"]["schemas"]
    problems = list(_json_schema_errors(document))
    yield from problems
    # A check of values relies on schemas that are valid.
    if not problems:
        cycles = list(find_reference_cycles(schemas))
        yield from cycles
        yield from find_family_cycles(schemas, families)
        yield from _generator_errors(document)
        yield from find_wrong_names(document)
        if check_values and not cycles:
            yield from _wrong_defaults(document)


def _json_schema_errors(document: Json) -> Iterator[Problem]:
    """Yield the schemas that are not valid JSON Schema."""
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not isinstance(schema, dict):
            yield place, f"expected a mapping, got {schema!r:.100}"
            continue
        for error in META_VALIDATOR.iter_errors(schema):
            steps = "".join(f"/{step}" for step in error.absolute_path)
            yield f"{place}{steps}", f"{error.instance!r:.100} is not valid JSON Schema"
        for field, detail in schema.get("properties", {}).items():
            if isinstance(detail, bool):
                yield f"{place}/properties/{field}", f"expected a mapping, got {detail!r:.100}"


def _generator_errors(document: Json) -> Iterator[Problem]:
    """Yield what the generators cannot use: bad names, unknown fields in marks, wrong defaults."""
    yield from _invalid_versions(document["info"])
    yield from _repeated_constants(document["components"]["schemas"])
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not name.isidentifier():
            yield place, f"{name!r} cannot be the name of a class"
        if schema.get("x-mixin") and not hasattr(mixins, str(schema["x-mixin"])):
            yield place, f"x-mixin {schema['x-mixin']} is not in tinkerwire_base.mixins"
        yield from _invalid_constants(place, schema)
        yield from _ambiguous_members(place, schema, document["components"]["schemas"])
        properties = schema.get("properties", {})
        for field in _value_of_mark(schema, "x-essential", []):
            if field not in properties:
                yield place, f"x-essential {field!r} is not one of its properties"
        yield from (
            (place, f"required {field!r} is not one of its properties")
            for field in _missing_properties(schema, properties)
        )
        for field, detail in properties.items():
            if "enum" in detail or "properties" in detail:
                yield f"{place}/properties/{field}", "must be a $ref to a named schema under components.schemas"
    names: dict[str, str] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not isinstance(operation, dict):
                continue
            name = operation.get("operationId")
            if not is_operation_name(name):
                yield (
                    f"#/paths/{path}/{method}",
                    "operationId must be words in lower case with single underscores between them, "
                    f"because it names a function; got {name!r:.100}",
                )
            owner = names.setdefault(str(name), f"{method} {path}")
            if owner != f"{method} {path}":
                yield f"#/paths/{path}/{method}", f"operationId {name} is that of {owner} already"
            yield from _wrong_parameters(path, method, operation)
            result = _value_of_mark(operation, "x-result", None)
            if result is not None and result not in document["components"]["schemas"]:
                yield f"#/paths/{path}/{method}", f"x-result {result!r} is not the name of a schema"


def _wrong_parameters(path: str, method: str, operation: Json) -> Iterator[Problem]:
    """Yield a message for each parameter that only the path has, only the operation, or the operation twice."""
    parameters = [parameter for parameter in operation.get("parameters", []) if isinstance(parameter, dict)]
    known = [(parameter.get("in"), parameter.get("name")) for parameter in parameters]
    for index, (kind, name) in enumerate(known):
        if (kind, name) in known[:index]:
            yield f"#/paths/{path}/{method}/parameters/{index}", f"{kind} parameter {name!r} is listed twice; keep one"
    declared = {str(parameter.get("name")) for parameter in parameters if parameter.get("in") == "path"}
    for name in sorted(declared ^ {*re.findall(r"{(\w+)}", path)}):
        text = "is declared, but not in the path" if name in declared else "is in the path, but not declared"
        yield f"#/paths/{path}/{method}", f"parameter {name!r} {text}"


def _wrong_defaults(document: Json) -> Iterator[Problem]:
    """Yield the defaults of properties that their schemas reject."""
    components = document["components"]
    for name, schema in components["schemas"].items():
        for field, detail in schema.get("properties", {}).items():
            if "default" in detail:
                for error in Draft202012Validator({**detail, "components": components}).iter_errors(detail["default"]):
                    yield f"#/components/schemas/{name}/properties/{field}/default", error.message


def _value_of_mark(node: Json, mark: str, default: Any) -> Any:
    """Return the value of a mark, or the default for a value of a wrong type, which is reported elsewhere."""
    return node[mark] if mark in node and MARKS[mark][0](node[mark]) else default


def _invalid_versions(info: Json) -> Iterator[Problem]:
    """Yield a message unless the contract lists its versions in order, up to its own version."""
    versions = info.get("x-versions")
    if not is_version(info.get("version")):
        version = info.get("version")
        yield "#/info/version", f"must be a version in quotes, such as '0.16.1', got {version!r:.100}"
        return
    if not isinstance(versions, list) or not versions:
        yield (
            "#/info",
            f"x-versions must list the wire versions, such as [{info.get('version')}], got {versions!r:.100}",
        )
        return
    if not MARKS["x-versions"][0](versions):
        return
    if versions != sorted(set(versions), key=parse_version):
        yield "#/info/x-versions", "the versions must be in order and differ"
    if versions[-1] != info.get("version"):
        yield "#/info/x-versions", f"the last version must be the version of the contract, {info.get('version')}"
    if info.get("x-models-since") not in versions:
        yield "#/info", f"x-models-since must be one of x-versions, got {info.get('x-models-since')!r}"


def _repeated_constants(schemas: Json) -> Iterator[Problem]:
    """Yield a message for each constant that an earlier schema defines too."""
    owners: dict[str, str] = {}
    for schema_name, schema in schemas.items():
        for name in _value_of_mark(schema, "x-constants", {}):
            owner = owners.setdefault(name, schema_name)
            if owner != schema_name:
                yield f"#/components/schemas/{schema_name}/x-constants", f"{name} is a constant of {owner} already"


def _invalid_constants(place: str, schema: Json) -> Iterator[Problem]:
    """Yield a message for every constant that no Python constant can express."""
    for name, value in _value_of_mark(schema, "x-constants", {}).items():
        if not (name.isidentifier() and name.isupper()):
            yield f"{place}/x-constants", f"{name!r} must be the name of a constant, such as MAX_INPUTS"
        values = value.values() if isinstance(value, dict) else [value]
        if not all(isinstance(item, str) or (item is value and type(item) is int) for item in values):
            yield (
                f"{place}/x-constants/{name}",
                f"expected a text, an integer, or a mapping of texts, got {value!r:.100}",
            )


def _ambiguous_members(place: str, union: Json, schemas: Json) -> Iterator[Problem]:
    """Yield a message for each member of a union of objects that no tag selects."""
    names = [member.get("$ref", "").rpartition("/")[2] for member in union.get("anyOf", [])]
    objects = {name: schemas[name]["properties"] for name in names if "properties" in schemas.get(name, {})}
    tag = union.get("discriminator", {}).get("propertyName")
    if tag is None:
        if len(objects) > 1 and not union.get("x-untagged"):
            yield place, "a union of objects must have a discriminator, or the mark x-untagged"
        return
    mapping = union["discriminator"].get("mapping", {})
    for name, properties in objects.items():
        value = properties.get(tag, {}).get("const")
        if mapping.get(value, "").rpartition("/")[2] != name:
            yield (
                f"{place}/discriminator",
                f"{name}.{tag} must be a const that the mapping maps to {name}, got {value!r}",
            )


def _missing_properties(schema: Json, properties: Json) -> list[str]:
    return [field for field in schema.get("required", []) if field not in properties]


def _openapi_errors(document: Json) -> Iterator[Problem]:
    """Yield the errors of the OpenAPI validator."""
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        steps = "".join(f"/{step}" for step in error.absolute_path)
        # The rest of the message repeats schema and instance.
        yield f"#{steps}", error.message.partition("\n")[0][:300]
