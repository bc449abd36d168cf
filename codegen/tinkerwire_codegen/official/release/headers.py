"""Names and values of the headers that a release sends, and names of those that it reads from responses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .calls import is_read
from .classify import last_name
from .evaluation import Evaluator
from .execution import Executor
from .modules import Function, ReleaseModules, Symbol
from .values import Choice, Constant, Environment, Hole, Mapping, Source, Text, Value, is_none, options_of

READS = frozenset({"get", "get_list", "getlist", "pop"})
WRAPPERS = frozenset({"Headers", "dict", "strip_not_given", "cast", "_merge_mappings", "CaseInsensitiveDict"})


class HeaderReader:
    """Reader of the headers in all modules of a release; names are in lower case."""

    def __init__(self, modules: ReleaseModules, evaluator: Evaluator) -> None:
        """Initialize with the modules of a release."""
        self._modules, self._evaluator = modules, evaluator
        self.sent: dict[str, set[str]] = {}
        self.received: set[str] = set()
        # An executor without a visitor lets the evaluator call functions.
        self._executor = Executor(evaluator)
        self._parameters: list[tuple[Function, str, str]] = []

    def read(self) -> None:
        """Read all modules."""
        for module in sorted(self._modules.trees):
            if is_read(module) and not module.endswith("_pb2"):
                self._read_block(self._modules.trees[module], Environment(module))
        self._read_helpers()

    def _read_block(self, block: ast.AST, environment: Environment) -> None:
        for node in ast.iter_child_nodes(block):
            inside = environment
            if isinstance(node, ast.ClassDef):
                owner = Symbol(environment.module, node.name, node)
                inside = Environment(environment.module, node.name, owner, None, environment)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = Environment(environment.module, node.name, environment.owner, node, environment)
                self._bind_locals(node, inside)
                if is_header_name(node.name):
                    for statement in ast.walk(node):
                        if isinstance(statement, ast.Return) and statement.value is not None:
                            self._add_sent(statement.value, inside)
            self._read_node(node, inside)
            self._read_block(node, inside)

    def _bind_locals(self, function: Function, environment: Environment) -> None:
        """Bind the names that a function assigns; a name of several values may be each of them."""
        values: dict[str, list[Value]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        # A name in its own value, as in x = x + 1, is not bound yet.
                        values.setdefault(target.id, []).append(self._evaluator.evaluate(node.value, environment))
                        options = values[target.id]
                        environment.variables[target.id] = options[0] if len(options) == 1 else Choice(tuple(options))
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                values.setdefault(node.target.id, []).append(Source(node.value, environment))
                environment.variables[node.target.id] = values[node.target.id][-1]
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                items = self._evaluator.evaluate(node.iter, environment)
                environment.variables[node.target.id] = Choice(tuple(getattr(items, "values", ())) or (items,))

    def _read_node(self, node: ast.AST, environment: Environment) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript):
                    if _is_headers(target.value):
                        self._add_header(target.slice, node.value, environment)
                elif is_header_name(last_name(target)) and not isinstance(target, ast.Tuple):
                    self._add_sent(node.value, environment)
        elif isinstance(node, ast.Call):
            self._read_call(node, environment)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.endswith("headers"):
                    self._add_sent(value, environment)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if self._is_response(node.value, environment):
                self._add_received(node.slice, environment)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            self._read_membership(node, environment)

    def _read_membership(self, node: ast.Compare, environment: Environment) -> None:
        if self._is_response(node.comparators[0], environment):
            self._add_received(node.left, environment)

    def _read_call(self, node: ast.Call, environment: Environment) -> None:
        for keyword in node.keywords:
            if keyword.arg and is_header_name(keyword.arg):
                self._add_sent(keyword.value, environment)
        name = last_name(node)
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        if base is not None and name in READS and node.args and self._is_response(base, environment):
            self._add_received(node.args[0], environment)
        elif base is not None and _is_headers(base):
            if name == "setdefault" and len(node.args) > 1:
                self._add_header(node.args[0], node.args[1], environment)
            elif name == "update":
                for argument in node.args:
                    self._add_sent(argument, environment)
                self._add_mapping(self._evaluator.keywords(ast.Call(node.func, [], node.keywords), environment))
        elif name == "Headers":
            for argument in node.args:
                self._add_sent(argument, environment)

    def _add_sent(self, expression: ast.expr, environment: Environment) -> None:
        """Add the headers of an expression: a mapping, or mappings inside conditions, sums and wrappers."""
        for option in options_of(self._evaluator.evaluate(expression, environment)):
            if isinstance(option, Mapping):
                self._add_mapping(option)
        for node in _displays(expression):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None:
                    self._add_header(key, value, environment)

    def _add_mapping(self, mapping: Mapping) -> None:
        for name, entry in mapping.entries.items():
            self._add_value(name, entry.value)

    def _add_header(self, key: ast.expr, value: ast.expr, environment: Environment) -> None:
        known = False
        for name in options_of(self._evaluator.evaluate(key, environment)):
            if isinstance(name, Text) and name.constant is not None:
                known = True
                self._add_value(name.constant, self._evaluator.evaluate(value, environment))
        if not known and not _is_variable(key):
            text = f"name of a header: {ast.unparse(key)}"
            self._modules.problems.add(environment.module, key, text)

    def _add_value(self, name: str, value: Value) -> None:
        values = self.sent.setdefault(name.lower(), set())
        for option in options_of(value):
            if not is_none(option):
                values.add(render_value(option))

    def _is_response(self, base: ast.expr, environment: Environment) -> bool:
        """Report whether an expression is the headers of a response."""
        if isinstance(base, ast.Name):
            value = environment.find(base.id)
            for option in options_of(value) if value is not None else ():
                is_other = isinstance(option, Source) and option.expression is not base
                if is_other and self._is_response(option.expression, environment):  # type: ignore[union-attr]
                    return True
            return "header" in base.id.lower() and "resp" in base.id.lower()
        if isinstance(base, ast.Attribute) and base.attr == "headers":
            owner = ast.unparse(base.value).lower()
            return not any(part in owner for part in ("request", "option", "self", "client", "req"))
        return False

    def _add_received(self, key: ast.expr, environment: Environment) -> None:
        for name in options_of(self._evaluator.evaluate(key, environment)):
            if isinstance(name, Text) and name.constant is not None:
                self.received.add(name.constant.lower())
            elif isinstance(key, ast.Name) and environment.function is not None:
                self._parameters.append((environment.function, key.id, environment.module))

    def _read_helpers(self) -> None:
        """Read the names of headers that helper functions get from their callers."""
        for module in sorted(self._modules.trees) if self._parameters else ():
            if not is_read(module):
                continue
            for node in ast.walk(self._modules.trees[module]):
                if isinstance(node, ast.Call):
                    for argument in self._arguments_for(node):
                        value = self._evaluator.evaluate(argument, Environment(module))
                        if isinstance(value, Text) and value.constant is not None:
                            self.received.add(value.constant.lower())

    def _arguments_for(self, node: ast.Call) -> Iterator[ast.expr]:
        for function, name, _ in self._parameters:
            if last_name(node) != function.name:
                continue
            names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
            names = names[1:] if names[:1] in (["self"], ["cls"]) else names
            yield from (keyword.value for keyword in node.keywords if keyword.arg == name)
            if name in names and names.index(name) < len(node.args):
                yield node.args[names.index(name)]


def is_header_name(name: str) -> bool:
    """Report whether a name is one of headers."""
    return name.lower().rstrip("_").endswith(("headers", "headers_secret", "headers_overrides", "headers_dict"))


def render_value(value: Value) -> str:
    """Render the value of a header; each part that is only known at run time is {}."""
    if isinstance(value, Text):
        return "".join("{}" if isinstance(part, Hole) else part for part in value.parts)
    return str(value.value) if isinstance(value, Constant) else "{}"


def _is_headers(expression: ast.expr) -> bool:
    return is_header_name(last_name(expression)) and not isinstance(expression, ast.Call)


def _is_variable(key: ast.expr) -> bool:
    """Report whether a key is a parameter, the variable of a loop, or an attribute set elsewhere."""
    return isinstance(key, ast.Name | ast.Attribute)


def _displays(expression: ast.expr) -> Iterator[ast.Dict]:
    """Yield the mappings that are written in an expression, at the places of its value."""
    if isinstance(expression, ast.Dict):
        yield expression
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                yield from _displays(value)
    elif isinstance(expression, ast.BinOp):
        yield from _displays(expression.left)
        yield from _displays(expression.right)
    elif isinstance(expression, ast.IfExp):
        yield from _displays(expression.body)
        yield from _displays(expression.orelse)
    elif isinstance(expression, ast.BoolOp):
        for part in expression.values:
            yield from _displays(part)
    elif isinstance(expression, ast.Call) and last_name(expression) in WRAPPERS:
        for argument in expression.args:
            yield from _displays(argument)
