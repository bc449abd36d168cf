"""Execution of function bodies of a release on unknown arguments: the values of names at each call."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .attribute_changes import read_setter
from .evaluation import MAXIMUM_DEPTH, Evaluator
from .mappings import as_mapping, store
from .modules import Function, Symbol
from .values import (
    Closure,
    Constant,
    Entry,
    Environment,
    Items,
    Mapping,
    Parameter,
    Source,
    Text,
    Value,
    choose,
    merge_branches,
    overlay,
)

CallVisitor = Callable[[ast.Call, Environment], None]
Branch = tuple[dict[str, Value], bool]


class Executor:
    """Executor of the statements of functions and modules; ``visit`` gets each call with its environment."""

    def __init__(self, evaluator: Evaluator, visit: CallVisitor | None = None) -> None:
        """Initialize with the evaluator, which then executes the functions that expressions call."""
        self.evaluator, self._visit = evaluator, visit
        self.running: list[ast.AST] = []
        self._returns: list[list[Value]] = []
        evaluator.run = self.evaluate_call

    def run_module(self, module: str, tree: ast.Module) -> None:
        """Execute a module, and each function in it with unknown arguments."""
        self._run_body(tree.body, Environment(module))

    def run_function(self, function: Function, environment: Environment, owner: Symbol | None = None) -> Value:
        """Execute a function with unknown arguments."""
        return self.run_closure(Closure(function, environment, owner), environment, unknown=True)

    def evaluate_call(self, closure: Closure, caller: Environment) -> Value:
        """Return the value of a call, without visiting the calls in the function."""
        visit, self._visit = self._visit, None
        try:
            return self.run_closure(closure, caller)
        finally:
            self._visit = visit

    def run_closure(self, closure: Closure, caller: Environment, *, unknown: bool = False) -> Value:
        """Execute a function with the arguments that are bound, and return its value."""
        node = closure.node
        if node in self.running or caller.depth > MAXIMUM_DEPTH:
            return Parameter(getattr(node, "name", "value"))
        outer = closure.environment
        name = getattr(node, "name", "<lambda>")
        inner = Environment(
            outer.module,
            f"{outer.path}.{name}".lstrip("."),
            closure.owner,
            node if not isinstance(node, ast.Lambda) else outer.function,
            outer,
            depth=max(caller.depth, outer.depth) + 1,
        )
        self._bind_parameters(closure, inner, unknown=unknown)
        self.running.append(node)
        try:
            if isinstance(node, ast.Lambda):
                self._visit_calls(node.body, inner)
                return self.evaluator.evaluate(node.body, inner)
            self._returns.append([])
            self._run_body(node.body, inner)
            returned = self._returns.pop()
            return choose(returned) if returned else Constant(None)
        finally:
            self.running.pop()

    def _bind_parameters(self, closure: Closure, inner: Environment, *, unknown: bool) -> None:
        spec, outer = closure.node.args, closure.environment
        positional = [*spec.posonlyargs, *spec.args]
        defaults = dict(zip([a.arg for a in reversed(positional)], reversed(spec.defaults), strict=False))
        defaults |= {
            argument.arg: default
            for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            if default is not None
        }
        if positional and positional[0].arg in ("self", "cls") and closure.owner is not None:
            positional = positional[1:]
        given = dict(zip([argument.arg for argument in positional], closure.positional, strict=False))
        given |= dict(closure.keywords)
        named = [*positional, *spec.kwonlyargs]
        for argument in named:
            annotation = Source(argument.annotation, outer) if argument.annotation else None
            if annotation and argument.arg not in given:
                inner.annotations[argument.arg] = annotation
            default = Source(defaults[argument.arg], outer) if argument.arg in defaults else None
            if argument.arg in given:
                inner.variables[argument.arg] = given.pop(argument.arg)
            elif default is not None and not unknown:
                inner.variables[argument.arg] = self.evaluator.evaluate(default.expression, outer)
            else:
                inner.variables[argument.arg] = Parameter(argument.arg, annotation, default)
        if spec.kwarg:
            extra: Value = Mapping({key: Entry(value) for key, value in given.items()})
            inner.variables[spec.kwarg.arg] = Parameter(spec.kwarg.arg, is_rest=True) if unknown else extra
        if spec.vararg:
            rest: Value = Items(tuple(closure.positional[len(positional) :]))
            inner.variables[spec.vararg.arg] = Parameter(spec.vararg.arg, is_rest=True) if unknown else rest

    def _run_body(self, body: list[ast.stmt], environment: Environment) -> bool:
        """Execute statements, then the functions and classes in them; report whether the end is reached."""
        reached = self._run_statements(body, environment)
        for statement in _definitions(body) if self._visit else ():
            if isinstance(statement, ast.ClassDef):
                self._run_class(statement, environment)
            elif statement not in self.running:
                self.run_function(statement, environment, environment.owner if environment.function is None else None)
        return reached

    def _run_class(self, node: ast.ClassDef, environment: Environment) -> None:
        owner = Symbol(environment.module, node.name, node)
        path = f"{environment.path}.{node.name}".lstrip(".")
        inside = Environment(environment.module, path, owner, None, environment, depth=environment.depth)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self.run_function(statement, inside, owner)
            elif isinstance(statement, ast.ClassDef):
                self._run_class(statement, inside)

    def _run_statements(self, body: list[ast.stmt], environment: Environment) -> bool:
        return all(self._run_statement(statement, environment) for statement in body)

    def _run_statement(self, statement: ast.stmt, environment: Environment) -> bool:
        """Execute one statement; return False if the statements behind it are not reached."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if environment.function is not None:
                environment.variables[statement.name] = Closure(statement, environment)
            return True
        if isinstance(statement, ast.ClassDef):
            return True
        for expression in _own_expressions(statement):
            self._visit_calls(expression, environment)
        if isinstance(statement, ast.Return):
            if self._returns and statement.value is not None:
                self._returns[-1].append(self.evaluator.evaluate(statement.value, environment))
            return False
        if isinstance(statement, ast.Raise | ast.Continue | ast.Break):
            return False
        if isinstance(statement, ast.If):
            return self._run_if(statement, environment)
        if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
            self._run_loop(statement, environment)
        elif isinstance(statement, ast.Try | ast.With | ast.AsyncWith | ast.Match) or hasattr(statement, "handlers"):
            return self._run_blocks(statement, environment)
        else:
            self._assign(statement, environment)
        return True

    def _run_if(self, statement: ast.If, environment: Environment) -> bool:
        truth = self.evaluator.decide(statement.test, environment)
        if truth is not None:
            return self._run_statements(statement.body if truth else statement.orelse, environment)
        return self._merge(
            environment, [self._branch(body, environment) for body in (statement.body, statement.orelse)]
        )

    def _branch(self, body: list[ast.stmt], environment: Environment) -> Branch:
        before = dict(environment.variables)
        reached = self._run_statements(body, environment)
        after, environment.variables = environment.variables, before
        return after, reached

    def _merge(self, environment: Environment, branches: list[Branch]) -> bool:
        """Merge the ends of branches into the environment; report whether one of them is reached."""
        ends = [variables for variables, reached in branches if reached]
        if not ends:
            return False
        merged = dict(ends[0])
        for end in ends[1:]:
            for name in end:
                merged[name] = merge_branches(merged[name], end[name]) if name in merged else end[name]
        environment.variables = merged
        return True

    def _run_loop(self, statement: ast.For | ast.AsyncFor | ast.While, environment: Environment) -> None:
        for node in ast.walk(statement):
            counter = node.target.id if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else ""
            if isinstance(environment.find(counter), Constant):
                environment.variables[counter] = Parameter(counter)
        before = dict(environment.variables)
        if not isinstance(statement, ast.While) and self._unroll(statement, environment):
            return
        if not isinstance(statement, ast.While):
            self._assign_target(statement.target, Source(statement.iter, environment), environment, is_part=True)
        self._run_statements(statement.body, environment)
        self._merge(environment, [(environment.variables, True), (before, True)])
        self._run_statements(statement.orelse, environment)

    def _unroll(self, statement: ast.For | ast.AsyncFor, environment: Environment) -> bool:
        """Execute a loop over a short list or mapping that is known, once for each item."""
        items: list[Value] = []
        iterated = statement.iter
        if (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Attribute)
            and iterated.func.attr == "items"
        ):
            mapping = self.evaluator.evaluate(iterated.func.value, environment)
            if isinstance(mapping, Mapping) and not mapping.rest:
                items = [Items((Text((key,)), entry.value)) for key, entry in mapping.entries.items()]
        else:
            value = self.evaluator.evaluate(iterated, environment)
            items = list(value.values) if isinstance(value, Items) else []
        if not 0 < len(items) <= 40:
            return False
        for item in items:
            self._assign_target(statement.target, item, environment)
            self._run_statements(statement.body, environment)
        return True

    def _run_blocks(self, statement: ast.stmt, environment: Environment) -> bool:
        if isinstance(statement, ast.With | ast.AsyncWith):
            for item in statement.items:
                if item.optional_vars is not None:
                    self._assign_target(
                        item.optional_vars, Source(item.context_expr, environment), environment, is_part=True
                    )
            return self._run_statements(statement.body, environment)
        if isinstance(statement, ast.Match):
            branches = [self._branch(case.body, environment) for case in statement.cases]
            return self._merge(environment, [*branches, (environment.variables, True)])
        handlers = [self._branch(handler.body, environment) for handler in statement.handlers]  # type: ignore[attr-defined]
        body = self._branch([*statement.body, *statement.orelse], environment)  # type: ignore[attr-defined]
        reached = self._merge(environment, [body, *handlers])
        return self._run_statements(statement.finalbody, environment) and reached  # type: ignore[attr-defined]

    def _assign(self, statement: ast.stmt, environment: Environment) -> None:
        evaluate = self.evaluator.evaluate
        if isinstance(statement, ast.Assign):
            value = evaluate(statement.value, environment)
            for target in statement.targets:
                self._assign_target(target, value, environment)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            environment.annotations[statement.target.id] = Source(statement.annotation, environment)
            if statement.value is not None:
                environment.variables[statement.target.id] = evaluate(statement.value, environment)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign_target(statement.target, evaluate(statement.value, environment), environment)
        elif isinstance(statement, ast.AugAssign):
            combined = ast.copy_location(
                ast.BinOp(_as_load(statement.target), statement.op, statement.value), statement
            )
            self._assign_target(statement.target, evaluate(combined, environment), environment)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Subscript):
                    self._remove(target.value, evaluate(target.slice, environment), environment)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._mutate(statement.value, environment)

    def _assign_target(
        self, target: ast.expr, value: Value, environment: Environment, *, is_part: bool = False
    ) -> None:
        if isinstance(target, ast.Name):
            environment.annotations.pop(target.id, None)
            # The value of an iteration or a context manager is not that of its expression.
            environment.variables[target.id] = Parameter(target.id) if is_part else value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.values if isinstance(value, Items) else ()
            for index, element in enumerate(target.elts):
                part = parts[index] if index < len(parts) else Parameter(getattr(element, "id", "value"))
                self._assign_target(element, part, environment)
        elif isinstance(target, ast.Subscript):
            key = self.evaluator.evaluate(target.slice, environment)
            mapping = as_mapping(self.evaluator.evaluate(target.value, environment))
            self._replace(target.value, store(mapping, key, value), environment)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target.value, target.attr, value, environment)

    def _set_attribute(self, owner: ast.expr, name: str | None, value: Value, environment: Environment) -> None:
        """Give an object with a changed attribute to each name that holds it; without a name, it is not known."""
        if not isinstance(owner, ast.Name) or owner.id in ("self", "cls"):
            return
        held = self.evaluator.evaluate(owner, environment)
        changed = self.evaluator.records.set_field(held, name, value) if name else None
        if changed is None:
            read = self.evaluator.evaluate(ast.Attribute(owner, name, ast.Load()), environment) if name else None
            if isinstance(read, Source):
                return  # The attribute is not known before, either.
            changed = Parameter(owner.id)
        here: Environment | None = environment
        while here is not None:
            here.variables.update((key, changed) for key, item in list(here.variables.items()) if item == held)
            here = here.parent

    def _replace(self, target: ast.expr, value: Mapping, environment: Environment) -> None:
        """Give a changed mapping to the name that held it, wherever that is bound."""
        if isinstance(target, ast.Name):
            here: Environment | None = environment
            while here is not None and target.id not in here.variables:
                here = here.parent
            (here or environment).variables[target.id] = value
        elif isinstance(target, ast.Subscript):
            key = self.evaluator.evaluate(target.slice, environment)
            outer = as_mapping(self.evaluator.evaluate(target.value, environment))
            self._replace(target.value, store(outer, key, value), environment)

    def _remove(self, target: ast.expr, key: Value, environment: Environment) -> None:
        mapping = self.evaluator.evaluate(target, environment)
        if isinstance(mapping, Mapping) and isinstance(key, Text):
            entries = {name: entry for name, entry in mapping.entries.items() if name != key.constant}
            self._replace(target, Mapping(entries, mapping.rest), environment)

    def _mutate(self, call: ast.Call, environment: Environment) -> None:
        """Apply a method that changes a mapping, or a call of setattr."""
        setter = read_setter(call)
        if setter is not None:
            text, given = (self.evaluator.evaluate(part, environment) for part in setter[1:])
            name = text.constant if isinstance(text, Text) else None
            self._set_attribute(setter[0], name, given, environment)
            return
        method = call.func
        if not isinstance(method, ast.Attribute) or method.attr not in ("update", "setdefault", "pop", "append"):
            return
        base = self.evaluator.evaluate(method.value, environment)
        if isinstance(base, Items) and method.attr == "append" and call.args:
            added = self.evaluator.evaluate(call.args[0], environment)
            if isinstance(method.value, ast.Name):
                environment.variables[method.value.id] = Items((*base.values, added))
            return
        if not isinstance(base, Mapping):
            return
        if method.attr == "update":
            self._replace(method.value, overlay(base, self.evaluator.keywords(call, environment)), environment)
        elif call.args:
            key = self.evaluator.evaluate(call.args[0], environment)
            if method.attr == "pop":
                self._remove(method.value, key, environment)
            elif not (isinstance(key, Text) and key.constant in base.entries) and len(call.args) > 1:
                value = self.evaluator.evaluate(call.args[1], environment)
                self._replace(method.value, store(base, key, value), environment)

    def _visit_calls(self, expression: ast.expr, environment: Environment) -> None:
        if self._visit is None:
            return
        for node in _calls(expression):
            self._visit(node, environment)


def _calls(expression: ast.AST) -> list[ast.Call]:
    """List the calls of an expression, inner ones first."""
    found = [call for child in ast.iter_child_nodes(expression) for call in _calls(child)]
    return [*found, expression] if isinstance(expression, ast.Call) else found


def _own_expressions(statement: ast.stmt) -> list[ast.expr]:
    """List the expressions of a statement itself, without those of the statements in it."""
    expressions = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
    if isinstance(statement, ast.With | ast.AsyncWith):
        expressions += [item.context_expr for item in statement.items]
    return expressions


def _definitions(body: list[ast.stmt]) -> list[Function | ast.ClassDef]:
    """List the functions and classes of a body, also those in its blocks."""
    found: list[Function | ast.ClassDef] = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(statement)
            continue
        for part in ("body", "orelse", "finalbody"):
            found += _definitions(getattr(statement, part, []))
        for part in ("handlers", "cases"):
            for block in getattr(statement, part, []):
                found += _definitions(block.body)
    return found


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target
