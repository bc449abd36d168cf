"""Descriptions of models: JSON Schema from the contract, the fields by pydantic's names, and schemas for pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import attrs
import orjson

from ..conversion.versioning import SCHEMAS, union_document
from ..reflection import factory_of, field_name, fields_of, resolve_types

JsonSchema = dict[str, Any]


@attrs.frozen
class ModelField:
    """The description of a field; the names are those of pydantic's ``FieldInfo``."""

    annotation: Any
    """The type."""
    default: Any
    """The default, ``attrs.NOTHING`` for a required field or one with a factory."""
    default_factory: Callable[[], Any] | None
    """The function that makes the default."""
    alias: str | None
    """The key on the wire, if it differs from the name."""
    description: str | None
    """The meaning."""

    def is_required(self) -> bool:
        """Return whether the field is required."""
        return self.default is attrs.NOTHING and self.default_factory is None


@cache
def model_fields(cls: Any) -> Mapping[str, ModelField]:
    """Return the fields of a model by name; a base class of models has none."""
    if not attrs.has(cls):
        return {}
    own = _generated(cls)
    properties = _schemas(own.__module__).get(own.__name__, {}).get("properties", {})
    found = {}
    for attribute in fields_of(resolve_types(cls)):
        wire = attribute.metadata.get("wire")
        factory = factory_of(attribute)
        found[field_name(attribute)] = ModelField(
            annotation=attribute.type,
            default=attrs.NOTHING if factory else attribute.default,
            default_factory=factory,
            alias=wire,
            description=properties.get(wire or field_name(attribute), {}).get("description"),
        )
    return found


def json_schema(cls: Any, ref_template: str) -> JsonSchema:
    """Return the JSON Schema of a model, with the schemas it refers to under ``$defs``."""
    cls = _described(cls)
    schemas, used = _schemas(cls.__module__), [cls.__name__]
    for name in used:
        used += [other for other in dict.fromkeys(_names(schemas[name])) if other not in used]
    described = {name: _with_refs(schemas[name], ref_template) for name in used}
    referred = sorted({other for name in used for other in _names(schemas[name])})
    own = {"title": cls.__name__, **described[cls.__name__]}
    return {**own, "$defs": {name: described[name] for name in referred}} if referred else own


def inline_schema(cls: Any) -> JsonSchema:
    """Return the JSON Schema of a model without ``$defs``, for use inside another schema."""
    cls = _described(cls)
    return {"title": cls.__name__, **_inlined(_schemas(cls.__module__), cls.__name__, ())}


def core_schema(cls: Any) -> Any:
    """Return the core schema of a model: ``model_validate`` reads it, ``model_dump`` writes it."""
    from pydantic_core import core_schema as core  # noqa: PLC0415  (pydantic is calling)

    def write(value: Any, info: Any) -> Any:
        return value.model_dump(mode=info.mode, exclude_none=info.exclude_none, exclude_defaults=info.exclude_defaults)

    def read(value: Any) -> Any:
        try:
            return cls.model_validate(value)
        except TypeError as error:
            raise ValueError(str(error)) from None

    return core.no_info_plain_validator_function(
        read, serialization=core.plain_serializer_function_ser_schema(write, info_arg=True)
    )


def _generated(cls: Any) -> Any:
    """Return the generated class that a model is, or derives from."""
    return next(each for each in cls.__mro__ if "__attrs_attrs__" in vars(each))


def _described(cls: Any) -> Any:
    """Return the class of the contract that a model derives from; TypeError for a base class, which has no schema."""
    own = _generated(cls) if attrs.has(cls) else cls
    if own.__name__ not in _schemas(own.__module__):
        raise TypeError(f"{cls.__name__} has no JSON Schema: it is a base class, not a model of the contract")
    return own


@cache
def _schemas(module: str) -> JsonSchema:
    """Return the schemas of the contract that a module of models was generated from, of all its versions at once.

    Base classes of models live in a package without a contract, and have no schemas.
    """
    contract = files(module.rpartition(".")[0]).joinpath("contract.json")
    if not contract.is_file():
        return {}
    found: JsonSchema = union_document(orjson.loads(contract.read_bytes()))["components"]["schemas"]
    return {name: _plain(schema) for name, schema in found.items()}


def _plain(node: Any) -> Any:
    """Return a schema without the marks of the contract."""
    if isinstance(node, dict):
        return {
            key: _plain(value) for key, value in node.items() if not key.startswith("x-") and key != "discriminator"
        }
    return [_plain(item) for item in node] if isinstance(node, list) else node


def _with_refs(node: Any, template: str) -> Any:
    if isinstance(node, dict):
        return {
            key: template.format(model=value.removeprefix(SCHEMAS)) if key == "$ref" else _with_refs(value, template)
            for key, value in node.items()
        }
    return [_with_refs(item, template) for item in node] if isinstance(node, list) else node


def _names(node: Any) -> list[str]:
    """Return the names of the schemas that a schema refers to."""
    if isinstance(node, dict):
        own = [node["$ref"].removeprefix(SCHEMAS)] if "$ref" in node else []
        return own + [name for value in node.values() for name in _names(value)]
    return [name for item in node for name in _names(item)] if isinstance(node, list) else []


def _inlined(schemas: JsonSchema, name: str, outer: tuple[str, ...]) -> Any:
    def put(node: Any) -> Any:
        if isinstance(node, list):
            return [put(item) for item in node]
        if not isinstance(node, dict):
            return node
        target = node.get("$ref", "").removeprefix(SCHEMAS) if isinstance(node.get("$ref"), str) else ""
        rest = {key: put(value) for key, value in node.items() if key != "$ref"}
        if not target:
            return rest
        # A model within itself has no end; its inner schema stays open.
        inside = {"title": target} if target in (*outer, name) else _inlined(schemas, target, (*outer, name))
        return {**inside, **rest}

    return put(schemas[name])
