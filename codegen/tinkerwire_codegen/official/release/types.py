"""The types of a release: models, typed dicts, dataclasses, enums, literals, unions and aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from . import type_text
from .classify import Classifier, is_in_types, last_name
from .fields import read_fields
from .modules import Symbol, assigned_value, iter_statements
from .type_syntax import literal_values, union_members, unwrap

Facts = dict[str, Any]

ROOTS = frozenset({"BaseModel", "StrictBase"})


def read_types(classifier: Classifier) -> tuple[Facts, Facts]:
    """Read the types of the wire, and the dataclasses of the Python API that are not on the wire, both by name."""
    wire: Facts = {}
    in_memory: Facts = {}
    for symbol in _candidates(classifier):
        kind = classifier.classify(symbol)
        if kind == "dataclass" and is_in_types(symbol.module):
            fields = read_fields(classifier, symbol)
            in_memory.setdefault(symbol.name, {"kind": kind, "module": symbol.module, "fields": fields})
        elif kind in ("pydantic", "typed_dict"):
            _add(wire, symbol.name, _read_model(classifier, symbol, kind))
        elif kind == "enum" and is_in_types(symbol.module):
            _add(wire, symbol.name, _read_enum(symbol))
        elif kind == "value":
            _add(wire, symbol.name, _read_alias(classifier, symbol))
    return wire, in_memory


def _candidates(classifier: Classifier) -> Iterator[Symbol]:
    """Yield the definitions of wire modules; private top-level modules and tests belong to the SDK's own machinery."""
    for module in sorted(classifier.modules.trees):
        parts = module.split(".")
        if not (len(parts) > 1 and parts[1].startswith("_")) and not parts[-1].endswith(("_test", "_pb2")):
            yield from classifier.modules.symbols(module)


def _add(wire: Facts, name: str, fact: Facts) -> None:
    if name in wire:
        wire[name].setdefault("also_in", []).append(fact["module"])
    else:
        wire[name] = fact


def _read_model(classifier: Classifier, symbol: Symbol, kind: str) -> Facts:
    fact: Facts = {"kind": kind, "module": symbol.module}
    if kind == "pydantic":
        extra = _read_extra(classifier, symbol)
        fact |= {"extra": extra, "strict": extra == "forbid"}
        bases = [base.name for base in classifier.bases(symbol) if base.name not in ROOTS]
        if bases:
            fact["bases"] = bases
    fact["fields"] = read_fields(classifier, symbol)
    return fact | _read_hooks(symbol)


def _read_extra(classifier: Classifier, symbol: Symbol) -> str:
    """Return how a model treats unknown fields, from the class, its configuration, or its bases."""
    assert isinstance(symbol.node, ast.ClassDef)
    keywords = [keyword for keyword in symbol.node.keywords if keyword.arg == "extra"]
    for statement in iter_statements(symbol.node.body):
        value = assigned_value(statement)
        if isinstance(value, ast.Call) and last_name(value) in ("ConfigDict", "SettingsConfigDict"):
            keywords += [keyword for keyword in value.keywords if keyword.arg == "extra"]
    for keyword in keywords:
        if isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    for base in classifier.bases(symbol):
        if classifier.classify(base) == "pydantic":
            return _read_extra(classifier, base)
    return "ignore"


def _read_hooks(symbol: Symbol) -> Facts:
    """List the methods that change what is read or sent beyond the fields."""
    assert isinstance(symbol.node, ast.ClassDef)
    hooks: Facts = {}
    for method in symbol.node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        decorators = {last_name(decorator) for decorator in method.decorator_list}
        if decorators & {"field_validator", "model_validator", "validator", "root_validator"}:
            hooks.setdefault("validators", []).append(method.name)
        if "model_serializer" in decorators:
            hooks["model_serializer"] = {"removes": _popped_keys(method), "emits": _stored_keys(method)}
    return hooks


def _popped_keys(method: ast.FunctionDef) -> list[str]:
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Call) and last_name(node) == "pop"]
    return [call.args[0].value for call in calls if call.args and _is_text(call.args[0])]  # type: ignore[attr-defined]


def _stored_keys(method: ast.FunctionDef) -> list[str]:
    targets = [target for node in ast.walk(method) if isinstance(node, ast.Assign) for target in node.targets]
    keys = [target.slice for target in targets if isinstance(target, ast.Subscript)]
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def _is_text(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and isinstance(expression.value, str)


def _read_enum(symbol: Symbol) -> Facts:
    assert isinstance(symbol.node, ast.ClassDef)
    names, values = [], []
    for statement in symbol.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            names.append(name)
            is_auto = isinstance(statement.value, ast.Call) and last_name(statement.value) == "auto"
            values.append(name.lower() if is_auto else ast.literal_eval(statement.value))
    return {"kind": "enum", "module": symbol.module, "values": values, "python_names": names, "fields": {}}


def _read_alias(classifier: Classifier, symbol: Symbol) -> Facts:
    node, module, modules = symbol.node, symbol.module, classifier.modules
    assert isinstance(node, ast.expr)
    fact: Facts = {"module": module, "fields": {}}
    values = literal_values(modules, module, node)
    if values is not None:
        return {"kind": "literal", "values": values, **fact}
    members = union_members(modules, module, node)
    if members and all(
        isinstance(modules.resolve(module, unwrap(modules, module, member)), Symbol) for member in members
    ):
        texts = [type_text.render(classifier, module, member) for member in members]
        return {"kind": "union", "members": texts, **fact, **_read_discriminator(node)}
    return {"kind": "alias", "target": type_text.render(classifier, module, node), **fact}


def _read_discriminator(node: ast.expr) -> Facts:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "discriminator" and isinstance(keyword.value, ast.Constant):
                    return {"discriminator": keyword.value.value}
    return {}
