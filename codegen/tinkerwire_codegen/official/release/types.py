"""The types of a release: models, typed dicts, dataclasses, enums, literals, unions and aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from . import type_text
from .classify import Kinds, in_types, last_name
from .fields import read_fields
from .modules import Symbol, assigned, flat
from .type_syntax import bare, literal_values, members

Facts = dict[str, Any]

ROOTS = frozenset({"BaseModel", "StrictBase"})


def read_types(kinds: Kinds) -> tuple[Facts, Facts]:
    """The types that go over the wire, and the dataclasses of the Python API that do not, both by name."""
    wire: Facts = {}
    in_memory: Facts = {}
    for symbol in _candidates(kinds):
        kind = kinds.kind(symbol)
        if kind == "dataclass" and in_types(symbol.module):
            fields = read_fields(kinds, symbol)
            in_memory.setdefault(symbol.name, {"kind": kind, "module": symbol.module, "fields": fields})
        elif kind in ("pydantic", "typed_dict"):
            _add(wire, symbol.name, _model(kinds, symbol, kind))
        elif kind == "enum" and in_types(symbol.module):
            _add(wire, symbol.name, _enum(symbol))
        elif kind == "value":
            _add(wire, symbol.name, _alias(kinds, symbol))
    return wire, in_memory


def _candidates(kinds: Kinds) -> Iterator[Symbol]:
    """What modules of the wire define; private modules at the top and tests are the SDK's own machinery."""
    for module in sorted(kinds.modules.trees):
        parts = module.split(".")
        if not (len(parts) > 1 and parts[1].startswith("_")) and not parts[-1].endswith(("_test", "_pb2")):
            yield from kinds.modules.symbols(module)


def _add(wire: Facts, name: str, found: Facts) -> None:
    if name in wire:
        wire[name].setdefault("also_in", []).append(found["module"])
    else:
        wire[name] = found


def _model(kinds: Kinds, symbol: Symbol, kind: str) -> Facts:
    found: Facts = {"kind": kind, "module": symbol.module}
    if kind == "pydantic":
        extra = _extra(kinds, symbol)
        found |= {"extra": extra, "strict": extra == "forbid"}
        bases = [base.name for base in kinds.bases(symbol) if base.name not in ROOTS]
        if bases:
            found["bases"] = bases
    found["fields"] = read_fields(kinds, symbol)
    return found | _hooks(symbol)


def _extra(kinds: Kinds, symbol: Symbol) -> str:
    """What a model does with unknown fields; said by the class, its configuration, or what it stands on."""
    assert isinstance(symbol.node, ast.ClassDef)
    said = [keyword for keyword in symbol.node.keywords if keyword.arg == "extra"]
    for statement in flat(symbol.node.body):
        value = assigned(statement)
        if isinstance(value, ast.Call) and last_name(value) in ("ConfigDict", "SettingsConfigDict"):
            said += [keyword for keyword in value.keywords if keyword.arg == "extra"]
    for keyword in said:
        if isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    for base in kinds.bases(symbol):
        if kinds.kind(base) == "pydantic":
            return _extra(kinds, base)
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


def _alias(kinds: Kinds, symbol: Symbol) -> Facts:
    node, module, modules = symbol.node, symbol.module, kinds.modules
    assert isinstance(node, ast.expr)
    found: Facts = {"module": module, "fields": {}}
    values = literal_values(modules, module, node)
    if values is not None:
        return {"kind": "literal", "values": values, **found}
    written = members(modules, module, node)
    if written and all(isinstance(modules.meaning(module, bare(modules, module, each)), Symbol) for each in written):
        texts = [type_text.text(kinds, module, each) for each in written]
        return {"kind": "union", "members": texts, **found, **_discriminator(node)}
    return {"kind": "alias", "target": type_text.text(kinds, module, node), **found}


def _discriminator(node: ast.expr) -> Facts:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "discriminator" and isinstance(keyword.value, ast.Constant):
                    return {"discriminator": keyword.value.value}
    return {}
