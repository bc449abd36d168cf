"""Plain documents of the contract of this tree. Each is built once in a process, since building one takes 0.2 s."""

from __future__ import annotations

import pickle
from functools import cache, partial
from pathlib import Path
from typing import Any

from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.contract.export import build_openapi, export

SCHEMA = Path(__file__).parents[2] / "schema"
VERSIONS: list[str] = load(SCHEMA)["info"]["x-versions"]
export_text = cache(partial(export, SCHEMA))
"""Export a version in a format."""


def openapi_document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document of a version; the caller may change it."""
    document: dict[str, Any] = pickle.loads(_pickle_document(version))
    return document


@cache
def _pickle_document(version: str) -> bytes:
    return pickle.dumps(build_openapi(SCHEMA, version))
