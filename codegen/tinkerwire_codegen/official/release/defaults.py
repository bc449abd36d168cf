"""Default values as JSON, read from the expressions that make them."""

from __future__ import annotations

import ast
import operator
from typing import Any

from .classify import last_name
from .modules import Modules, Symbol, flat

COUNTS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}
EMPTY = {"dict": dict, "list": list, "set": list, "tuple": list}


class Unreadable(ValueError):
    """The value cannot be known without running the code."""


def value(modules: Modules, module: str, expression: ast.expr) -> Any:
    """The JSON value of an expression: a constant, a display, or a model made without arguments.

    Raises:
        Unreadable: it is none of these.
    """
    try:
        return _json(ast.literal_eval(expression))
    except (ValueError, TypeError):
        pass
    if isinstance(expression, ast.BinOp) and type(expression.op) in COUNTS:
        left, right = (value(modules, module, side) for side in (expression.left, expression.right))
        return COUNTS[type(expression.op)](left, right)
    meaning = modules.meaning(module, expression.func if isinstance(expression, ast.Call) else expression)
    if isinstance(meaning, Symbol):
        if isinstance(expression, ast.Call) and isinstance(meaning.node, ast.ClassDef):
            return made(modules, meaning)
        if isinstance(meaning.node, ast.expr):
            return value(modules, meaning.module, meaning.node)
    if isinstance(expression, ast.Attribute):
        owner = modules.meaning(module, expression.value)
        if isinstance(owner, Symbol) and isinstance(owner.node, ast.ClassDef):
            return _class_value(modules, owner, expression.attr)
    raise Unreadable(ast.unparse(expression))


def factory(modules: Modules, module: str, expression: ast.expr) -> Any:
    """The JSON value that a default factory makes."""
    if isinstance(expression, ast.Name) and expression.id in EMPTY:
        return EMPTY[expression.id]()
    if isinstance(expression, ast.Lambda):
        return value(modules, module, expression.body)
    meaning = modules.meaning(module, expression)
    if isinstance(meaning, Symbol) and isinstance(meaning.node, ast.ClassDef):
        return made(modules, meaning)
    raise Unreadable(ast.unparse(expression))


def made(modules: Modules, symbol: Symbol) -> dict[str, Any]:
    """A model made without arguments: the fields that have a value, those of its base first."""
    assert isinstance(symbol.node, ast.ClassDef)
    found: dict[str, Any] = {}
    for base in symbol.node.bases:
        meaning = modules.meaning(symbol.module, base)
        if isinstance(meaning, Symbol) and isinstance(meaning.node, ast.ClassDef):
            found |= made(modules, meaning)
    for statement in flat(symbol.node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            details = arguments(statement.value)
            if details is None:
                found[statement.target.id] = value(modules, symbol.module, statement.value)
            elif "default_factory" in details:
                found[statement.target.id] = factory(modules, symbol.module, details["default_factory"])
            elif "default" in details:
                found[statement.target.id] = value(modules, symbol.module, details["default"])
    return found


def arguments(expression: ast.expr | None) -> dict[str, ast.expr] | None:
    """The arguments of Field(...) or field(...) by name, or None when it is another expression."""
    if not isinstance(expression, ast.Call) or last_name(expression) not in ("Field", "field"):
        return None
    found = {keyword.arg: keyword.value for keyword in expression.keywords if keyword.arg}
    return {"default": expression.args[0], **found} if expression.args else found


def _class_value(modules: Modules, owner: Symbol, name: str) -> Any:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in owner.node.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in statement.targets
        ):
            return value(modules, owner.module, statement.value)
    raise Unreadable(f"{owner.name}.{name}")


def _json(found: Any) -> Any:
    if isinstance(found, tuple | set | frozenset):
        return [_json(each) for each in found]
    if isinstance(found, bytes):
        raise Unreadable(repr(found))
    return found
