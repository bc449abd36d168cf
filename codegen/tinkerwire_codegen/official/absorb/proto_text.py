"""Edits of a .proto in place: new messages, enums, fields and values, and the comments that give their versions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

from ..comparison import Difference

Json = dict[str, Any]

DECLARATIONS = {"protobuf message": "message", "protobuf enum": "enum"}


class ProtoText:
    """The lines of a .proto under edit; edits record changes of one wire version.

    Each statement must be on a line of its own, as in the contract; a name that is not found is left to a person.
    """

    def __init__(self, text: str, version: str, describe: Callable[[str, str], str]) -> None:
        """Initialize with the text; ``describe`` returns the description of a field of a message."""
        self._lines = text.splitlines()
        self._version, self._describe = version, describe

    def render(self) -> str:
        """Return the edited text."""
        return "\n".join(self._lines) + "\n"

    def record(self, difference: Difference, theirs: Json) -> bool:
        """Record a difference; return False if a person must decide."""
        kind, where = difference.kind, difference.where
        owner, _, name = where.rpartition(".")
        if kind in DECLARATIONS:
            if difference.theirs is None:
                return self._end_statement(self._find_block(difference.ours)[0])
            self._add_declaration(DECLARATIONS[kind], difference.theirs, theirs)
            return True
        if kind in ("protobuf field", "protobuf value"):
            removed, added = difference.ours, difference.theirs
            if removed is not None and added is None:
                return self._end_statement(self._find_statement(where, _name_of(removed)))
            if removed is None and kind == "protobuf field":
                return self._add_field(where, _name_of(added), theirs["messages"][where]["fields"][_name_of(added)])
            return removed is None and self._add_value(where, added)
        return kind == "protobuf type" and self._change_type(owner, name, difference)

    def _find_block(self, name: str) -> tuple[int, int]:
        """Return the first and last line of a message or enum, or (-1, -1)."""
        pattern = re.compile(rf"(message|enum) {re.escape(name)} {{")
        start = next((index for index, line in enumerate(self._lines) if pattern.match(line)), -1)
        if start < 0:
            return -1, -1
        end = next(index for index in range(start, len(self._lines)) if self._lines[index].startswith("}"))
        return start, end

    def _find_statement(self, owner: str, name: str) -> int:
        start, end = self._find_block(owner)
        pattern = re.compile(rf"\s+([\w<>., ]+ )?{re.escape(name)} = \d+;")
        return next((index for index in range(start + 1, end) if pattern.match(self._lines[index])), -1)

    def _end_statement(self, index: int) -> bool:
        return index >= 0 and self._add_mark(index, f"until: {self._version}")

    def _add_mark(self, index: int, mark: str) -> bool:
        code, separator, comment = self._lines[index].partition("  // ")
        marks = [*comment.split("; "), mark] if separator else [mark]
        self._lines[index] = f"{code}  // {'; '.join(marks)}"
        return True

    def _add_declaration(self, keyword: str, name: str, theirs: Json) -> None:
        lines = ["", *_comment(self._describe(name, "")), f"{keyword} {name} {{  // since: {self._version}"]
        if keyword == "enum":
            enum = theirs["enums"][name]
            for value, number in enum.get("values", enum).items():
                lines += [*_comment(self._describe(name, value), "  "), f"  {value} = {number};"]
        else:
            lines += self._render_fields(name, theirs["messages"][name]["fields"])
        self._lines += [*lines, "}"]

    def _render_fields(self, owner: str, fields: Json) -> list[str]:
        lines: list[str] = []
        oneof = None
        for name, fact in fields.items():
            if fact.get("oneof") != oneof:
                lines += ["  }"] * bool(oneof)
                oneof = fact.get("oneof")
                lines += [f"  oneof {oneof} {{"] * bool(oneof)
            lines += self._render_field(owner, name, fact, "    " if oneof else "  ")
        return [*lines, *["  }"] * bool(oneof)]

    def _render_field(self, owner: str, name: str, fact: Json, indent: str, mark: str = "") -> list[str]:
        label = "optional " if fact.get("optional") else ""
        statement = f"{indent}{label}{fact['type']} {name} = {fact['number']};{mark}"
        return [*_comment(self._describe(owner, name), indent), statement]

    def _add_field(self, owner: str, name: str, fact: Json) -> bool:
        start, end = self._find_block(owner)
        if start < 0:
            return False
        mark, oneof = f"  // since: {self._version}", fact.get("oneof")
        if oneof:
            opening = next((i for i in range(start, end) if re.match(rf"\s+oneof {oneof} {{", self._lines[i])), -1)
            if opening < 0:
                field = self._render_field(owner, name, fact, "    ", mark)
                self._lines[end:end] = [f"  oneof {oneof} {{", *field, "  }"]
                return True
            closing = next(index for index in range(opening, end) if self._lines[index].strip() == "}")
            self._lines[closing:closing] = self._render_field(owner, name, fact, "    ", mark)
        else:
            self._lines[end:end] = self._render_field(owner, name, fact, "  ", mark)
        return True

    def _add_value(self, owner: str, text: str) -> bool:
        start, end = self._find_block(owner)
        if start < 0 or self._find_statement(owner, _name_of(text)) >= 0:
            return False
        doc = _comment(self._describe(owner, _name_of(text)), "  ")
        self._lines[end:end] = [*doc, f"  {text}  // since: {self._version}"]
        return True

    def _change_type(self, owner: str, name: str, difference: Difference) -> bool:
        index = self._find_statement(owner, name)
        if index < 0 or " was " in self._lines[index]:
            return False
        code, _, _ = self._lines[index].partition("  // ")
        if f"{difference.ours} {name} =" not in code:
            return False
        changed = code.replace(f"{difference.ours} {name} =", f"{difference.theirs} {name} =")
        self._lines[index] = changed + self._lines[index][len(code) :]
        return self._add_mark(index, f"was {difference.ours} until {self._version}")


def _name_of(statement: str) -> str:
    """Return the name that a field or value defines: x for optional int64 x = 1;."""
    return statement.partition(" =")[0].rpartition(" ")[2]


def _comment(text: str, indent: str = "") -> list[str]:
    return [f"{indent}// {line}" for line in textwrap.wrap(text, 116 - len(indent))]
