"""Functions of the standard library that a release makes texts, numbers and mappings with."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .mappings import store
from .modules import ExternalName, ReleaseModules
from .records import RecordReader
from .templates import fill_dollar, join_paths, parts_of, replace_text
from .values import Constant, Environment, Hole, Items, Mapping, Text, Value

PATHS = frozenset({"posixpath.join", "os.path.join", "pathlib.PurePosixPath", "pathlib.PurePath", "pathlib.Path"})
NUMBERS: dict[str, Callable[[Any], float]] = {"float": float, "int": int}
COPIES = frozenset({"list", "tuple"})


class LibraryReader:
    """Reader of calls of the standard library."""

    def __init__(
        self, modules: ReleaseModules, records: RecordReader, evaluate: Callable[[ast.expr, Environment], Value]
    ) -> None:
        """Initialize with the function that evaluates their arguments."""
        self._modules, self._records, self._evaluate = modules, records, evaluate

    def call(self, call: ast.Call, environment: Environment) -> Value | None:
        """Return the value of a call; None if it is not one of the standard library, or its arguments are not known."""
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        if isinstance(call.func, ast.Attribute):
            value = self._method(call, call.func, environment)
            if value is not None:
                return value
        elif isinstance(call.func, ast.Name) and environment.find(call.func.id) is not None:
            return None
        name = self._name(call.func, environment)
        if name in PATHS and call.args:
            return Text(join_paths([parts_of(value) for value in self._arguments(call, environment)]))
        if name == "zip":
            return _zip(self._arguments(call, environment))
        if name in ("dataclasses.asdict", "vars") and len(call.args) == 1:
            return self._records.to_mapping(self._evaluate(call.args[0], environment))
        if name == "dict.fromkeys" and call.args:
            return _from_keys(self._arguments(call, environment))
        if name in NUMBERS and len(call.args) == 1 and not call.keywords:
            return _convert(NUMBERS[name], self._evaluate(call.args[0], environment))
        if name in COPIES and len(call.args) == 1:
            value = self._evaluate(call.args[0], environment)
            return value if isinstance(value, Items) else None
        return None

    def _name(self, function: ast.expr, environment: Environment) -> str:
        """Return the dotted name of a function from outside the release; builtins have no dots."""
        referent = self._modules.resolve(environment.module, function)
        return referent.name if isinstance(referent, ExternalName) else ""

    def _arguments(self, call: ast.Call, environment: Environment) -> list[Value]:
        return [self._evaluate(argument, environment) for argument in call.args]

    def _method(self, call: ast.Call, method: ast.Attribute, environment: Environment) -> Value | None:
        if method.attr == "_asdict":
            return self._records.to_mapping(self._evaluate(method.value, environment))
        if method.attr == "replace" and len(call.args) == 2:
            text, old, new = (self._evaluate(part, environment) for part in (method.value, *call.args))
            is_known = isinstance(text, Text) and isinstance(old, Text) and old.constant
            return replace_text(text, str(old.constant), parts_of(new)) if is_known else None  # type: ignore[arg-type,union-attr]
        if method.attr not in ("substitute", "safe_substitute", "total_seconds"):
            return None
        found = self._records.find_construction(self._evaluate(method.value, environment))
        name = self._name(found[0].func, found[1]) if found else ""
        if found and name == "string.Template" and method.attr != "total_seconds" and found[0].args:
            template = self._evaluate(found[0].args[0], found[1])
            values = self._keywords(call, environment)
            return fill_dollar(template, values) if isinstance(template, Text) and values is not None else None
        if found and name == "datetime.timedelta" and method.attr == "total_seconds":
            return self._seconds(*found)
        return None

    def _keywords(self, call: ast.Call, environment: Environment) -> dict[str, list[str | Hole]] | None:
        """Return the values of a template by name, from a mapping and from keywords; None if a name is not known."""
        values = [(keyword.arg, self._evaluate(keyword.value, environment)) for keyword in call.keywords]
        values += [(None, value) for value in self._arguments(call, environment)]
        parts: dict[str, list[str | Hole]] = {}
        for name, value in values:
            if name is not None:
                parts[name] = parts_of(value)
            elif isinstance(value, Mapping) and not value.rest:
                parts |= {key: parts_of(entry.value) for key, entry in value.entries.items()}
            else:
                return None
        return parts

    def _seconds(self, call: ast.Call, environment: Environment) -> Value | None:
        values = [(keyword.arg, self._evaluate(keyword.value, environment)) for keyword in call.keywords]
        names = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
        values += zip(names, self._arguments(call, environment), strict=False)
        numbers: dict[str, float] = {}
        for name, value in values:
            if name not in names or not isinstance(value, Constant) or not isinstance(value.value, int | float):
                return None
            numbers[str(name)] = value.value
        return Constant(timedelta(**numbers).total_seconds())


def _zip(values: list[Value]) -> Value | None:
    lists = [value.values for value in values if isinstance(value, Items)]
    if not lists or len(lists) < len(values):
        return None
    return Items(tuple(Items(items) for items in zip(*lists, strict=False)))


def _from_keys(arguments: list[Value]) -> Value | None:
    keys, value = arguments[0], arguments[1] if len(arguments) > 1 else Constant(None)
    if isinstance(keys, Mapping) and not keys.rest:
        keys = Items(tuple(Text((key,)) for key in keys.entries))
    if not isinstance(keys, Items):
        return None
    mapping = Mapping()
    for key in keys.values:
        mapping = store(mapping, key, value)
    return mapping


def _convert(kind: Callable[[Any], float], value: Value) -> Value | None:
    known = value.constant if isinstance(value, Text) else value.value if isinstance(value, Constant) else None
    try:
        return Constant(kind(known))
    except (TypeError, ValueError):
        return None
