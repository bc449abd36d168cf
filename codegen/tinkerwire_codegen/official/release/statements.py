"""Normal forms of statements: forms that differ in style only become equal."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

ENDS = ast.Return | ast.Raise | ast.Continue | ast.Break
BLOCKS = ("body", "orelse", "finalbody")


def without_else_after_return(body: list[ast.stmt]) -> list[ast.stmt]:
    """Move an else branch behind its if statement where the other branch leaves the block."""
    flat: list[ast.stmt] = []
    for statement in body:
        _visit_blocks(statement, without_else_after_return)
        if isinstance(statement, ast.If) and statement.orelse and isinstance(statement.body[-1], ENDS):
            flat += [ast.If(statement.test, statement.body, []), *statement.orelse]
        else:
            flat.append(statement)
    return flat


def join_single_uses(body: list[ast.stmt]) -> list[ast.stmt]:
    """Put the value of a variable in its place if only the next statement uses it, once."""
    uses = Counter(node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name))
    return _join(body, uses)


def _join(body: list[ast.stmt], uses: Counter[str]) -> list[ast.stmt]:
    joined: list[ast.stmt] = []
    for statement in body:
        _visit_blocks(statement, lambda block: _join(block, uses))
        previous = joined[-1] if joined else None
        if isinstance(previous, ast.Assign) and isinstance(previous.targets[0], ast.Name):
            name = previous.targets[0].id
            is_simple = isinstance(statement, ast.Return | ast.Assign | ast.Expr)
            reads = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
            is_read_once = len(reads) == 1 and isinstance(reads[0].ctx, ast.Load) and uses[name] == 1 + len(reads)
            if is_simple and is_read_once and len(previous.targets) == 1:
                joined.pop()
                statement = _Substitution(name, previous.value).visit(statement)  # noqa: PLW2901
        joined.append(statement)
    return joined


class _Substitution(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace the name by the value."""
        return self._value if node.id == self._name else node


def _visit_blocks(statement: ast.stmt, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    for part in BLOCKS:
        block = getattr(statement, part, None)
        if block:
            setattr(statement, part, change(block))
    for handler in getattr(statement, "handlers", []):
        handler.body = change(handler.body)
