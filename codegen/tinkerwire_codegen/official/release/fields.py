"""The fields of one class: type, requiredness, default, limits, and the encoding of bytes."""

from __future__ import annotations

import ast
from typing import Any

from . import defaults, type_text
from .classify import Classifier, last_name
from .modules import Symbol, iter_statements
from .type_syntax import unquote

LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "pattern")
NON_FIELDS = frozenset({"ClassVar", "PrivateAttr", "KW_ONLY"})
Facts = dict[str, Any]


def read_fields(classifier: Classifier, symbol: Symbol) -> Facts:
    """Read the fields of a class and of its bases, those of the bases first."""
    assert isinstance(symbol.node, ast.ClassDef)
    fields: Facts = {}
    for base in classifier.bases(symbol):
        fields.update(read_fields(classifier, base))
    optional = any(k.arg == "total" and _evaluate_constant(k.value) is False for k in symbol.node.keywords)
    encoded = _base64_fields(symbol.node)
    for statement in iter_statements(symbol.node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if _has_name(statement.annotation, NON_FIELDS) or statement.target.id == "model_config":
            continue
        name, field = _read_field(classifier, symbol, statement, optional)
        if statement.target.id in encoded:
            field["wire"] = "base64 str"
        fields.pop(name, None)
        fields[name] = field
    return fields


def _read_field(
    classifier: Classifier, owner: Symbol, statement: ast.AnnAssign, is_optional: bool
) -> tuple[str, Facts]:
    assert isinstance(statement.target, ast.Name)
    name, details = statement.target.id, _read_details(statement)
    field: Facts = {"type": type_text.render(classifier, owner.module, statement.annotation)}
    if classifier.classify(owner) == "typed_dict":
        is_required = not is_optional or _has_name(statement.annotation, frozenset({"Required"}))
        field["required"] = is_required and not _has_name(statement.annotation, frozenset({"NotRequired"}))
        return name, field
    field |= _read_default(classifier, owner.module, statement.value, details)
    limits = {key: _evaluate_constant(details[key]) for key in LIMITS if key in details}
    if limits:
        field["constraints"] = limits
    for key in ("serialization_alias", "alias"):
        if key in details and isinstance(_evaluate_constant(details[key]), str):
            name = str(_evaluate_constant(details[key]))
            break
    aliases = details.get("validation_alias")
    if isinstance(aliases, ast.Call):
        field["accepts_names"] = [_evaluate_constant(argument) for argument in aliases.args]
    return name, field


def _read_details(statement: ast.AnnAssign) -> dict[str, ast.expr]:
    """Collect the arguments of Field(...) or field(...), as the value or inside Annotated."""
    details: dict[str, ast.expr] = {}
    for node in (*ast.walk(statement.annotation), statement.value):
        if isinstance(node, ast.Call) and last_name(node) == "PropertyInfo":
            details |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg == "alias"}
        elif isinstance(node, ast.expr):
            details |= defaults.field_arguments(node) or {}
    return details


def _read_default(
    classifier: Classifier, module: str, assigned: ast.expr | None, details: dict[str, ast.expr]
) -> Facts:
    is_details = assigned is None or defaults.field_arguments(assigned) is not None
    expression = details.get("default") if is_details else assigned
    try:
        if expression is not None:
            if _evaluate_constant(expression) is Ellipsis:
                return {"required": True}
            return {"required": False, "default": defaults.evaluate(classifier.modules, module, expression)}
        if "default_factory" in details:
            return {
                "required": False,
                "default": defaults.evaluate_factory(classifier.modules, module, details["default_factory"]),
            }
    except defaults.UnreadableDefault as error:
        return {"required": False, "default": {"python": str(error)}}
    return {"required": True}


def _base64_fields(node: ast.ClassDef) -> set[str]:
    """Return the fields whose serializer encodes their bytes as base64."""
    names: set[str] = set()
    for method in node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        if not any(last_name(call) == "b64encode" for call in ast.walk(method) if isinstance(call, ast.Call)):
            continue
        for decorator in method.decorator_list:
            if isinstance(decorator, ast.Call) and last_name(decorator) == "field_serializer":
                names |= {str(_evaluate_constant(argument)) for argument in decorator.args}
    return names


def _has_name(annotation: ast.expr, names: frozenset[str]) -> bool:
    parts = ast.walk(unquote(annotation))
    return any(isinstance(part, ast.Name | ast.Attribute) and last_name(part) in names for part in parts)


def _evaluate_constant(expression: ast.expr) -> Any:
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return {"python": ast.unparse(expression)}
