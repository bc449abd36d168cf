"""Evaluation of expressions of a release: strings, mappings, constants, and the functions that return them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .classify import last_name
from .library import LibraryReader
from .mappings import as_mapping, pairs_to_mapping, store
from .members import MemberReader
from .modules import FunctionSymbol, ReleaseModules, Symbol, is_value_function
from .records import RecordReader
from .templates import fill_format, fill_percent, join_parts, name_variable, parts_of, strip_text
from .values import (
    Closure,
    Constant,
    Entry,
    Environment,
    Hole,
    Items,
    Mapping,
    Parameter,
    Source,
    Text,
    Value,
    choose,
    is_none,
    options_of,
    overlay,
)

MAXIMUM_DEPTH = 12
OPTIONS = frozenset({"make_request_options", "RequestOptions", "FinalRequestOptions", "dict", "Headers", "QueryParams"})
"""Functions whose keywords are the entries of the mapping that they return."""
PASSED_ON = frozenset({"cast", "str", "deepcopy", "copy", "URL", "strip_not_given", "is_given", "MappingProxyType"})
"""Functions that return their last argument, for the wire."""
KEPT = frozenset({"model_dump", "dict", "to_dict", "maybe_transform", "async_maybe_transform"}) - OPTIONS
"""Functions that make a body of a model, which stay source."""
STRIPPED = frozenset({"strip", "lstrip", "rstrip", "lower", "removeprefix", "removesuffix", "copy", "encode", "decode"})
NUMBERS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class Evaluator:
    """Evaluator of expressions; ``run`` executes the body of a function and returns its value."""

    def __init__(self, modules: ReleaseModules) -> None:
        """Initialize with the modules of a release."""
        self.modules = modules
        self._evaluating: set[tuple[str, str]] = set()
        self._globals: dict[tuple[str, str], Value] = {}
        self._members = MemberReader(modules, self.evaluate, self.call)
        self.records = RecordReader(modules, self.evaluate)
        self._library = LibraryReader(modules, self.records, self.evaluate)
        self.run: Callable[[Closure, Environment], Value] | None = None

    def evaluate(self, expression: ast.expr, environment: Environment) -> Value:
        """Evaluate an expression; what cannot be evaluated stays source."""
        handler = getattr(self, f"_evaluate_{type(expression).__name__.lower()}", None)
        value: Value = handler(expression, environment) if handler else Source(expression, environment)
        return value

    def _evaluate_constant(self, expression: ast.Constant, environment: Environment) -> Value:
        value = expression.value
        if isinstance(value, str):
            return Text((value,))
        return Source(expression, environment) if isinstance(value, bytes) else Constant(value)

    def _evaluate_joinedstr(self, expression: ast.JoinedStr, environment: Environment) -> Value:
        parts: list[str | Hole] = []
        for part in expression.values:
            parts += self._parts(part, environment)
        return Text(join_parts(parts))

    def _evaluate_formattedvalue(self, expression: ast.FormattedValue, environment: Environment) -> Value:
        return Text(join_parts(self._parts(expression.value, environment)))

    def _parts(self, expression: ast.expr, environment: Environment) -> list[str | Hole]:
        """Return an expression as parts of a string."""
        if isinstance(expression, ast.FormattedValue):
            expression = expression.value
        value = self.evaluate(expression, environment)
        parts = parts_of(value)
        return parts if isinstance(value, Text | Constant) else [Hole(name_variable(value, expression))]

    def _evaluate_binop(self, expression: ast.BinOp, environment: Environment) -> Value:
        left, right = (self.evaluate(side, environment) for side in (expression.left, expression.right))
        if isinstance(expression.op, ast.BitOr) and (isinstance(left, Mapping) or isinstance(right, Mapping)):
            return overlay(as_mapping(left), as_mapping(right))
        if isinstance(expression.op, ast.Mod) and isinstance(left, Text):
            return self._fill(left, "%", expression.right, environment)
        if isinstance(left, Constant) and isinstance(right, Constant) and type(expression.op) in NUMBERS:
            try:
                return Constant(NUMBERS[type(expression.op)](left.value, right.value))
            except (TypeError, ArithmeticError):
                return Source(expression, environment)
        if isinstance(expression.op, ast.Add | ast.Div) and (isinstance(left, Text) or isinstance(right, Text)):
            sides = [self._parts(side, environment) for side in (expression.left, expression.right)]
            middle: list[str | Hole] = ["/"] if isinstance(expression.op, ast.Div) else []
            return Text(join_parts([*sides[0], *middle, *sides[1]]))
        if isinstance(expression.op, ast.Add) and isinstance(left, Items) and isinstance(right, Items):
            return Items(left.values + right.values)
        return Source(expression, environment)

    def _evaluate_unaryop(self, expression: ast.UnaryOp, environment: Environment) -> Value:
        value = self.evaluate(expression.operand, environment)
        if isinstance(expression.op, ast.Not) and isinstance(value, Constant):
            return Constant(not value.value)
        if isinstance(expression.op, ast.USub) and isinstance(value, Constant) and isinstance(value.value, int | float):
            return Constant(-value.value)
        return Source(expression, environment)

    def _evaluate_await(self, expression: ast.Await, environment: Environment) -> Value:
        return self.evaluate(expression.value, environment)

    def _evaluate_namedexpr(self, expression: ast.NamedExpr, environment: Environment) -> Value:
        value = self.evaluate(expression.value, environment)
        environment.variables[expression.target.id] = value
        return value

    def _evaluate_lambda(self, expression: ast.Lambda, environment: Environment) -> Value:
        return Closure(expression, environment)

    def _evaluate_ifexp(self, expression: ast.IfExp, environment: Environment) -> Value:
        truth = self.decide(expression.test, environment)
        branches = [expression.body] if truth else [expression.orelse] if truth is False else []
        return choose(
            [self.evaluate(branch, environment) for branch in branches or (expression.body, expression.orelse)]
        )

    def _evaluate_boolop(self, expression: ast.BoolOp, environment: Environment) -> Value:
        values = [self.evaluate(value, environment) for value in expression.values]
        if isinstance(expression.op, ast.And):
            return choose([Constant(None), values[-1]])
        known = [value for value in values if not is_none(value)]
        if known and isinstance(known[0], Text | Mapping) and known[0] == values[0]:
            return known[0]
        return choose(known or values)

    def decide(self, test: ast.expr, environment: Environment) -> bool | None:
        """Decide a condition whose operands are known; None if they are not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.decide(test.operand, environment)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is | ast.IsNot):
            left, right = (self.evaluate(side, environment) for side in (test.left, test.comparators[0]))
            known = isinstance(left, Constant | Text | Mapping) and isinstance(right, Constant)
            return (left == right) == isinstance(test.ops[0], ast.Is) if known else None
        if isinstance(test, ast.Name):
            value = self.evaluate(test, environment)
            if isinstance(value, Constant):
                return bool(value.value)
        return None

    def _evaluate_dict(self, expression: ast.Dict, environment: Environment) -> Value:
        mapping = Mapping()
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                mapping = overlay(mapping, as_mapping(self.evaluate(value, environment)))
                continue
            mapping = store(mapping, self.evaluate(key, environment), self.evaluate(value, environment))
        return mapping

    def _evaluate_dictcomp(self, expression: ast.DictComp, environment: Environment) -> Value:
        """Evaluate a comprehension that filters the items of a mapping; the entries that it keeps are optional."""
        (generator, *others) = expression.generators
        source = self._evaluate_items(generator.iter, environment)
        if others or not isinstance(source, Mapping):
            return Source(expression, environment)
        target = generator.target
        names = (
            [element.id for element in target.elts if isinstance(element, ast.Name)]
            if isinstance(target, ast.Tuple)
            else []
        )
        if len(names) != 2 or not (isinstance(expression.key, ast.Name) and expression.key.id == names[0]):
            return Source(expression, environment)
        entries = {
            key: Entry(entry.value, entry.optional or bool(generator.ifs)) for key, entry in source.entries.items()
        }
        return Mapping(entries, source.rest)

    def _evaluate_items(self, expression: ast.expr, environment: Environment) -> Value:
        """Evaluate what is iterated over: X.items(), or pairs that are written as tuples."""
        if isinstance(expression, ast.Call) and last_name(expression) == "items":
            expression = getattr(expression.func, "value", expression)
            return self.evaluate(expression, environment)
        return pairs_to_mapping(self.evaluate(expression, environment)) or Source(expression, environment)

    def _evaluate_list(self, expression: ast.List | ast.Tuple, environment: Environment) -> Value:
        values: list[Value] = []
        for element in expression.elts:
            if isinstance(element, ast.Starred):
                inner = self.evaluate(element.value, environment)
                values += inner.values if isinstance(inner, Items) else [inner]
            else:
                values.append(self.evaluate(element, environment))
        return Items(tuple(values))

    _evaluate_tuple = _evaluate_list

    def _evaluate_name(self, expression: ast.Name, environment: Environment) -> Value:
        found = environment.find(expression.id)
        if found is not None:
            return found
        return self._referent(self.modules.resolve(environment.module, expression), expression, environment)

    def _evaluate_attribute(self, expression: ast.Attribute, environment: Environment) -> Value:
        referent = self.modules.resolve(environment.module, expression)
        if isinstance(referent, Symbol | FunctionSymbol) and not isinstance(expression.value, ast.Call):
            return self._referent(referent, expression, environment)
        field = self.records.find_field(self.evaluate(expression.value, environment), expression.attr)
        if field is not None:
            return field
        owner = self._members.owner_of(expression.value, environment)
        if owner is not None:
            member = self._members.find_member(owner, expression.attr)
            if member is not None:
                return member
        if expression.attr in ("value", "name"):
            inner = self.evaluate(expression.value, environment)
            if isinstance(inner, Text | Constant):
                return inner
        inner_value = self.evaluate(expression.value, environment) if _is_local(expression.value, environment) else None
        if isinstance(inner_value, Mapping) and expression.attr in inner_value.entries:
            return inner_value.entries[expression.attr].value
        return Source(expression, environment)

    def _evaluate_subscript(self, expression: ast.Subscript, environment: Environment) -> Value:
        base, key = self.evaluate(expression.value, environment), self.evaluate(expression.slice, environment)
        if isinstance(base, Mapping) and isinstance(key, Text) and key.constant in base.entries:
            return base.entries[key.constant].value
        if isinstance(base, Mapping) and not base.rest and base.entries and isinstance(key, Source | Parameter):
            return choose([entry.value for entry in base.entries.values()])
        if isinstance(base, Items) and isinstance(key, Constant) and key.value in range(len(base.values)):
            return base.values[int(str(key.value))]
        return Source(expression, environment)

    def _referent(self, referent: object, expression: ast.expr, environment: Environment) -> Value:
        if isinstance(referent, FunctionSymbol):
            return Closure(referent.node, Environment(referent.module), referent.owner)
        if not isinstance(referent, Symbol) or isinstance(referent.node, ast.ClassDef):
            return Source(expression, environment)
        key = (referent.module, referent.name)
        if key not in self._globals:
            if key in self._evaluating:
                return Source(expression, environment)
            self._evaluating.add(key)
            self._globals[key] = self.evaluate(referent.node, Environment(referent.module))
            self._evaluating.discard(key)
        value = self._globals[key]
        is_source = isinstance(value, Source) and value.expression is referent.node
        return Source(expression, environment) if is_source and not isinstance(referent.node, ast.Attribute) else value

    def _evaluate_call(self, expression: ast.Call, environment: Environment) -> Value:
        name = last_name(expression)
        if name in KEPT or (name == "dict" and isinstance(expression.func, ast.Attribute)):
            return Source(expression, environment)
        if name in OPTIONS or (name == "construct" and last_name(getattr(expression.func, "value", None)) in OPTIONS):  # type: ignore[arg-type]
            return self.keywords(expression, environment)
        if name in PASSED_ON and expression.args and isinstance(expression.func, ast.Name | ast.Attribute):
            argument = expression.args[-1]
            if name == "str":
                return Text(join_parts(self._parts(argument, environment)))
            return self.evaluate(argument, environment)
        if isinstance(expression.func, ast.Attribute):
            value = self._method(expression, expression.func, environment)
            if value is not None:
                return value
        library_value = self._library.call(expression, environment)
        if library_value is not None:
            return library_value
        if name in ("quote", "quote_plus") and expression.args:
            return Text(join_parts(self._parts(expression.args[0], environment)))
        if name == "partial" and expression.args:
            value = self.evaluate(expression.args[0], environment)
            if isinstance(value, Closure):
                return self.bind(value, expression, environment, skip=1)
        function = self.evaluate(expression.func, environment)
        if isinstance(function, Closure):
            bound = self.bind(function, expression, environment)
            return self.call(bound, environment, Source(expression, environment))
        return Source(expression, environment)

    def keywords(self, expression: ast.Call, environment: Environment) -> Mapping:
        """Return the arguments of a call as a mapping."""
        mapping = Mapping()
        for argument in expression.args:
            mapping = overlay(mapping, as_mapping(self.evaluate(argument, environment)))
        for keyword in expression.keywords:
            value = self.evaluate(keyword.value, environment)
            mapping = (
                store(mapping, Text((keyword.arg,)), value) if keyword.arg else overlay(mapping, as_mapping(value))
            )
        return mapping

    def _method(self, expression: ast.Call, method: ast.Attribute, environment: Environment) -> Value | None:
        """Evaluate the methods of strings and mappings."""
        if method.attr not in STRIPPED | {"format", "join", "items", "get"}:
            return None
        base = self.evaluate(method.value, environment)
        if isinstance(base, Text):
            if method.attr == "format":
                return self._fill(base, "{}", expression, environment)
            if method.attr == "join" and expression.args:
                return self._join_items(base, self.evaluate(expression.args[0], environment), environment)
            return strip_text(
                base, method.attr, self.evaluate(expression.args[0], environment) if expression.args else None
            )
        if isinstance(base, Mapping) and method.attr == "copy":
            return base
        if isinstance(base, Mapping) and method.attr == "get" and expression.args:
            key = self.evaluate(expression.args[0], environment)
            if isinstance(key, Text) and key.constant in base.entries:
                return base.entries[key.constant].value
        if isinstance(base, Parameter) and method.attr in STRIPPED:
            return base
        return None

    def _join_items(self, separator: Text, items: Value, environment: Environment) -> Value:
        if not isinstance(items, Items):
            return Text((Hole("value"),))
        parts: list[str | Hole] = []
        for index, value in enumerate(items.values):
            parts += separator.parts if index else ()
            parts += value.parts if isinstance(value, Text) else [Hole(name_variable(value, None))]
        return Text(join_parts(parts))

    def _fill(self, template: Text, style: str, arguments: ast.expr, environment: Environment) -> Value:
        """Fill a template of the % operator or of str.format with the parts of its arguments."""
        text = template.render()
        if style == "%":
            values = arguments.elts if isinstance(arguments, ast.Tuple) else [arguments]
            named: dict[str, list[str | Hole]] = {}
            if isinstance(arguments, ast.Dict):
                pairs = zip(arguments.keys, arguments.values, strict=True)
                named = {
                    str(key.value): self._parts(v, environment) for key, v in pairs if isinstance(key, ast.Constant)
                }
            return Text(join_parts(fill_percent(text, [self._parts(value, environment) for value in values], named)))
        assert isinstance(arguments, ast.Call)
        keywords = {
            keyword.arg: self._parts(keyword.value, environment) for keyword in arguments.keywords if keyword.arg
        }
        positional = [self._parts(argument, environment) for argument in arguments.args]
        return Text(join_parts(fill_format(text, positional, keywords)))

    def bind(self, closure: Closure, call: ast.Call, environment: Environment, skip: int = 0) -> Closure:
        """Bind the arguments of a call; ``**`` of a mapping with known keys binds these."""
        positional: list[Value] = []
        for argument in call.args[skip:]:
            if isinstance(argument, ast.Starred):
                value = self.evaluate(argument.value, environment)
                positional += value.values if isinstance(value, Items) else ()
            else:
                positional.append(self.evaluate(argument, environment))
        keywords = list(closure.keywords)
        for keyword in call.keywords:
            value = self.evaluate(keyword.value, environment)
            if keyword.arg:
                keywords.append((keyword.arg, value))
            elif isinstance(value, Mapping):
                keywords += [(key, entry.value) for key, entry in value.entries.items()]
        inner = replace(closure.environment, depth=max(environment.depth, closure.environment.depth))
        return Closure(closure.node, inner, closure.owner, (*closure.positional, *positional), tuple(keywords))

    def call(self, closure: Closure, environment: Environment, otherwise: Value | None = None) -> Value:
        """Return the value of a call; ``otherwise`` if it cannot be evaluated."""
        fallback = otherwise or Parameter(getattr(closure.node, "name", "value"))
        if self.run is None or environment.depth > MAXIMUM_DEPTH or not is_value_function(closure.node):
            return fallback
        value = self.run(closure, environment)
        known = all(_is_known(option) for option in options_of(value))
        return value if known and not is_none(value) else fallback


def _is_known(value: Value) -> bool:
    is_body = (
        isinstance(value, Source) and isinstance(value.expression, ast.Call) and last_name(value.expression) in KEPT
    )
    return is_body or not isinstance(value, Source | Parameter)


def _is_local(expression: ast.expr, environment: Environment) -> bool:
    return isinstance(expression, ast.Name) and environment.find(expression.id) is not None
