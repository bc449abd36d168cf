"""Calls of a release that send a request: method, path and arguments, also through helper functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .classify import last_name
from .evaluation import Evaluator
from .execution import Executor
from .modules import FunctionSymbol, ReleaseModules
from .values import Closure, Constant, Environment, Hole, Mapping, Parameter, Source, Text, Value, options_of

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
WITH_METHOD = frozenset({"REQUEST", "STREAM", "BUILD_REQUEST", "SEND"})
PATHS = ("path", "url", "endpoint", "route")
PREFIX = "/api/"
PASSES = 4
FORWARDED = ("timeout", "extra_headers")


@dataclass(frozen=True)
class RequestCall:
    """One call that sends a request; ``arguments`` holds the values of its keywords."""

    method: str
    path: Text
    arguments: dict[str, Value]
    environment: Environment
    node: ast.Call
    is_inlined: bool = False

    @property
    def variables(self) -> int:
        """Return the number of variable parts of the path."""
        return sum(isinstance(part, Hole) for part in self.path.parts)

    @property
    def is_complete(self) -> bool:
        """Report whether the call does not get its query or headers from its caller."""
        return not any(isinstance(value, Parameter) for value in iter_rest(self.arguments))


class CallReader:
    """Reader of the calls that send requests, in all modules of a release."""

    def __init__(self, modules: ReleaseModules, evaluator: Evaluator) -> None:
        """Initialize with the modules of a release."""
        self._modules, self._evaluator = modules, evaluator
        self._executor = Executor(evaluator, self._visit)
        self._transports = _find_transports(modules)
        self._helpers: set[ast.AST] = set()
        self._helper_names: set[str] = set()
        self._calls: dict[tuple[int, str, str, str, bool], RequestCall] = {}
        self._unknown: dict[ast.Call, tuple[Environment, list[str]]] = {}
        self._resolved: set[ast.Call] = set()
        self._inlining = 0
        self.forwarded: list[tuple[str, dict[str, Value]]] = []
        """Names of called functions, with the timeouts and headers that they get."""
        self.unread_methods: set[str] = set()
        """Methods of the calls whose path is not understood; any endpoint that seems to be gone may be theirs."""

    def read(self) -> list[RequestCall]:
        """Read all calls; a helper function that gets its path from its callers is read with theirs."""
        for _ in range(PASSES):
            known = len(self._helpers)
            self._calls.clear()
            self.forwarded.clear()
            for module in sorted(self._modules.trees):
                if is_read(module) and self._is_worth_reading(module):
                    self._executor.run_module(module, self._modules.trees[module])
            if len(self._helpers) == known:
                break
        for call, (environment, methods) in self._unknown.items():
            if call not in self._resolved and not self._is_transport(environment):
                self.unread_methods.update(methods)
                self._modules.problems.add(environment.module, call, f"path of the call {ast.unparse(call.func)}(...)")
        return self._select()

    def _select(self) -> list[RequestCall]:
        """Drop the calls in helper functions that are complete only with the arguments of a caller."""
        by_node: dict[ast.Call, list[RequestCall]] = {}
        for call in self._calls.values():
            by_node.setdefault(call.node, []).append(call)
        selected: list[RequestCall] = []
        for calls in by_node.values():
            own = [call for call in calls if not call.is_inlined]
            inlined = [call for call in calls if call.is_inlined]
            if own:
                fewest = min(call.variables for call in own)
                better = [call for call in inlined if call.variables < fewest]
                if not better and not all(call.is_complete for call in own):
                    better = [call for call in inlined if call.is_complete]
                selected += better or own
            else:
                selected += inlined
        return selected

    def _is_worth_reading(self, module: str) -> bool:
        for node in ast.walk(self._modules.trees[module]):
            if isinstance(node, ast.Call):
                name = last_name(node)
                is_request = name.lstrip("_").upper() in METHODS | WITH_METHOD and node.args + node.keywords
                if is_request or name in self._helper_names or name == "partial":
                    return True
                if any(keyword.arg in ("cast_to", *FORWARDED) for keyword in node.keywords):
                    return True
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PREFIX):
                return True
        return False

    def _visit(self, node: ast.Call, environment: Environment) -> None:
        found = self._method_and_paths(node, environment)
        if found is not None:
            self._add(node, environment, *found)
            return
        name = last_name(node)
        passed = {k.arg: k.value for k in node.keywords if k.arg in FORWARDED}
        if passed:
            values = {key: self._evaluator.evaluate(value, environment) for key, value in passed.items()}
            self.forwarded.append((name, values))
        if name in self._helper_names or isinstance(environment.find(name) if name else None, Closure):
            closure = self._evaluator.evaluate(node.func, environment)
            if isinstance(closure, Closure) and closure.node in self._helpers:
                self._inlining += 1
                try:
                    self._executor.run_closure(self._evaluator.bind(closure, node, environment), environment)
                finally:
                    self._inlining -= 1

    def _method_and_paths(
        self, node: ast.Call, environment: Environment
    ) -> tuple[list[str], Value, dict[str, Value]] | None:
        """Return methods, path and arguments of a call that may send a request; None for another call."""
        name = last_name(node).lstrip("_").upper()
        local = environment.find(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(local, Parameter) and any(keyword.arg == "cast_to" for keyword in node.keywords):
            self._add_helper(node)
        if name in ("FINALREQUESTOPTIONS", "CONSTRUCT"):
            return self._options(node, environment)
        is_own = local or self._is_function(node.func, environment)
        if isinstance(node.func, ast.Name | ast.Attribute) and (is_own or name not in METHODS | WITH_METHOD):
            name = self._alias(node.func, environment)
        positional = list(node.args)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if name in METHODS:
            methods = [name]
        elif name in WITH_METHOD:
            first = keywords.get("method") or (positional.pop(0) if positional else None)
            methods = self._methods(first, environment) if first is not None else []
            if not methods:
                return None
        else:
            return None
        path = next((keywords[key] for key in PATHS if key in keywords), positional.pop(0) if positional else None)
        if path is None:
            return None
        return methods, self._evaluator.evaluate(path, environment), self._arguments(node, positional, environment)

    def _alias(self, function: ast.expr, environment: Environment) -> str:
        """Return the method that another name of it stands for, such as an attribute set to client.post."""
        for _ in range(4):
            value = self._evaluator.evaluate(function, environment)
            if isinstance(value, Closure) and not isinstance(value.node, ast.Lambda):
                method = value.node.name.lstrip("_").upper()
                return method if method in METHODS and value.node in self._transports else ""
            if not isinstance(value, Source) or value.expression is function:
                break
            function, environment = value.expression, value.environment
            if isinstance(function, ast.Call) and last_name(function) == "partial" and function.args:
                function = function.args[0]
        name = last_name(function) if not isinstance(function, ast.Call) else ""
        return name.lstrip("_").upper() if isinstance(function, ast.Attribute) or name == "FinalRequestOptions" else ""

    def _is_transport(self, environment: Environment) -> bool:
        """Report whether a place is in a method of a client."""
        here: Environment | None = environment
        while here is not None:
            if here.function in self._transports:
                return True
            here = here.parent
        return False

    def _is_function(self, function: ast.expr, environment: Environment) -> bool:
        """Report whether a name is a function of a module, which is not a method of a client whatever its name."""
        is_name = isinstance(function, ast.Name)
        return is_name and isinstance(self._modules.resolve(environment.module, function), FunctionSymbol)

    def _methods(self, expression: ast.expr, environment: Environment) -> list[str]:
        value = self._evaluator.evaluate(expression, environment)
        constants = [option.constant for option in options_of(value) if isinstance(option, Text)]
        return [text.upper() for text in constants if text and text.upper() in METHODS]

    def _options(self, node: ast.Call, environment: Environment) -> tuple[list[str], Value, dict[str, Value]] | None:
        """Return the parts of FinalRequestOptions(method=..., url=...), which a client sends."""
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if "method" not in keywords or "url" not in keywords:
            return None
        methods = self._methods(keywords["method"], environment)
        arguments = self._arguments(node, [], environment)
        arguments |= {"body": arguments["json_data"]} if "json_data" in arguments else {}
        return methods, self._evaluator.evaluate(keywords["url"], environment), arguments

    def _arguments(self, node: ast.Call, positional: list[ast.expr], environment: Environment) -> dict[str, Value]:
        arguments: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self._evaluator.evaluate(keyword.value, environment)
            if keyword.arg:
                arguments[keyword.arg] = value
            elif isinstance(value, Mapping):
                arguments |= {key: entry.value for key, entry in value.entries.items()}
                if value.rest:
                    arguments["**"] = value
            elif not isinstance(value, Parameter):
                arguments["**"] = value
        return arguments

    def _add(
        self, node: ast.Call, environment: Environment, methods: list[str], path: Value, arguments: dict[str, Value]
    ) -> None:
        for option in options_of(path):
            text = _api_path(option, has_type="cast_to" in arguments)
            if text is not None:
                self._resolved.add(node)
                for method in methods:
                    call = RequestCall(method, text, arguments, environment, node, self._inlining > 0)
                    key = (id(node), environment.path, method, text.render(), call.is_inlined)
                    self._calls.setdefault(key, call)
                    if call.variables or not call.is_complete:
                        self._add_helper(node)
            elif _depends_on_caller(option):
                self._add_helper(node)
                if "cast_to" in arguments:
                    self._unknown.setdefault(node, (environment, methods))
            elif "cast_to" in arguments and not isinstance(option, Text | Constant):
                self._unknown[node] = (environment, methods)

    def _add_helper(self, node: ast.Call) -> None:
        """Record that the functions around a call get parts of it from their callers."""
        for function in self._executor.running:
            name = getattr(function, "name", "")
            if name and function not in self._transports:
                self._helpers.add(function)
                self._helper_names.add(name)


def is_read(module: str) -> bool:
    """Report whether a module belongs to the SDK itself, rather than to its tests."""
    return not module.rpartition(".")[2].endswith("_test")


def _api_path(value: Value, *, has_type: bool) -> Text | None:
    """Return the path below the host; None if the value is not a path of the API."""
    if not isinstance(value, Text):
        return None
    parts = list(value.parts)
    if isinstance(parts[0], Hole) and len(parts) > 1 and isinstance(parts[1], str) and "url" in parts[0].name:
        parts = parts[1:]
    first = parts[0]
    if not isinstance(first, str):
        return None
    if first.startswith(PREFIX.lstrip("/")):
        parts[0] = f"/{first}"
    elif first.startswith("/" + PREFIX):
        parts[0] = first[1:]
    elif not first.startswith(PREFIX) and not (has_type and first.startswith("/")):
        return None
    return Text(tuple(parts))


def _depends_on_caller(value: Value) -> bool:
    if isinstance(value, Source):
        root = value.expression
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        return isinstance(root, ast.Name) and isinstance(value.environment.find(root.id), Parameter)
    if isinstance(value, Text):
        return any(isinstance(part, Hole) for part in value.parts) and not str(value.parts[0]).startswith("http")
    return isinstance(value, Parameter)


def _find_transports(modules: ReleaseModules) -> set[ast.AST]:
    """Find the methods such as ``post`` of the classes of clients, which their callers are read for."""
    found: set[ast.AST] = set()
    for tree in modules.trees.values():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
            names = {method.name for method in methods}
            if {"get", "post"} <= names or "request" in names:
                found.update(method for method in methods if _is_transport_name(method.name.lstrip("_").upper()))
    return found


def _is_transport_name(name: str) -> bool:
    return name in METHODS | WITH_METHOD or name.startswith(("REQUEST", "GET_API"))


def iter_rest(arguments: dict[str, Value]) -> Iterator[Value]:
    """Yield the parts of a call's query, headers and options whose content is not known."""
    for name in ("options", "params", "query", "headers", "extra_headers", "extra_query", "**"):
        yield from _rest_of(arguments[name]) if name in arguments else ()


def _rest_of(value: Value) -> Iterator[Value]:
    for option in options_of(value):
        if isinstance(option, Mapping):
            yield from option.rest
            for entry in option.entries.values():
                yield from _rest_of(entry.value) if isinstance(entry.value, Mapping) else ()
        elif isinstance(option, Parameter | Source):
            yield option
