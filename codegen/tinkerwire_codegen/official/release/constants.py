"""Values of a release as JSON."""

from __future__ import annotations

import ast
from typing import Any

from . import defaults
from .modules import ReleaseModules
from .problems import UNREAD
from .values import Choice, Closure, Constant, Items, Mapping, Parameter, Source, Text, Value


def to_json(modules: ReleaseModules, value: Value) -> Any:
    """Convert a value to JSON; what only running the code would give becomes its source text."""
    if isinstance(value, Text):
        return value.constant if value.constant is not None else {UNREAD: value.render()}
    if isinstance(value, Constant):
        return value.value if value.value is not Ellipsis else {UNREAD: "..."}
    if isinstance(value, Items):
        return [to_json(modules, item) for item in value.values]
    if isinstance(value, Mapping) and not value.rest:
        return {name: to_json(modules, entry.value) for name, entry in value.entries.items()}
    if isinstance(value, Choice):
        return {"any of": [to_json(modules, option) for option in value.options]}
    if isinstance(value, Parameter):
        return {UNREAD: value.name}
    if isinstance(value, Source):
        try:
            return defaults.evaluate(modules, value.module, value.expression)
        except defaults.UnreadableDefault:
            return {UNREAD: ast.unparse(value.expression)}
    return {UNREAD: getattr(value.node, "name", "function") if isinstance(value, Closure) else "value"}
