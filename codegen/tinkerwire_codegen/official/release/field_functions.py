"""Functions of a release that make fields of models: their calls as the call of Field that they stand for."""

from __future__ import annotations

import ast
import copy

from .classify import last_name
from .modules import FunctionSymbol, ReleaseModules, Symbol

FIELDS = frozenset({"Field", "field"})
MAXIMUM_STEPS = 8


def find_field_call(modules: ReleaseModules, module: str, expression: ast.expr | None) -> ast.Call | None:
    """Return the call of Field(...) or field(...) that an expression is or stands for; None for another expression.

    A function that makes a field in more than one expression is recorded as not understood.
    """
    for _ in range(MAXIMUM_STEPS):
        if not isinstance(expression, ast.Call) or last_name(expression) in FIELDS:
            return expression if isinstance(expression, ast.Call) else None
        found = _find_function(modules, module, expression)
        if found is None:
            return None
        owner, arguments, returned = found
        if returned is None:
            modules.problems.add(module, expression, f"field made by a function: {ast.unparse(expression)}")
            return None
        returned = copy.deepcopy(returned)
        for part in (returned, *([arguments] if arguments else [])):
            modules.keep_origin(owner, part)
        expression = _insert(returned, arguments, expression)
    return None


def _find_function(
    modules: ReleaseModules, module: str, call: ast.Call
) -> tuple[str, ast.arguments | None, ast.Call | None] | None:
    """Return module, parameters and returned call of a function that makes a field.

    The call is None if it is not known.
    """
    target = modules.resolve(module, call.func)
    if isinstance(target, FunctionSymbol):
        body = [statement for statement in target.node.body if not _is_text(statement)]
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        makes_field = any(isinstance(node, ast.Call) and last_name(node) in FIELDS for node in ast.walk(target.node))
        if isinstance(returned, ast.Call):
            return target.module, target.node.args, returned
        return (target.module, target.node.args, None) if makes_field else None
    if not isinstance(target, Symbol):
        return None
    if isinstance(target.node, ast.Lambda) and isinstance(target.node.body, ast.Call):
        return target.module, target.node.args, target.node.body
    if isinstance(target.node, ast.Call) and last_name(target.node) == "partial" and target.node.args:
        first, *others = target.node.args
        made = ast.copy_location(ast.Call(first, others, target.node.keywords), target.node)
        return target.module, None, made
    return None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _insert(returned: ast.Call, spec: ast.arguments | None, call: ast.Call) -> ast.Call:
    """Return the call in a function with the arguments of a call of the function."""
    if spec is None:
        given = {keyword.arg for keyword in call.keywords}
        kept = [keyword for keyword in returned.keywords if keyword.arg not in given]
        return ast.copy_location(ast.Call(returned.func, [*returned.args, *call.args], [*kept, *call.keywords]), call)
    positional = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    names = [*positional, *(argument.arg for argument in spec.kwonlyargs)]
    values = dict(zip(reversed(positional), reversed(spec.defaults), strict=False))
    values |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    values |= dict(zip(positional, call.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in names}
    more = [keyword for keyword in call.keywords if keyword.arg not in names]
    inserted = _Insertion(values).visit(returned)
    arguments: list[ast.expr] = []
    for argument in inserted.args:
        is_rest = isinstance(argument, ast.Starred) and spec.vararg and last_name(argument.value) == spec.vararg.arg
        arguments += call.args[len(positional) :] if is_rest else [argument]
    keywords: list[ast.keyword] = []
    for keyword in inserted.keywords:
        is_rest = keyword.arg is None and spec.kwarg and last_name(keyword.value) == spec.kwarg.arg
        keywords += more if is_rest else [keyword]
    return ast.copy_location(ast.Call(inserted.func, arguments, keywords), call)


class _Insertion(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a parameter by its argument."""
        return self._values.get(node.id, node)
