"""Tables for notebooks: what Jupyter shows of an object, escaped, of bounded size, and without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from .reflection import field_name
from .short_repr import SECRET_FIELDS, short_repr

__all__ = ["HtmlRepr", "render_table"]

MAX_ROWS = 50
"""Maximum number of rows of a list of objects or of a mapping; a last row has the number of the others."""
MAX_CHARACTERS = 300
"""Maximum number of characters of a value."""
# Notebooks are published, and the signed URL of an archive or a trace gives access to it.
HIDDEN_FIELDS = SECRET_FIELDS | {"url"}
_LEFT = ' style="text-align: left"'


class HtmlRepr:
    """Mixin of attrs classes that notebooks show as a table of their fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _render_object(self)


def render_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and texts, all of which are escaped."""
    body = "".join(
        f"<tr><th{_LEFT}>{_escape(name)}</th><td{_LEFT}>{_escape(_shorten(text))}</td></tr>" for name, text in rows
    )
    return f"<table><caption>{_escape(title)}</caption><tbody>{body}</tbody></table>"


def _render_object(value: Any) -> str:
    """Return a table of the fields that are not empty, and one table for each list of objects."""
    rows: list[tuple[str, str]] = []
    lists: list[str] = []
    for name, item in _list_fields(value):
        if isinstance(item, list | tuple) and all(map(attrs.has, map(type, item))):
            lists.append(_render_list(name, item))
        elif isinstance(item, Mapping):
            shown = list(item.items())[:MAX_ROWS]
            rows += [(f"{name}[{key!r}]", _format(key, part)) for key, part in shown]
            rows += _count_others(item, name)
        else:
            rows.append((name, _format(name, item)))
    head = render_table(type(value).__name__, rows) if rows or not lists else _escape(type(value).__name__)
    return head + "".join(lists)


def _render_list(name: str, items: Sequence[Any]) -> str:
    shown = [dict(_list_fields(item)) for item in items[:MAX_ROWS]]
    columns = {column: None for row in shown for column in row}
    head = "".join(f"<th{_LEFT}>{_escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_LEFT}>{_escape(_shorten(_format(column, row.get(column))))}</td>" for column in columns)
        + "</tr>"
        for row in shown
    )
    others = "".join(
        f"<tr><td{_LEFT} colspan={max(1, len(columns))}>{_escape(text)}</td></tr>"
        for _, text in _count_others(items, name)
    )
    return (
        f"<table><caption>{_escape(name)} ({len(items)})</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}{others}</tbody></table>"
    )


def _count_others(items: Sequence[Any] | Mapping[Any, Any], name: str) -> list[tuple[str, str]]:
    count = len(items) - MAX_ROWS
    return [(name, f"... and {count} more")] if count > 0 else []


def _list_fields(value: Any) -> list[tuple[str, Any]]:
    fields = [(field_name(field), getattr(value, field_name(field))) for field in attrs.fields(type(value))]
    # Of keys that the contract does not know, only the names: their values may be secrets.
    fields = [(name, sorted(item) if name == "extra_fields" else item) for name, item in fields]
    return [(name, item) for name, item in fields if not _is_empty(item)]


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def _format(name: Any, value: Any) -> str:
    """Return a value as text; texts as they are, for copying."""
    if value is None:
        return ""
    if name in HIDDEN_FIELDS:
        return "<secret>"
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    return short_repr(value)


def _escape(text: str) -> str:
    # The module has a large table, which programs outside notebooks do not need.
    from html import escape  # noqa: PLC0415

    return escape(text)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."
