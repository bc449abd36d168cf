"""Tests that each public name of the overlay is defined in one module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

OVERLAY = Path(__file__).parents[2] / "overlay"
CONVENTIONS = frozenset({"AREA", "TYPE_CHECKING", "cli", "log", "logger", "main", "pytest_configure", "register"})
"""Names that each module defines by convention: loggers, entry points, commands, hooks and areas of requirements."""


def is_type_variable(node: ast.stmt) -> bool:
    """Return whether a statement defines a type variable."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") in {"TypeVar", "ParamSpec"}


def is_requirement(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a definition is the test of a requirement, which has an id and is not called by its name."""
    return any(ast.unparse(decorator).startswith("AREA.") for decorator in node.decorator_list)


def list_defined_names(module: ast.Module) -> Iterator[str]:
    """Yield the names of the functions, classes and variables that a module defines at its top level."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not is_requirement(node):
                yield node.name
        elif isinstance(node, ast.Assign) and not is_type_variable(node):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def find_repeated_names() -> dict[str, list[str]]:
    """Return the public names with more than one definition, with the modules that define them."""
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for path in OVERLAY.rglob("*.py"):
        for name in list_defined_names(ast.parse(path.read_text())):
            if not name.startswith("_") and name not in CONVENTIONS:
                modules[name].add(str(path.relative_to(OVERLAY)))
    return {name: sorted(paths) for name, paths in sorted(modules.items()) if len(paths) > 1}


def test_public_name_is_defined_in_one_module() -> None:
    """A reader who searches for a public name finds one definition."""
    assert find_repeated_names() == {}
