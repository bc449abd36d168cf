"""The contract of a wire version, as an OpenAPI document."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

from tinkerwire_base.conversion.versioning import parse_version, project
from tinkerwire_generated.availability import NEWEST, OLDEST_MODELS_VERSION

Document = dict[str, Any]


@lru_cache(maxsize=8)
def load_contract(wire_version: str) -> Document:
    """Return the OpenAPI document of one wire version, which callers must not modify.

    Raises:
        ValueError: the version is invalid, or the contract does not describe it.
    """
    if parse_version(wire_version) > parse_version(NEWEST):
        raise ValueError(f"wire version must be {NEWEST} or older, got {wire_version}")
    if parse_version(wire_version) < parse_version(OLDEST_MODELS_VERSION):
        raise ValueError(f"wire version must be {OLDEST_MODELS_VERSION} or newer, got {wire_version}")
    document = project(_load_all_versions(), wire_version)
    document["info"]["version"] = wire_version
    return document


@lru_cache(maxsize=1)
def _load_all_versions() -> Document:
    document: Document = orjson.loads(files("tinkerwire_generated").joinpath("contract.json").read_bytes())
    return document


def resolve_reference(document: Document, schema: Document) -> Document:
    """Return the schema that a reference points to, or the schema itself."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema
