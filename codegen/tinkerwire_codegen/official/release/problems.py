"""Parts of a release that cannot be read, with their places."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

UNREAD = "python"
"""Key of the source text that stands for a value in the facts, because only running the code would give it."""


def is_unread(value: Any) -> bool:
    """Report whether a value of the facts is the source text of one that is not understood."""
    return isinstance(value, dict) and value.keys() == {UNREAD}


@dataclass(frozen=True, order=True)
class Problem:
    """One part of a release that is not understood."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        """Return the problem in one line."""
        return f"{self.file}:{self.line}: {self.text}"


@dataclass
class Problems:
    """The problems of one reading; ``paths`` gives the file of each module.

    ``origins`` gives the module of each node that stands in code of another module. ``files`` are those of which
    nothing is known.
    """

    paths: dict[str, str] = field(default_factory=dict)
    origins: dict[ast.AST, str] = field(default_factory=dict)
    found: set[Problem] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, module: str, node: ast.AST | None, text: str) -> None:
        """Record that a node of a module is not understood."""
        module = self.origins.get(node, module) if node is not None else module
        self.found.add(Problem(self.paths.get(module, module), getattr(node, "lineno", 1), text))

    def add_file(self, path: str, text: str, line: int = 1) -> None:
        """Record that a whole file is not understood."""
        self.files.add(path)
        self.found.add(Problem(path, line, text))

    def to_facts(self) -> list[dict[str, object]]:
        """Return the problems in a fixed order, in the form of the facts."""
        return [{"file": problem.file, "line": problem.line, "text": problem.text} for problem in sorted(self.found)]
