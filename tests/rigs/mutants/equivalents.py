"""Mutants that no test can kill or that none should: they are listed with a reason, or change prose alone."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import yaml

FILE = Path(__file__).with_name("equivalents.yaml")
PROSE = re.compile(r""""[^"]*\s[^"]*"|'[^']*\s[^']*'""")
"""A string literal with a space: the text of an error or a log record, not a name of the wire."""


@attrs.frozen
class Equivalent:
    """A mutant that behaves like the original."""

    function: str
    """Module and function: `tinkerwire._polling.poller.Poller.result`."""
    reason: str
    before: str = ""
    after: str = ""
    """The changed line, without indentation, or lines joined by ` / `; empty for all mutants of the function."""

    def matches(self, name: str, diff: str) -> bool:
        """Return whether the entry is about a mutant."""
        return self.function == read_function(name) and (
            not self.before or (self.before, self.after) == read_change(diff)
        )


def read_function(name: str) -> str:
    """Return the module and function of a mutant's name."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    function = mangled[2:] if mangled.startswith("x_") else mangled[1:].strip("ǁ").replace("ǁ", ".")
    return f"{module}.{function}"


def read_change(diff: str) -> tuple[str, str]:
    """Return the lines that a diff removes and adds, without indentation."""
    lines = diff.splitlines()
    removed = [line[1:].strip() for line in lines if line.startswith("-")]
    added = [line[1:].strip() for line in lines if line.startswith("+")]
    return " / ".join(removed), " / ".join(added)


def changes_prose_alone(diff: str) -> bool:
    """Check whether a mutant only changes the text of a message."""
    before, after = read_change(diff)
    return PROSE.sub("text", before) == PROSE.sub("text", after)


def read_equivalents() -> list[Equivalent]:
    """Read the list."""
    return [Equivalent(**entry) for entry in yaml.safe_load(FILE.read_text()) or []]
