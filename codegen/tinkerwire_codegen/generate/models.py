"""Generation of attrs models from the contract, by datamodel-code-generator with our class template."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinkerwire_base import mixins
from tinkerwire_base.conversion.versioning import is_marked_protobuf_only, union_document
from tinkerwire_base.validators import INT64_MAX, INT64_MIN

from ..contract.bundle import find_refs

TEMPLATES = Path(__file__).parent / "templates" / "models"
CHECKS = ["at_least", "at_most", "field_validator", "has_size", "matches"]
"""The names that the class template uses from tinkerwire_base.validators; unused imports are removed later."""
ALIASES = {name: f"{name}_" for name in [*CHECKS, "extra_fields", "self"]}
"""Python names of fields whose own names the class body needs; on the wire they keep their names."""

OPTIONS = [
    *("--input-file-type", "openapi"),
    *("--output-model-type", "msgspec.Struct"),
    *("--custom-template-dir", str(TEMPLATES)),
    "--disable-timestamp",
    "--disable-warnings",
    *("--target-python-version", "3.10"),
    "--use-tuple-for-closed-arrays",
    *("--enum-field-as-literal", "all"),
    "--use-schema-description",
    "--use-field-description",
    *("--output-datetime-class", "datetime"),
    "--no-use-annotated",
    "--field-constraints",
    "--keep-model-order",
    "--use-union-operator",
    *("--formatters", "ruff-check", "ruff-format"),
    "--import-overrides",
    json.dumps({"UNSET": "tinkerwire_base.unset", "UnsetType": "tinkerwire_base.unset", "field": "attrs"}),
]


def generate_models(document: dict[str, Any], work: Path) -> str:
    """Return the source of all models, of all wire versions together, as one module."""
    everything = _without_bounds(union_document(document))
    for name, schema in _schemas(everything).items():
        if "properties" not in schema:
            description = "\n".join(textwrap.wrap(str(schema.get("description", name)), 110))
            schema["description"] = f"{description}\n\nWire: {span(_schemas(document)[name])}."
    source, details, output = work / "models.json", work / "details.json", work / "models.py"
    aliases = work / "aliases.json"
    source.write_text(json.dumps(everything))
    details.write_text(json.dumps(template_data(document, everything)))
    aliases.write_text(json.dumps(ALIASES))
    mixin_names = sorted({s["x-mixin"] for s in _schemas(document).values() if "x-mixin" in s})
    imports = [f"tinkerwire_base.mixins.{name}" for name in mixin_names]
    imports += ["tinkerwire_base.compat.dataclass_methods.DataclassMethods"]
    imports += [f"tinkerwire_base.validators.{name}" for name in CHECKS]
    imports += [f"tinkerwire_base.model.{name}" for name in ("AllowExtra", "Array", "ForbidExtra", "define")]
    constants = sorted({name for mixin in mixin_names for name in _constants_of(mixin)})
    imports += [f"tinkerwire_generated.constants.{name}" for name in constants]
    # The generator imports it only for defaults, but the template also for checks.
    imports += ["collections.abc.Sequence", "attrs.field"]
    command = [
        sys.executable,
        "-m",
        "datamodel_code_generator",
        "--input",
        str(source),
        "--output",
        str(output),
    ]
    command += [*OPTIONS, "--extra-template-data", str(details), "--additional-imports", ",".join(imports)]
    command += ["--aliases", str(aliases)]
    if find_spec("datamodel_code_generator") is None:
        raise RuntimeError(
            "datamodel-code-generator is not installed; with Python 3.11 or newer, install the extra: "
            "pip install 'tinkerwire[codegen]'"
        )
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
    if run.returncode:
        raise RuntimeError(f"datamodel-code-generator failed on the contract:\n{run.stdout}{run.stderr}")
    return output.read_text(encoding="utf-8").partition("from __future__")[2].join(["from __future__", ""])


def template_data(document: dict[str, Any], everything: dict[str, Any]) -> dict[str, Any]:
    """Return the data of the class template that the generator lacks, by class name."""
    data = {}
    sent_names, untagged_names = _find_sent_models(everything), _find_untagged_models(everything)
    for name, schema in _schemas(everything).items():
        original = _schemas(document)[name]
        mixin = getattr(mixins, schema.get("x-mixin") or "", None)
        converts, dual = getattr(mixin, "_converts", ()), getattr(mixin, "_dual_fields", ())
        fields = {
            field: {
                "doc": _field_doc(detail, original.get("properties", {}).get(field, {})),
                "array": _find(detail, "x-array"),
                "protobuf_only": is_marked_protobuf_only(detail),
                "converts": field in converts,
                "has_two_forms": field in dual,
                "base64": _find(detail, "contentEncoding") == "base64",
                "until": original.get("properties", {}).get(field, {}).get("x-until"),
                "starts_as": _starts_as(detail, _schemas(everything)),
            }
            for field, detail in schema.get("properties", {}).items()
        }
        facts = {"mixin": schema.get("x-mixin"), "wire": span(original), "sent": name in sent_names}
        facts["constants"] = list(_constants_of(schema.get("x-mixin")))
        facts["dataclass"] = schema.get("x-dataclass")
        facts["essential"] = schema.get("x-essential")
        facts["untagged"] = name in untagged_names
        facts["doc"] = _escape_docstring(original.get("description", "")) or f"{name}."
        facts["example"] = original.get("x-example", "").splitlines()
        data[name] = {"contract": {**facts, "fields": fields}}
    return data


def _constants_of(mixin: str | None) -> tuple[str, ...]:
    """Return the constants of the contract that a mixin reads from its class."""
    return getattr(getattr(mixins, mixin or "", None), "_constants", ())


def _starts_as(detail: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> str | None:
    """Return the member of a union that a default such as {type: adamw} selects by its tag."""
    default = detail.get("default")
    if not isinstance(default, dict) or not default:
        return None
    members = [
        target.rpartition("/")[2] for _, target in find_refs(schemas[detail["$ref"].rpartition("/")[2]]["anyOf"])
    ]
    tags = {
        member: {name: part.get("const") for name, part in schemas[member]["properties"].items()} for member in members
    }
    return next(member for member in members if tags[member] == default)


def _find_sent_models(document: dict[str, Any]) -> set[str]:
    """Return the schemas of requests: models validate values of users, but not values of servers."""
    schemas = _schemas(document)
    bodies = [op["requestBody"] for item in document["paths"].values() for op in item.values() if "requestBody" in op]
    names: set[str] = set()
    targets = [target for _, target in find_refs(bodies)]
    while targets:
        name = targets.pop().rpartition("/")[2]
        if name in schemas and name not in names:
            names.add(name)
            targets += [target for _, target in find_refs(schemas[name])]
    return names


def _find_untagged_models(document: dict[str, Any]) -> set[str]:
    """Return the members of the unions whose discriminator clients may leave out."""
    unions = [union for union in _schemas(document).values() if union.get("x-untagged") and "discriminator" in union]
    return {target.rpartition("/")[2] for union in unions for _, target in find_refs(union["anyOf"])}


def _without_bounds(node: Any) -> Any:
    """Return a document without the bounds for which the generator would invent type names.

    These are 64 bits, which require_int checks, and the sizes of nullable arrays, which servers check.
    """
    if isinstance(node, dict):
        bounds = (("minimum", INT64_MIN), ("maximum", INT64_MAX))
        schema = {key: value for key, value in node.items() if (key, value) not in bounds}
        if "anyOf" in schema:
            schema = {**schema, "anyOf": [_without(member, "minItems", "maxItems") for member in schema["anyOf"]]}
        return {key: _without_bounds(value) for key, value in schema.items()}
    return [_without_bounds(item) for item in node] if isinstance(node, list) else node


def _without(node: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _find(detail: dict[str, Any], key: str) -> Any:
    """Return the keyword of a property or of a member of its union."""
    return detail.get(key) or next((m[key] for m in detail.get("anyOf", []) if key in m), None)


def span(node: dict[str, Any]) -> str:
    """Describe the wire versions that have a node."""
    since, until = node.get("x-since", ""), node.get("x-until")
    return f"{since} to before {until}" if until else f"{since} and later" if since else "all versions"


def _field_doc(detail: dict[str, Any], original: dict[str, Any]) -> str:
    times = f" (wire {span(original)})" if "x-since" in original or "x-until" in original else ""
    return _escape_docstring(f"{detail.get('description', '')}{times}")


def _escape_docstring(text: str) -> str:
    """Return a text on one line, escaped for a docstring."""
    escaped = " ".join(str(text).split()).replace("\\", r"\\").replace('"""', r"\"\"\"")
    return escaped[:-1] + r"\"" if escaped.endswith('"') else escaped


def _schemas(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    schemas: dict[str, dict[str, Any]] = document["components"]["schemas"]
    return schemas
