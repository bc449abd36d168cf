"""The types of a release: models, typed dicts, dataclasses, enums, literals, unions and aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import defaults, type_text
from .classify import TYPE_CALLS, Classifier, is_in_types, last_name, strip_subscript
from .fields import read_fields, read_settings
from .modules import ExternalName, Symbol, assigned_names, iter_statements
from .type_syntax import literal_values, union_members, unquote, unwrap

Facts = dict[str, Any]

ROOTS = frozenset({"BaseModel", "StrictBase"})


MACHINERY = frozenset(
    {
        *("BaseModel", "StrictBase", "GenericModel", "RootModel", "BasePage", "BaseAsyncPage", "BaseSyncPage"),
        *("FinalRequestOptions", "FinalRequestOptionsInput", "HttpxSendArgs", "RequestOptions"),
    }
)
"""Classes of the SDK's client itself, in private modules."""
PLAIN_BASES = frozenset({"Protocol", "Generic", "ABC", "object", "str", "int", "float", "NamedTuple", "Exception"})


def read_types(classifier: Classifier) -> tuple[Facts, Facts]:
    """Read the types of the wire, and the dataclasses of the Python API that are not on the wire, both by name."""
    wire: Facts = {}
    in_memory: Facts = {}
    for symbol in list_types(classifier):
        with reported(classifier, symbol):
            _read_type(classifier, symbol, wire, in_memory)
    return wire, in_memory


@contextmanager
def reported(classifier: Classifier, symbol: Symbol) -> Iterator[None]:
    """Report a definition that cannot be read, and go on with the next."""
    try:
        yield
    except (
        RecursionError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        AssertionError,
        ArithmeticError,
    ) as error:
        classifier.modules.problems.add(symbol.module, symbol.node, f"{symbol.name}: {type(error).__name__}: {error}")


def _read_type(classifier: Classifier, symbol: Symbol, wire: Facts, in_memory: Facts) -> None:
    kind = classifier.classify(symbol)
    if kind == "dataclass" and classifier.is_wire_place(symbol):
        fields = read_fields(classifier, symbol)
        in_memory.setdefault(symbol.name, {"kind": kind, "module": symbol.module, "fields": fields})
    elif kind in ("pydantic", "typed_dict"):
        _add(wire, symbol.name, _read_model(classifier, symbol, kind))
    elif kind == "enum" and classifier.is_wire_place(symbol):
        _add(wire, symbol.name, _read_enum(classifier, symbol))
    elif kind == "value":
        _add(wire, symbol.name, _read_alias(classifier, symbol))
    elif kind == "other":
        _report_unknown(classifier, symbol)


def list_types(classifier: Classifier) -> list[Symbol]:
    """List the definitions of all modules, without tests, messages of protobuf and the client's own machinery."""
    found: list[Symbol] = []
    for module in sorted(classifier.modules.trees):
        parts = module.split(".")
        if parts[-1].endswith(("_test", "_pb2")):
            continue
        is_private = len(parts) > 1 and parts[1].startswith("_")
        for symbol in classifier.modules.symbols(module):
            if not (is_private and symbol.name in MACHINERY):
                found.append(symbol)
    return found


def _report_unknown(classifier: Classifier, symbol: Symbol) -> None:
    """Report a class of the wire's modules that has a base from outside whose kind is not known."""
    if not is_in_types(symbol.module):
        return
    if isinstance(symbol.node, ast.Call) and last_name(symbol.node) in FACTORIES:
        classifier.modules.problems.add(symbol.module, symbol.node, f"type {symbol.name}, made by a function")
    if not isinstance(symbol.node, ast.ClassDef):
        return
    for base in symbol.node.bases:
        target = classifier.modules.resolve(symbol.module, strip_subscript(base))
        if isinstance(target, ExternalName) and target.last not in PLAIN_BASES and not target.last.endswith("Error"):
            text = f"class {symbol.name} with base {target.last}"
            classifier.modules.problems.add(symbol.module, symbol.node, text)


FACTORIES = frozenset({"TypedDict", "create_model", "Enum", "StrEnum", "IntEnum", "make_dataclass", "namedtuple"})
"""Functions that make types from their arguments."""


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
    return str(read_settings(classifier, symbol).get("extra", "ignore"))


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


def _read_enum(classifier: Classifier, symbol: Symbol) -> Facts:
    assert isinstance(symbol.node, ast.ClassDef)
    names, values = [], []
    for statement in iter_statements(symbol.node.body):
        for name, value in assigned_names(statement, statement.value) if isinstance(statement, ast.Assign) else ():
            if name.startswith("_"):
                continue
            names.append(name)
            is_auto = isinstance(value, ast.Call) and last_name(value) == "auto"
            values.append(name.lower() if is_auto else _enum_value(classifier, symbol, value))
    return {"kind": "enum", "module": symbol.module, "values": values, "python_names": names, "fields": {}}


def _enum_value(classifier: Classifier, symbol: Symbol, expression: ast.expr) -> Any:
    try:
        value = defaults.evaluate(classifier.modules, symbol.module, expression)
    except defaults.UnreadableDefault:
        text = f"value of {symbol.name}: {ast.unparse(expression)}"
        classifier.modules.problems.add(symbol.module, expression, text)
        return ast.unparse(expression)
    return value[0] if isinstance(value, list) and value else value


def _read_alias(classifier: Classifier, symbol: Symbol) -> Facts:
    node, module, modules = symbol.node, symbol.module, classifier.modules
    assert isinstance(node, ast.expr)
    if isinstance(node, ast.Call) and last_name(node) in TYPE_CALLS and len(node.args) > 1:
        node = node.args[1]
    node = unquote(node)
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
