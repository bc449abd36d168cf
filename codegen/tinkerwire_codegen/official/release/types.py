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
    """The types that go over the wire, and the dataclasses of the Python API that do not, both by name."""
    wire: Facts = {}
    in_memory: Facts = {}
    for symbol in _candidates(classifier):
        kind = classifier.classify(symbol)
        if kind == "dataclass" and is_in_types(symbol.module):
            fields = read_fields(classifier, symbol)
            in_memory.setdefault(symbol.name, {"kind": kind, "module": symbol.module, "fields": fields})
        elif kind in ("pydantic", "typed_dict"):
            _add(wire, symbol.name, _model(classifier, symbol, kind))
        elif kind == "enum" and is_in_types(symbol.module):
            _add(wire, symbol.name, _enum(symbol))
        elif kind == "value":
            _add(wire, symbol.name, _alias(classifier, symbol))
    return wire, in_memory


def _candidates(classifier: Classifier) -> Iterator[Symbol]:
    """What modules of the wire define; private modules at the top and tests are the SDK's own machinery."""
    for module in sorted(classifier.modules.trees):
        parts = module.split(".")
        if not (len(parts) > 1 and parts[1].startswith("_")) and not parts[-1].endswith(("_test", "_pb2")):
            yield from classifier.modules.symbols(module)


def _add(wire: Facts, name: str, found: Facts) -> None:
    if name in wire:
        wire[name].setdefault("also_in", []).append(found["module"])
    else:
        wire[name] = found


def _model(classifier: Classifier, symbol: Symbol, kind: str) -> Facts:
    found: Facts = {"kind": kind, "module": symbol.module}
    if kind == "pydantic":
        extra = _extra(classifier, symbol)
        found |= {"extra": extra, "strict": extra == "forbid"}
        bases = [base.name for base in classifier.bases(symbol) if base.name not in ROOTS]
        if bases:
            found["bases"] = bases
    found["fields"] = read_fields(classifier, symbol)
    return found | _hooks(symbol)


def _extra(classifier: Classifier, symbol: Symbol) -> str:
    """What a model does with unknown fields; said by the class, its configuration, or what it stands on."""
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
            return _extra(classifier, base)
    return "ignore"


def _hooks(symbol: Symbol) -> Facts:
    """Methods that change what is read or sent beyond the fields."""
    assert isinstance(symbol.node, ast.ClassDef)
    found: Facts = {}
    for method in symbol.node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        decorators = {last_name(decorator) for decorator in method.decorator_list}
        if decorators & {"field_validator", "model_validator", "validator", "root_validator"}:
            found.setdefault("validators", []).append(method.name)
        if "model_serializer" in decorators:
            found["model_serializer"] = {"removes": _popped(method), "emits": _stored(method)}
    return found


def _popped(method: ast.FunctionDef) -> list[str]:
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Call) and last_name(node) == "pop"]
    return [call.args[0].value for call in calls if call.args and _is_text(call.args[0])]  # type: ignore[attr-defined]


def _stored(method: ast.FunctionDef) -> list[str]:
    targets = [target for node in ast.walk(method) if isinstance(node, ast.Assign) for target in node.targets]
    keys = [target.slice for target in targets if isinstance(target, ast.Subscript)]
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def _is_text(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and isinstance(expression.value, str)


def _enum(symbol: Symbol) -> Facts:
    assert isinstance(symbol.node, ast.ClassDef)
    names, values = [], []
    for statement in symbol.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            names.append(name)
            is_auto = isinstance(statement.value, ast.Call) and last_name(statement.value) == "auto"
            values.append(name.lower() if is_auto else ast.literal_eval(statement.value))
    return {"kind": "enum", "module": symbol.module, "values": values, "python_names": names, "fields": {}}


def _alias(classifier: Classifier, symbol: Symbol) -> Facts:
    node, module, modules = symbol.node, symbol.module, classifier.modules
    assert isinstance(node, ast.expr)
    found: Facts = {"module": module, "fields": {}}
    values = literal_values(modules, module, node)
    if values is not None:
        return {"kind": "literal", "values": values, **found}
    members = union_members(modules, module, node)
    if members and all(isinstance(modules.resolve(module, unwrap(modules, module, each)), Symbol) for each in members):
        texts = [type_text.render(classifier, module, each) for each in members]
        return {"kind": "union", "members": texts, **found, **_discriminator(node)}
    return {"kind": "alias", "target": type_text.render(classifier, module, node), **found}


def _discriminator(node: ast.expr) -> Facts:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "discriminator" and isinstance(keyword.value, ast.Constant):
                    return {"discriminator": keyword.value.value}
    return {}
