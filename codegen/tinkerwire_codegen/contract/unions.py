"""Tagged unions of a plain document, as oneOf with a discriminator."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def write_tagged_unions(document: Json) -> Json:
    """Write each union that has a discriminator as oneOf, and require the tag in its members."""
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        tag = schema.get("discriminator", {}).get("propertyName")
        if tag is not None:
            schemas[name] = {"oneOf" if key == "anyOf" else key: value for key, value in schema.items()}
            for target in schema["discriminator"]["mapping"].values():
                _require(schemas[target.rpartition("/")[2]], tag)
    return document


def _require(schema: Json, field: str) -> None:
    if field not in schema.get("required", []):
        names = {*schema.get("required", []), field}
        schema["required"] = [name for name in schema["properties"] if name in names]
