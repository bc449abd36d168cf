"""Names that the alias generators of pydantic make of the names of fields."""

from __future__ import annotations

import re


def generate_alias(generator: str, name: str) -> str | None:
    """Return the alias of a field by the source of its generator; None for a generator that is not known."""
    match = re.search(r"AliasGenerator\((.*)\)", generator)
    if match:
        parts = dict(re.findall(r"(\w+)=([\w.]+)", match[1]))
        chosen = parts.get("serialization_alias") or parts.get("alias")
        return generate_alias(chosen, name) if chosen else name
    function = generator.rpartition(".")[2]
    if function == "to_camel":
        return to_camel(name)
    if function == "to_pascal":
        return to_pascal(name)
    return to_snake(name) if function == "to_snake" else name if function == "None" else None


def to_pascal(name: str) -> str:
    """Convert snake_case to PascalCase."""
    return re.sub("([0-9A-Za-z])_(?=[0-9A-Z])", lambda match: match[1], name.title())


def to_camel(name: str) -> str:
    """Convert snake_case to camelCase."""
    if re.match("^[a-z]+[A-Za-z0-9]*$", name) and not re.search(r"\d[a-z]+", name):
        return name
    return re.sub("(^_*[A-Z])", lambda match: match[1].lower(), to_pascal(name))


def to_snake(name: str) -> str:
    """Convert CamelCase to snake_case."""
    for pattern in ("([A-Z]+)([A-Z][a-z])", "([a-z])([A-Z])", "([0-9])([A-Z])", "([a-z])([0-9])"):
        name = re.sub(pattern, lambda match: f"{match[1]}_{match[2]}", name)
    return name.replace("-", "_").lower()
