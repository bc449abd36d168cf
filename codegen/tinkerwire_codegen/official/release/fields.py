"""The fields of one class: type, requiredness, default, limits, and the encoding of bytes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from . import defaults, type_text
from .alias_generators import generate_alias
from .classify import Classifier, last_name, strip_subscript
from .constraints import read_constraints
from .fingerprints import decorated_functions, normalize_code
from .modules import Symbol, assigned_value, iter_statements
from .problems import UNREAD
from .type_syntax import unquote

NON_FIELDS = frozenset({"ClassVar", "PrivateAttr", "KW_ONLY"})
Facts = dict[str, Any]


@dataclass
class FieldDetails:
    """Arguments and constraints that an annotation and the value beside it state."""

    arguments: dict[str, ast.expr] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)


def read_fields(classifier: Classifier, symbol: Symbol, bindings: type_text.Bindings | None = None) -> Facts:
    """Read the fields of a class and of its bases, those of the bases first.

    ``bindings`` gives the types of the type variables of a generic class.
    """
    return _read_fields(classifier, symbol, bindings or {}, frozenset())


def _read_fields(
    classifier: Classifier, symbol: Symbol, bindings: type_text.Bindings, seen: frozenset[Symbol]
) -> Facts:
    assert isinstance(symbol.node, ast.ClassDef)
    fields: Facts = {}
    if symbol in seen:
        classifier.modules.problems.add(symbol.module, symbol.node, f"class {symbol.name}, which is its own base")
        return fields
    for expression in reversed(symbol.node.bases):
        base = classifier.modules.resolve(symbol.module, strip_subscript(expression))
        if isinstance(base, Symbol) and isinstance(base.node, ast.ClassDef):
            inner = bind_type_variables(classifier, symbol, expression, base, bindings)
            fields.update(_read_fields(classifier, base, inner, seen | {symbol}))
        elif last_name(strip_subscript(expression)) == "RootModel" and isinstance(expression, ast.Subscript):
            fields["root"] = {"type": type_text.render(classifier, symbol.module, expression.slice), "required": True}
    bindings = {**dict.fromkeys(class_variables(classifier, symbol), "any"), **bindings}
    optional = any(k.arg == "total" and _evaluate_constant(k.value) is False for k in symbol.node.keywords)
    encoded = _base64_fields(classifier, symbol)
    kind = classifier.classify(symbol)
    generator = read_settings(classifier, symbol).get("alias_generator") if kind == "pydantic" else None
    for statement in iter_statements(symbol.node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name = statement.target.id
        if _has_name(statement.annotation, NON_FIELDS) or name == "model_config":
            continue
        if kind == "pydantic" and name.startswith("_"):
            continue  # pydantic keeps such attributes private.
        wire_name, fact = _read_field(classifier, symbol, statement, optional, bindings)
        if wire_name == name and generator is not None:
            wire_name = _generate(classifier, symbol, generator, name)
        if name in encoded:
            fact["wire"] = "base64 str"
        fields.pop(wire_name, None)
        fields[wire_name] = fact
    return fields


def bind_type_variables(
    classifier: Classifier, symbol: Symbol, expression: ast.expr, base: Symbol, bindings: type_text.Bindings
) -> dict[str, str]:
    """Bind the type variables of a generic base to the arguments in brackets behind its name."""
    if not isinstance(expression, ast.Subscript):
        return {}
    inner = expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]
    texts = [type_text.render(classifier, symbol.module, argument, bindings) for argument in inner]
    return dict(zip(class_variables(classifier, base), texts, strict=False))


def class_variables(classifier: Classifier, symbol: Symbol) -> list[str]:
    """Return the names of the type variables of a generic class."""
    assert isinstance(symbol.node, ast.ClassDef)
    names: list[str] = []
    for base in symbol.node.bases:
        if isinstance(base, ast.Subscript):
            arguments = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
            if last_name(base.value) in ("Generic", "Protocol"):
                return [last_name(argument) for argument in arguments]
            names += [n for n in type_text.type_variables(classifier, symbol.module, base.slice) if n not in names]
    return names


def read_field_details(
    classifier: Classifier, module: str, annotation: ast.expr, value: ast.expr | None
) -> FieldDetails:
    """Read the arguments of Field(...) or field(...), as the value or inside Annotated, and the constraints."""
    details = FieldDetails()
    for node in (*ast.walk(unquote(annotation)), value):
        if isinstance(node, ast.Call) and last_name(node) == "PropertyInfo":
            details.arguments |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg == "alias"}
        elif isinstance(node, ast.expr):
            details.arguments |= defaults.field_arguments(classifier.modules, module, node) or {}
    details.constraints = read_constraints(classifier, module, annotation, value)
    return details


def read_settings(classifier: Classifier, symbol: Symbol) -> dict[str, Any]:
    """Read the configuration of a model: that of its bases, of the class, and of its inner class Config."""
    return _read_settings(classifier, symbol, frozenset())


def _read_settings(classifier: Classifier, symbol: Symbol, seen: frozenset[Symbol]) -> dict[str, Any]:
    assert isinstance(symbol.node, ast.ClassDef)
    settings: dict[str, Any] = {}
    for base in reversed(classifier.bases(symbol)) if symbol not in seen else ():
        if isinstance(base.node, ast.ClassDef):
            settings |= _read_settings(classifier, base, seen | {symbol})
    own: dict[str, ast.expr] = {k.arg: k.value for k in symbol.node.keywords if k.arg and k.arg != "metaclass"}
    for statement in iter_statements(symbol.node.body):
        value = assigned_value(statement)
        if value is not None and _assigns_configuration(statement):
            entries = defaults.mapping_entries(classifier.modules, symbol.module, value)
            if entries is None:
                text = f"configuration of {symbol.name}: {ast.unparse(value)}"
                classifier.modules.problems.add(symbol.module, value, text)
            own |= entries or {}
        elif isinstance(statement, ast.ClassDef) and statement.name == "Config":
            for inner in statement.body:
                if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                    own[inner.targets[0].id] = inner.value
    for name, expression in own.items():
        settings[name] = _setting(classifier, symbol, expression)
    return settings


def _assigns_configuration(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "model_config" for target in targets)


def _setting(classifier: Classifier, symbol: Symbol, expression: ast.expr) -> Any:
    try:
        return defaults.evaluate(classifier.modules, symbol.module, expression)
    except defaults.UnreadableDefault:
        return ast.unparse(expression)


def _generate(classifier: Classifier, symbol: Symbol, generator: Any, name: str) -> str:
    alias = generate_alias(str(generator), name)
    if alias is None:
        text = f"alias generator of {symbol.name}: {generator}"
        classifier.modules.problems.add(symbol.module, symbol.node, text)
        return name
    return alias


def _read_field(
    classifier: Classifier, owner: Symbol, statement: ast.AnnAssign, is_optional: bool, bindings: type_text.Bindings
) -> tuple[str, Facts]:
    assert isinstance(statement.target, ast.Name)
    name = statement.target.id
    details = read_field_details(classifier, owner.module, statement.annotation, statement.value)
    arguments = details.arguments
    fact: Facts = {"type": type_text.render(classifier, owner.module, statement.annotation, bindings)}
    if classifier.classify(owner) == "typed_dict":
        is_required = not is_optional or _has_name(statement.annotation, frozenset({"Required"}))
        fact["required"] = is_required and not _has_name(statement.annotation, frozenset({"NotRequired"}))
        alias = arguments.get("alias")
        return (str(alias.value) if isinstance(alias, ast.Constant) else name), fact
    fact |= _read_default(classifier, owner.module, statement.value, arguments)
    if details.constraints:
        fact["constraints"] = details.constraints
    if "exclude" in arguments and _evaluate_constant(arguments["exclude"]) is True:
        fact["excluded"] = True
    for key in ("serialization_alias", "alias"):
        if key in arguments:
            value = _setting(classifier, owner, arguments[key])
            name = value if isinstance(value, str) else name
            break
    accepted = arguments.get("validation_alias")
    if isinstance(accepted, ast.Call):
        fact["accepts_names"] = [_evaluate_constant(argument) for argument in accepted.args]
    elif accepted is not None:
        fact["accepts_names"] = [_setting(classifier, owner, accepted)]
    return name, fact


def _read_default(
    classifier: Classifier, module: str, assigned: ast.expr | None, details: dict[str, ast.expr]
) -> Facts:
    is_details = assigned is None or defaults.field_arguments(classifier.modules, module, assigned) is not None
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
        classifier.modules.problems.add(module, assigned, f"default: {error}")
        return {"required": False, "default": {UNREAD: str(error)}}
    return {"required": True}


def _base64_fields(classifier: Classifier, symbol: Symbol) -> set[str]:
    """Return the fields whose serializer encodes their bytes as base64."""
    assert isinstance(symbol.node, ast.ClassDef)
    names: set[str] = set()
    for statement in symbol.node.body:
        for decorator, method in decorated_functions(classifier.modules, symbol, statement):
            is_serializer = isinstance(decorator, ast.Call) and last_name(decorator) == "field_serializer"
            if is_serializer and "b64encode(" in normalize_code(classifier.modules, method):
                names |= {str(_evaluate_constant(argument)) for argument in decorator.args}  # type: ignore[attr-defined]
    return names


def _has_name(annotation: ast.expr, names: frozenset[str]) -> bool:
    parts = ast.walk(unquote(annotation))
    return any(isinstance(part, ast.Name | ast.Attribute) and last_name(part) in names for part in parts)


def _evaluate_constant(expression: ast.expr) -> Any:
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return {UNREAD: ast.unparse(expression)}
