"""Behaviour of models beyond their fields: constraints, names, serializers, computed and excluded fields, settings."""

from __future__ import annotations

import ast
from typing import Any

from .classify import Classifier, last_name
from .constraints import iter_parts
from .fields import read_field_details, read_fields, read_settings
from .fingerprints import decorated_functions, take_fingerprint
from .modules import Function, FunctionSymbol, Symbol, iter_statements
from .problems import is_unread
from .type_text import render
from .types import list_types, reported

Facts = dict[str, dict[str, Any]]

SERIALIZERS = frozenset({"field_serializer", "model_serializer", "PlainSerializer", "WrapSerializer"})
VALIDATORS = frozenset(
    {
        *("field_validator", "model_validator", "validator", "root_validator"),
        *("AfterValidator", "BeforeValidator", "PlainValidator", "WrapValidator"),
    }
)
SETTINGS = frozenset(
    {
        *("use_enum_values", "ser_json_bytes", "ser_json_timedelta", "ser_json_inf_nan", "ser_json_temporal"),
        *("val_json_bytes", "val_temporal_unit", "str_to_lower", "str_to_upper", "str_strip_whitespace"),
        *("str_min_length", "str_max_length", "coerce_numbers_to_str", "serialize_by_alias", "strict"),
        *("allow_inf_nan", "json_encoders", "populate_by_name", "validate_by_name", "validate_by_alias"),
    }
)
"""Settings of a model that change what it reads or writes."""


def read_model_behaviour(classifier: Classifier) -> Facts:
    """Read the behaviour of all types of a release."""
    behaviour: Facts = {}
    for symbol in list_types(classifier):
        with reported(classifier, symbol):
            _read_type(classifier, symbol, behaviour)
    return behaviour


def _read_type(classifier: Classifier, symbol: Symbol, behaviour: Facts) -> None:
    kind = classifier.classify(symbol)
    if kind == "dataclass" and classifier.is_wire_place(symbol) and not symbol.name.startswith("_"):
        for name, field in read_fields(classifier, symbol).items():
            if not name.startswith("_"):
                default = field.get("default")
                text = f"{field['type']} = {default!r}" if "default" in field else field["type"]
                behaviour.setdefault("dataclass field", {})[f"{symbol.name}.{name}"] = (
                    default if is_unread(default) else text
                )
    elif kind in ("pydantic", "typed_dict"):
        _read_model(classifier, symbol, behaviour)
    elif kind == "value":
        assert isinstance(symbol.node, ast.expr)
        constraints = read_field_details(classifier, symbol.module, symbol.node, None).constraints
        if constraints:
            behaviour.setdefault("constraint", {})[symbol.name] = constraints


def _read_model(classifier: Classifier, symbol: Symbol, behaviour: Facts) -> None:
    def add(kind: str, where: str, value: Any) -> None:
        behaviour.setdefault(kind, {})[where] = value

    def add_code(kind: str, where: str, code: str) -> None:
        codes = behaviour.setdefault(kind, {}).setdefault(where, [])
        codes += [code] if code not in codes else []
        codes.sort()

    for name, field in read_fields(classifier, symbol).items():
        where = f"{symbol.name}.{name}"
        for kind, key in (("constraint", "constraints"), ("accepted names", "accepts_names"), ("encoding", "wire")):
            if key in field:
                add(kind, where, field[key])
        if field.get("excluded"):
            add("excluded field", where, True)
    for key, value in read_settings(classifier, symbol).items():
        if key in SETTINGS:
            add("setting", f"{symbol.name}.{key}", value)
    for owner in reversed([symbol, *_all_bases(classifier, symbol)]):
        _read_methods(classifier, symbol, owner, add, add_code)


def _read_methods(classifier: Classifier, symbol: Symbol, owner: Symbol, add: Any, add_code: Any) -> None:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in iter_statements(owner.node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            for module, call in iter_parts(classifier, owner.module, statement.annotation, None):
                if isinstance(call, ast.Call) and _kind_of_code(call):
                    where = f"{symbol.name}.{statement.target.id}"
                    add_code(_kind_of_code(call), where, _fingerprint_call(classifier, module, call))
        for decorator, method in decorated_functions(classifier.modules, owner, statement):
            name = last_name(decorator)
            places = _decorated_fields(decorator)
            if name == "computed_field":
                text = render(classifier, owner.module, method.node.returns) if method.node.returns else "any"
                add("computed field", f"{symbol.name}.{_computed_name(decorator, method.node)}", text)
            elif _kind_of_code(decorator):
                code = take_fingerprint(classifier.modules, method)
                options = sorted(ast.unparse(k) for k in getattr(decorator, "keywords", []) if k.arg != "check_fields")
                for place in places or [""]:
                    where = f"{symbol.name}.{place}" if place else symbol.name
                    add_code(_kind_of_code(decorator), where, " ".join([code, *options]))


def _kind_of_code(expression: ast.expr) -> str:
    """Return serializer or validator for a decorator or a part of an annotation that adds one, else nothing."""
    name = last_name(expression)
    return "serializer" if name in SERIALIZERS else "validator" if name in VALIDATORS else ""


def _decorated_fields(decorator: ast.expr) -> list[str]:
    arguments = decorator.args if isinstance(decorator, ast.Call) else []
    return [str(argument.value) for argument in arguments if isinstance(argument, ast.Constant)]


def _computed_name(decorator: ast.expr, method: Function) -> str:
    for keyword in getattr(decorator, "keywords", []):
        if keyword.arg == "alias" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return method.name


def _fingerprint_call(classifier: Classifier, module: str, call: ast.Call) -> str:
    # Serializers and validators of different kinds may have the same code.
    parts = [last_name(call)] if last_name(call) not in SERIALIZERS else []
    for argument in call.args[:1]:
        target = classifier.modules.resolve(module, argument)
        is_function = isinstance(target, FunctionSymbol)
        parts.append(take_fingerprint(classifier.modules, target) if is_function else ast.unparse(argument))  # type: ignore[arg-type]
    return " ".join([*parts, *sorted(ast.unparse(keyword) for keyword in call.keywords)])


def _all_bases(classifier: Classifier, symbol: Symbol) -> list[Symbol]:
    found: list[Symbol] = []
    waiting = [symbol]
    while waiting:
        waiting = [base for owner in waiting for base in classifier.bases(owner) if base not in found]
        found += waiting
    return [base for base in found if base != symbol]
