"""Constraints of fields: arguments of Field, metadata of Annotated, and constrained types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from . import defaults
from .classify import TYPE_CALLS, Classifier, last_name
from .field_functions import find_field_call
from .modules import Symbol
from .problems import UNREAD
from .type_syntax import unquote

LIMITS = (
    *("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "pattern", "strict", "allow_inf_nan"),
    *("max_digits", "decimal_places", "strip_whitespace", "to_lower", "to_upper"),
)
OLD_NAMES = {"min_items": "min_length", "max_items": "max_length", "regex": "pattern"}
SINGLE = {"Ge": "ge", "Gt": "gt", "Le": "le", "Lt": "lt", "MinLen": "min_length", "MaxLen": "max_length"}
SINGLE |= {"MultipleOf": "multiple_of"}
"""Metadata of annotated_types with one argument."""
NAMED: dict[str, dict[str, Any]] = {
    **{f"Positive{kind}": {"gt": 0} for kind in ("Int", "Float")},
    **{f"Negative{kind}": {"lt": 0} for kind in ("Int", "Float")},
    **{f"NonNegative{kind}": {"ge": 0} for kind in ("Int", "Float")},
    **{f"NonPositive{kind}": {"le": 0} for kind in ("Int", "Float")},
    **{f"Strict{kind}": {"strict": True} for kind in ("Int", "Float", "Str", "Bool", "Bytes")},
    "FiniteFloat": {"allow_inf_nan": False},
}
"""Types of pydantic whose names stand for limits."""
MAXIMUM_DEPTH = 20


def read_constraints(
    classifier: Classifier, module: str, annotation: ast.expr, value: ast.expr | None = None
) -> dict[str, Any]:
    """Read the constraints of an annotation and the value beside it; other aliases than wire types are followed."""
    constraints: dict[str, Any] = {}
    for place, node in iter_parts(classifier, module, annotation, value):
        if isinstance(node, ast.Call):
            for name, expression in _limits(classifier, place, node):
                constraints[name] = _evaluate(classifier, place, expression)
        else:
            constraints |= NAMED.get(last_name(node), {})
    return constraints


def iter_parts(
    classifier: Classifier, module: str, annotation: ast.expr, value: ast.expr | None, depth: int = 0
) -> Iterator[tuple[str, ast.expr]]:
    """Yield calls and names of an annotation and the value beside it, each with its module, also behind aliases."""
    if depth > MAXIMUM_DEPTH:
        return
    for node in (*ast.walk(unquote(annotation)), value):
        if isinstance(node, ast.Call):
            yield module, node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node is not annotation:
            continue
        elif isinstance(node, ast.Name | ast.Attribute):
            yield module, node
            target = classifier.modules.resolve(module, node)
            if not isinstance(target, Symbol) or isinstance(target.node, ast.ClassDef):
                continue
            is_field = find_field_call(classifier.modules, target.module, target.node) is not None
            is_field = is_field or (isinstance(target.node, ast.Call) and last_name(target.node) in SINGLE)
            if is_field or (classifier.classify(target) == "other" and _is_type(target.node)):
                yield from iter_parts(classifier, target.module, target.node, None, depth + 1)


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node) in TYPE_CALLS or last_name(node).startswith("con")
    return isinstance(node, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)


def _limits(classifier: Classifier, module: str, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    call = find_field_call(classifier.modules, module, call) or call
    name = last_name(call)
    if name in SINGLE and (call.args or call.keywords):
        yield SINGLE[name], call.args[0] if call.args else call.keywords[0].value
    elif name == "Len":
        yield from zip(("min_length", "max_length"), call.args, strict=False)
    if name in ("Field", "StringConstraints", "Interval", "Len", "PlainValidator") or name.startswith("con"):
        for keyword, value in defaults.keyword_arguments(classifier.modules, module, call).items():
            limit = OLD_NAMES.get(keyword, keyword)
            if limit in LIMITS:
                yield limit, value


def _evaluate(classifier: Classifier, module: str, expression: ast.expr) -> Any:
    try:
        return defaults.evaluate(classifier.modules, module, expression)
    except defaults.UnreadableDefault:
        classifier.modules.problems.add(module, expression, f"constraint: {ast.unparse(expression)}")
        return {UNREAD: ast.unparse(expression)}
