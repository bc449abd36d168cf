"""The fields of one class: type, whether required, default, limits, and how bytes go over the wire."""

from __future__ import annotations

import ast
from typing import Any

from . import defaults, type_text
from .classify import Classifier, last_name
from .modules import Symbol, iter_statements
from .type_syntax import unquote

LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "pattern")
NO_FIELDS = frozenset({"ClassVar", "PrivateAttr", "KW_ONLY"})
Facts = dict[str, Any]


def read_fields(classifier: Classifier, symbol: Symbol) -> Facts:
    """The fields of a class and of what it stands on, those of the base first."""
    assert isinstance(symbol.node, ast.ClassDef)
    found: Facts = {}
    for base in classifier.bases(symbol):
        found.update(read_fields(classifier, base))
    optional = any(k.arg == "total" and _constant(k.value) is False for k in symbol.node.keywords)
    encoded = _sent_as_base64(symbol.node)
    for statement in iter_statements(symbol.node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if _has_name(statement.annotation, NO_FIELDS) or statement.target.id == "model_config":
            continue
        name, field = _field(classifier, symbol, statement, optional)
        if statement.target.id in encoded:
            field["wire"] = "base64 str"
        found.pop(name, None)
        found[name] = field
    return found


def _field(classifier: Classifier, owner: Symbol, statement: ast.AnnAssign, optional: bool) -> tuple[str, Facts]:
    assert isinstance(statement.target, ast.Name)
    name, details = statement.target.id, _details(statement)
    field: Facts = {"type": type_text.render(classifier, owner.module, statement.annotation)}
    if classifier.classify(owner) == "typed_dict":
        needed = not optional or _has_name(statement.annotation, frozenset({"Required"}))
        field["required"] = needed and not _has_name(statement.annotation, frozenset({"NotRequired"}))
        return name, field
    field |= _default(classifier, owner.module, statement.value, details)
    limits = {key: _constant(details[key]) for key in LIMITS if key in details}
    if limits:
        field["constraints"] = limits
    for key in ("serialization_alias", "alias"):
        if key in details and isinstance(_constant(details[key]), str):
            name = str(_constant(details[key]))
            break
    accepted = details.get("validation_alias")
    if isinstance(accepted, ast.Call):
        field["accepts_names"] = [_constant(argument) for argument in accepted.args]
    return name, field


def _details(statement: ast.AnnAssign) -> dict[str, ast.expr]:
    """The arguments of Field(...) or field(...), as the value or inside Annotated."""
    found: dict[str, ast.expr] = {}
    for node in (*ast.walk(statement.annotation), statement.value):
        if isinstance(node, ast.Call) and last_name(node) == "PropertyInfo":
            found |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg == "alias"}
        elif isinstance(node, ast.expr):
            found |= defaults.field_arguments(node) or {}
    return found


def _default(classifier: Classifier, module: str, given: ast.expr | None, details: dict[str, ast.expr]) -> Facts:
    is_details = given is None or defaults.field_arguments(given) is not None
    expression = details.get("default") if is_details else given
    try:
        if expression is not None:
            if _constant(expression) is Ellipsis:
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


def _sent_as_base64(node: ast.ClassDef) -> set[str]:
    """The fields whose serializer encodes their bytes."""
    found: set[str] = set()
    for method in node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        if not any(last_name(call) == "b64encode" for call in ast.walk(method) if isinstance(call, ast.Call)):
            continue
        for decorator in method.decorator_list:
            if isinstance(decorator, ast.Call) and last_name(decorator) == "field_serializer":
                found |= {str(_constant(argument)) for argument in decorator.args}
    return found


def _has_name(annotation: ast.expr, names: frozenset[str]) -> bool:
    parts = ast.walk(unquote(annotation))
    return any(isinstance(part, ast.Name | ast.Attribute) and last_name(part) in names for part in parts)


def _constant(expression: ast.expr) -> Any:
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return {"python": ast.unparse(expression)}
