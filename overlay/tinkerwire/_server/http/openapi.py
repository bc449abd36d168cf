"""The contract of the wire version that is served, read once per process."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

from tinkerwire_base.conversion.versioning import OLDEST_MODELS_VERSION, parse_version, project
from tinkerwire_generated.availability import NEWEST

Json = dict[str, Any]


@lru_cache(maxsize=8)
def contract(wire_version: str) -> Json:
    """The plain OpenAPI document of one wire version; do not change it.

    Raises:
        ValueError: not a version, or one that the contract does not reach.
    """
    if parse_version(wire_version) > parse_version(NEWEST):
        raise ValueError(f"wire version {wire_version} is newer than {NEWEST}, the newest that the contract describes")
    if parse_version(wire_version) < parse_version(OLDEST_MODELS_VERSION):
        raise ValueError(
            f"wire version {wire_version} is older than {OLDEST_MODELS_VERSION}, the oldest that is served"
        )
    document = project(_all_versions(), wire_version)
    document["info"]["version"] = wire_version
    return document


@lru_cache(maxsize=1)
def _all_versions() -> Json:
    found: Json = orjson.loads(files("tinkerwire_generated").joinpath("contract.json").read_bytes())
    return found


def resolve(document: Json, schema: Json) -> Json:
    """The schema that a reference points to, or the schema itself."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema
