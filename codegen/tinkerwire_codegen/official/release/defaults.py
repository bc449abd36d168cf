"""Default values as JSON, evaluated from their source expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from .classify import last_name
from .field_functions import find_field_call
from .modules import ReleaseModules, Symbol, iter_statements

COUNTS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
MAPPINGS = frozenset({"dict", "ConfigDict", "SettingsConfigDict"})
"""Functions whose keywords are the entries of the mapping that they return."""
EMPTY = {"dict": dict, "list": list, "set": list, "tuple": list}


class UnreadableDefault(ValueError):
    """Value that is only known by running the code."""


def evaluate(modules: ReleaseModules, module: str, expression: ast.expr) -> Any:
    """Evaluate an expression to JSON: a constant, a display, or a model.

    Raises:
        UnreadableDefault: the expression is anything else.
    """
    try:
        return _to_json(ast.literal_eval(expression))
    except (ValueError, TypeError):
        pass
    try:
        if isinstance(expression, ast.UnaryOp):
            return UNARY[type(expression.op)](evaluate(modules, module, expression.operand))
        if isinstance(expression, ast.BinOp) and type(expression.op) in COUNTS:
            left, right = (evaluate(modules, module, side) for side in (expression.left, expression.right))
            return COUNTS[type(expression.op)](left, right)
    except TypeError as error:
        raise UnreadableDefault(ast.unparse(expression)) from error
    target = modules.resolve(module, expression.func if isinstance(expression, ast.Call) else expression)
    if isinstance(target, Symbol):
        if isinstance(expression, ast.Call) and isinstance(target.node, ast.ClassDef):
            given = {k.arg: evaluate(modules, module, k.value) for k in expression.keywords if k.arg}
            return evaluate_model(modules, target) | given
        if isinstance(target.node, ast.expr):
            return evaluate(modules, target.module, target.node)
    if isinstance(expression, ast.Attribute):
        owner = modules.resolve(module, expression.value)
        if isinstance(owner, Symbol) and isinstance(owner.node, ast.ClassDef):
            return _class_value(modules, owner, expression.attr)
    raise UnreadableDefault(ast.unparse(expression))


def evaluate_factory(modules: ReleaseModules, module: str, expression: ast.expr) -> Any:
    """Evaluate the JSON value that a default factory creates."""
    if isinstance(expression, ast.Name) and expression.id in EMPTY:
        return EMPTY[expression.id]()
    if isinstance(expression, ast.Lambda):
        return evaluate(modules, module, expression.body)
    target = modules.resolve(module, expression)
    if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
        return evaluate_model(modules, target)
    raise UnreadableDefault(ast.unparse(expression))


def evaluate_model(modules: ReleaseModules, symbol: Symbol) -> dict[str, Any]:
    """Evaluate a model created without arguments: its fields that have a value, those of its bases first."""
    assert isinstance(symbol.node, ast.ClassDef)
    fields: dict[str, Any] = {}
    for base in symbol.node.bases:
        target = modules.resolve(symbol.module, base)
        if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
            fields |= evaluate_model(modules, target)
    for statement in iter_statements(symbol.node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            details = field_arguments(modules, symbol.module, statement.value)
            if details is None:
                fields[statement.target.id] = evaluate(modules, symbol.module, statement.value)
            elif "default_factory" in details:
                fields[statement.target.id] = evaluate_factory(modules, symbol.module, details["default_factory"])
            elif "default" in details:
                fields[statement.target.id] = evaluate(modules, symbol.module, details["default"])
    return fields


def field_arguments(modules: ReleaseModules, module: str, expression: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the arguments of Field(...) or field(...) by name, or None for another expression."""
    call = find_field_call(modules, module, expression)
    if call is None:
        return None
    keywords = keyword_arguments(modules, module, call)
    return {"default": call.args[0], **keywords} if call.args else keywords


def keyword_arguments(modules: ReleaseModules, module: str, call: ast.Call) -> dict[str, ast.expr]:
    """Return the keywords of a call, also those of a mapping behind **; a mapping that is not known is reported."""
    keywords: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg:
            keywords[keyword.arg] = keyword.value
            continue
        entries = mapping_entries(modules, module, keyword.value)
        if entries is None:
            modules.problems.add(module, keyword.value, f"arguments of a call: **{ast.unparse(keyword.value)}")
        keywords |= entries or {}
    return keywords


def mapping_entries(modules: ReleaseModules, module: str, expression: ast.expr) -> dict[str, ast.expr] | None:
    """Return the entries of a mapping that is written in place, or that a name stands for; None for another value."""
    if isinstance(expression, ast.Name | ast.Attribute):
        target = modules.resolve(module, expression)
        if not isinstance(target, Symbol) or not isinstance(target.node, ast.Dict | ast.Call):
            return None
        modules.keep_origin(target.module, target.node)
        return mapping_entries(modules, target.module, target.node)
    if isinstance(expression, ast.Call) and last_name(expression) in MAPPINGS and not expression.args:
        return keyword_arguments(modules, module, expression)
    if isinstance(expression, ast.Dict) and all(isinstance(key, ast.Constant) for key in expression.keys):
        pairs = zip(expression.keys, expression.values, strict=True)
        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    return None


def _class_value(modules: ReleaseModules, owner: Symbol, name: str) -> Any:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in owner.node.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in statement.targets
        ):
            return evaluate(modules, owner.module, statement.value)
    raise UnreadableDefault(f"{owner.name}.{name}")


def _to_json(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(_to_json, value), key=repr)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        raise UnreadableDefault(repr(value))
    return value
