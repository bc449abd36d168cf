"""YAML text of new nodes, in the style of the contract."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import yaml

WIDTH = 120
Place = tuple[str, ...]

BLOCK_KEYS = frozenset(
    {"properties", "responses", "requestBody", "parameters", "paths", "components", "schemas", "discriminator"}
)
"""Keys whose mappings are always written as a block."""
LATE_KEYS = ("default", "description")
"""Keys that come last in a property on one line."""
_LONG = 10**9


def render_value(value: Any, place: Place, indent: int, column: int) -> str:
    """Render a value behind its key or dash: on the same line if it fits, otherwise as a block below.

    ``indent`` is the column of the block's lines; ``column`` is the length of the line so far.
    """
    if isinstance(value, str):
        return " " + render_text(value, indent, column + 1)
    if not isinstance(value, dict | list) or not value:
        return " " + render_flow(value)
    if not is_block(value, place):
        flow = render_flow(value)
        if column + 1 + len(flow) <= WIDTH:
            return " " + flow
    return "\n" + render_block(value, place, indent)


def render_block(value: Any, place: Place, indent: int) -> str:
    """Render a mapping or a list as lines of a block, without the last line end."""
    pad = " " * indent
    if isinstance(value, list):
        return "\n".join(pad + render_item(item, place, indent) for item in value)
    return "\n".join(pad + render_pair(key, item, place, indent) for key, item in value.items())


def render_pair(key: str, value: Any, place: Place, indent: int) -> str:
    """Render a key and its value; the first line is without indentation."""
    start = f"{render_flow(key)}:"
    # The items of a list are two columns to the right of their key.
    return start + render_value(value, (*place, str(key)), indent + 2, indent + len(start))


def render_item(value: Any, place: Place, indent: int) -> str:
    """Render an item of a list with its dash; the first line is without indentation."""
    text = render_value(value, (*place, "-"), indent + 2, indent + 1)
    return "-" + (" " + text.lstrip() if text.startswith("\n") else text)


def render_text(text: str, indent: int, column: int) -> str:
    """Render a string: plain or quoted if it fits, otherwise folded."""
    line = yaml.dump({"k": text}, width=_LONG, allow_unicode=True)[3:].strip()
    if column + len(line) <= WIDTH and "\n" not in line:
        return line
    if re.fullmatch(r"\S+(?: \S+)*", text):
        pad = " " * indent
        lines = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
        return ">-\n" + "\n".join(pad + part for part in lines)
    return yaml.dump({"k": text}, width=_LONG, allow_unicode=True, default_style='"').partition(": ")[2].strip()


def render_flow(value: Any) -> str:
    """Render a value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{render_flow(key)}: {render_flow(item)}" for key, item in _order_pairs(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render_flow, value)) + "]"
    return yaml.dump([value], default_flow_style=True, width=_LONG, allow_unicode=True).strip()[1:-1]


def is_block(value: Any, place: Place) -> bool:
    """Report whether a node is written as a block even if it fits on one line."""
    if place[-1:] and place[-1] in BLOCK_KEYS:
        return True
    if place[:1] == ("components",) and len(place) <= 3:
        return True
    if place[:1] == ("paths",) and len(place) <= 3:
        return True
    if not isinstance(value, dict | list):
        return False
    if isinstance(value, list):
        return any(is_block(item, (*place, "-")) for item in value)
    return "description" in value and any(
        isinstance(item, dict) or key == "$ref" or (isinstance(item, list) and _has_mapping(item))
        for key, item in value.items()
        if key != "schema"
    )


def _has_mapping(items: list[Any]) -> bool:
    return any(isinstance(item, dict) for item in items)


def _order_pairs(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    if "type" not in value:
        return list(value.items())
    late = [(key, value[key]) for key in LATE_KEYS if key in value]
    return [(key, item) for key, item in value.items() if key not in LATE_KEYS] + late
