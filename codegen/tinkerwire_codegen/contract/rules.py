"""Rules for the parts of a contract: descriptions, tags, keywords and references."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from jsonschema import Draft202012Validator

from .bundle import find_refs
from .marks import Problem
from .structure import PARTS, Part

Json = dict[str, Any]
META_VALIDATOR = Draft202012Validator(
    Draft202012Validator.META_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
)
"""Validator of schemas, patterns included."""
SCHEMAS = "#/components/schemas/"
DESCRIBED = frozenset({"named schema", "property", "operation", "parameter", "header", "response"})
"""The kinds of parts that need a description; the generated code has it as a docstring."""
SHARED = frozenset({"parameter", "header", "response"})
"""The kinds of parts that can be a reference to a shared one, which has the description."""
OPERATION_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
KEYWORDS = frozenset(
    re.findall(
        r"\S+",
        """
        $anchor $comment $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary additionalProperties
        allOf anyOf const contains contentEncoding contentMediaType contentSchema default dependentRequired
        dependentSchemas deprecated description discriminator else enum example examples exclusiveMaximum
        exclusiveMinimum externalDocs format if items maxContains maxItems maxLength maxProperties maximum
        minContains minItems minLength minProperties minimum multipleOf not oneOf pattern patternProperties
        prefixItems properties propertyNames readOnly required then title type unevaluatedItems
        unevaluatedProperties uniqueItems writeOnly xml
        """,
    )
)
"""The keywords of JSON Schema 2020-12 and OpenAPI 3.1."""


def is_operation_name(name: object) -> bool:
    """Report whether a value can be an operationId.

    Generators of clients change any other name, each in its own way, so that their functions would differ from ours.
    """
    return isinstance(name, str) and OPERATION_NAME.fullmatch(name) is not None and not keyword.iskeyword(name)


def find_missing_descriptions(part: Part) -> Iterator[Problem]:
    """Yield the place of a part that needs a description and has none."""
    is_earlier = part.kind == "earlier schema"
    if (part.kind not in DESCRIBED and not is_earlier) or not isinstance(part.node, dict):
        return
    if (part.kind in SHARED and "$ref" in part.node) or (is_earlier and "description" not in part.node):
        return
    for key in ("summary", "description") if part.kind == "operation" else ("description",):
        text = part.node.get(key)
        if text is None or (isinstance(text, str) and not text.strip()):
            yield part.place, f"has no {key}; write one sentence"
        elif not isinstance(text, str):
            yield f"{part.place}/{key}", f"expected a text, got {text!r:.100}"


def find_unknown_keywords(part: Part) -> Iterator[Problem]:
    """Yield the keywords of a schema that are neither of JSON Schema nor a mark."""
    if part.kind in ("schema", "named schema", "property", "earlier schema") and isinstance(part.node, dict):
        for key in part.node:
            if key not in KEYWORDS and not key.lower().startswith(("x-", "x_")):
                yield f"{part.place}/{key}", f"{key!r} is not a keyword of JSON Schema; correct or remove it"


def find_wrong_enums(part: Part) -> Iterator[Problem]:
    """Yield repeated values of an enum, and versions of values that the enum does not list."""
    if not isinstance(part.node, dict) or not isinstance(part.node.get("enum"), list):
        return
    values = [json.dumps(value, sort_keys=True) for value in part.node["enum"]]
    for index, value in enumerate(values):
        if value in values[:index]:
            yield f"{part.place}/enum/{index}", f"the value {value} is listed twice; keep one"
    known = {value if isinstance(value, str) else json.dumps(value) for value in part.node["enum"]}
    for mark in ("x-enum-since", "x-enum-until"):
        versions = part.node.get(mark)
        for name in versions if isinstance(versions, dict) else ():
            if name not in known:
                yield f"{part.place}/{mark}/{name}", f"{name!r} is not a value of the enum; correct or remove it"


def find_invalid_earlier_schemas(part: Part) -> Iterator[Problem]:
    """Yield what is not valid JSON Schema in an earlier form."""
    if part.kind == "earlier schema":
        for error in META_VALIDATOR.iter_errors(part.node):
            steps = "".join(f"/{step}" for step in error.absolute_path)
            yield f"{part.place}{steps}", f"{error.instance!r:.100} is not valid JSON Schema"


def find_wrong_names(document: Json) -> Iterator[Problem]:
    """Yield repeated tags, and names of operations and security schemes that the document lacks."""
    tags = [tag.get("name") for tag in document.get("tags", [])]
    yield from (
        (f"#/tags/{index}", f"tag {name!r} is listed twice; keep one")
        for index, name in enumerate(tags)
        if name in tags[:index]
    )
    schemes = document["components"].get("securitySchemes", {})
    yield from _find_unknown_schemes("#", document, schemes)
    operations = {
        f"#/paths/{path}/{method}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, dict)
    }
    names = {operation.get("operationId") for operation in operations.values()}
    for place, operation in operations.items():
        yield from _find_unknown_schemes(place, operation, schemes)
        for status, response in operation.get("responses", {}).items():
            for name, link in response.get("links", {}).items():
                if link.get("operationId") not in names:
                    target = f"operationId {link.get('operationId')!r} is not an operation; correct the name"
                    yield f"{place}/responses/{status}/links/{name}", target


def _find_unknown_schemes(place: str, node: Json, schemes: Json) -> Iterator[Problem]:
    for index, requirement in enumerate(node.get("security", [])):
        for name in requirement:
            if name not in schemes:
                yield f"{place}/security/{index}", f"security scheme {name!r} does not exist; define it in openapi.yaml"


def find_wrong_operations(part: Part, tags: list[Any]) -> Iterator[Problem]:
    """Yield an error unless an operation has one tag of the document, and responses; its path has nothing else."""
    if part.kind == "path" and isinstance(part.node, dict):
        for key in part.node.keys() - PARTS["path"].keys() | part.node.keys() & {"parameters"}:
            yield f"{part.place}/{key}", "paths contain operations only; move it into each of them"
    if part.kind != "operation" or not isinstance(part.node, dict):
        return
    if not isinstance(part.node.get("responses"), dict):
        yield part.place, "has no responses; a default response is required"
    elif "default" not in part.node["responses"]:
        yield f"{part.place}/responses", "has no default response; describe the body of errors"
    used = part.node.get("tags")
    if not isinstance(used, list) or len(used) != 1:
        yield part.place, f"tags must list one tag of openapi.yaml, got {used!r:.100}"
    elif used[0] not in tags:
        yield f"{part.place}/tags", f"tag {used[0]!r} is unknown; use one of {', '.join(map(str, tags)) or 'none'}"


def find_reference_cycles(schemas: Json) -> Iterator[Problem]:
    """Yield the cycles of schemas that refer to each other without an object or an array between."""
    graph = {name: set(_list_direct_targets(schema)) for name, schema in schemas.items()}
    for cycle in _find_cycles(graph):
        yield f"{SCHEMAS}{cycle[0]}", f"refers to itself: {' -> '.join(cycle)}; put an object or an array between"


def find_family_cycles(schemas: Json, families: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the cycles of families whose schemas refer to each other."""
    uses: dict[str, dict[str, tuple[str, str]]] = {}
    for name, schema in schemas.items():
        for _, target in find_refs(_without_history(schema)):
            used = target.removeprefix(SCHEMAS).partition("/")[0]
            if used in families and families[used] != families[name]:
                uses.setdefault(families[name], {}).setdefault(families[used], (name, used))
    for cycle in _find_cycles({family: set(targets) for family, targets in uses.items()}):
        steps = [(family, *uses[family][target], target) for family, target in pairwise(cycle)]
        texts = [f"{user} of {family} refers to {used} of {target}" for family, user, used, target in steps]
        text = f"families must not refer to each other: {'; '.join(texts)}; move one of these schemas"
        yield f"{SCHEMAS}{steps[0][1]}", f"{text} to another family"


def _list_direct_targets(schema: Any) -> Iterator[str]:
    """Yield the schemas that describe the same value as ``schema``."""
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"].removeprefix(SCHEMAS)
    for key in ("anyOf", "oneOf", "allOf"):
        for member in schema.get(key, []):
            yield from _list_direct_targets(member)


def _without_history(node: Any) -> Any:
    """Return a node without its earlier forms, from which no code is generated."""
    if isinstance(node, list):
        return [_without_history(item) for item in node]
    if isinstance(node, dict):
        return {key: _without_history(item) for key, item in node.items() if key != "x-history"}
    return node


def _find_cycles(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield cycles, each from a name to itself, until the graph without one step of each has none."""
    edges = {name: set(targets) for name, targets in graph.items()}
    while True:
        try:
            TopologicalSorter({name: sorted(targets) for name, targets in edges.items()}).prepare()
        except CycleError as error:
            # graphlib lists a cycle from the target of a reference to its user.
            cycle: list[str] = error.args[1][::-1]
            yield cycle
            edges[cycle[0]].remove(cycle[1])
        else:
            return
