"""Strings with variable parts: joined, stripped and filled templates."""

from __future__ import annotations

import ast
import re
import string

from .classify import last_name
from .values import Constant, Hole, Parameter, Source, Text, Value


def join_parts(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    """Return the parts of a text with neighbouring strings joined."""
    joined: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined) or ("",)


def strip_text(text: Text, method: str, argument: Value | None) -> Text:
    """Apply a method of strings that removes characters from the ends, or changes the case."""
    characters = argument.constant if isinstance(argument, Text) else None
    parts = list(text.parts)
    if method in ("strip", "lstrip") and isinstance(parts[0], str):
        parts[0] = parts[0].lstrip(characters)
    if method in ("strip", "rstrip") and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip(characters)
    if method == "removeprefix" and isinstance(parts[0], str) and characters:
        parts[0] = parts[0].removeprefix(characters)
    if method == "removesuffix" and isinstance(parts[-1], str) and characters:
        parts[-1] = parts[-1].removesuffix(characters)
    if method == "lower":
        parts = [part.lower() if isinstance(part, str) else part for part in parts]
    return Text(join_parts(parts))


def fill_percent(text: str, values: list[list[str | Hole]], named: dict[str, list[str | Hole]]) -> list[str | Hole]:
    """Replace the fields of a % template."""
    parts: list[str | Hole] = []
    end, rest = 0, list(values)
    for match in re.finditer(r"%(?:\((\w+)\))?[-#0 +]*\d*(?:\.\d+)?([a-zA-Z%])", text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[2] == "%":
            parts.append("%")
        elif match[1]:
            parts += named.get(match[1], [Hole(match[1])])
        else:
            parts += rest.pop(0) if rest else [Hole("value")]
    return [*parts, text[end:]]


def fill_format(text: str, values: list[list[str | Hole]], named: dict[str, list[str | Hole]]) -> list[str | Hole]:
    """Replace the fields of a template of str.format."""
    parts: list[str | Hole] = []
    number = 0
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return [text]
    for literal, name, _, _ in fields:
        parts.append(literal)
        if name is None:
            continue
        if name == "" or name.isdigit():
            index = int(name) if name else number
            number += 1
            parts += values[index] if index < len(values) else [Hole("value")]
        else:
            parts += named.get(name, [Hole(name.partition(".")[0])])
    return parts


def fill_dollar(text: Text, named: dict[str, list[str | Hole]]) -> Text:
    """Replace the fields of a string.Template."""
    parts: list[str | Hole] = []
    for part in text.parts:
        if isinstance(part, Hole):
            parts.append(part)
            continue
        end = 0
        for match in re.finditer(r"\$(?:(\$)|(\w+)|{(\w+)})", part):
            name = match[2] or match[3]
            parts.append(part[end : match.start()])
            parts += ["$"] if match[1] else named.get(name, [Hole(name)])
            end = match.end()
        parts.append(part[end:])
    return Text(join_parts(parts))


def replace_text(text: Text, old: str, new: list[str | Hole]) -> Text:
    """Replace a part of the known parts of a text, as str.replace does."""
    parts: list[str | Hole] = []
    for part in text.parts:
        if isinstance(part, Hole):
            parts.append(part)
            continue
        for index, piece in enumerate(part.split(old)):
            parts += [*(new if index else ()), piece]
    return Text(join_parts(parts))


def join_paths(paths: list[list[str | Hole]]) -> tuple[str | Hole, ...]:
    """Join the steps of a path, as posixpath.join does; a step that starts with a slash starts the path anew."""
    joined: list[str | Hole] = []
    for path in paths:
        if isinstance(path[0], str) and path[0].startswith("/"):
            joined = []
        elif joined and not (isinstance(joined[-1], str) and joined[-1].endswith("/")):
            joined.append("/")
        joined += path
    return join_parts(joined)


def parts_of(value: Value) -> list[str | Hole]:
    """Return a value as parts of a text."""
    if isinstance(value, Text):
        return list(value.parts)
    if isinstance(value, Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool):
        return [str(value.value)]
    return [Hole(name_variable(value, None))]


def name_variable(value: Value, expression: ast.expr | None) -> str:
    """Return a name for a part that is only known at run time."""
    if expression is not None and last_name(expression) and not isinstance(expression, ast.Call):
        return last_name(expression).lstrip("_")
    if isinstance(value, Parameter):
        return value.name.lstrip("_")
    if isinstance(value, Source):
        return last_name(value.expression).lstrip("_") or "value"
    return "value"
