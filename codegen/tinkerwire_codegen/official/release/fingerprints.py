"""Fingerprints of functions that change what is read or sent: equal for code that differs in names and helpers."""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Iterator, Sequence

from .modules import ExternalName, Function, FunctionSymbol, ReleaseModules, Symbol, assigned_value, iter_statements
from .statements import join_single_uses, without_else_after_return

MAXIMUM_DEPTH = 8
LOCAL = "§"
"""Mark of local names, which no source has."""


def take_fingerprint(modules: ReleaseModules, function: FunctionSymbol) -> str:
    """Return a fingerprint of the normalized code of a function."""
    return hashlib.sha256(normalize_code(modules, function).encode()).hexdigest()[:12]


def decorated_functions(
    modules: ReleaseModules, owner: Symbol, statement: ast.stmt
) -> Iterator[tuple[ast.expr, FunctionSymbol]]:
    """Yield each decorator of a method with the method; an assignment may also decorate a function by a call."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in statement.decorator_list:
            yield decorator, FunctionSymbol(owner.module, f"{owner.name}.{statement.name}", statement, owner)
    value = assigned_value(statement)
    if isinstance(value, ast.Call) and len(value.args) == 1:
        target = modules.resolve(owner.module, value.args[0])
        if isinstance(target, FunctionSymbol):
            yield value.func, target


def normalize_code(modules: ReleaseModules, function: FunctionSymbol) -> str:
    """Return the code of a function, with the code of the functions of the package that it calls.

    Names of arguments and local variables, annotations, docstrings, imports and the texts of errors do not count. The
    code of a called function takes the place of the call where a statement or an expression can.
    """
    inliner = _Inliner(modules)
    arguments = _parameters(function)
    names = {argument.arg: inliner.name_local(argument.arg) for argument in arguments}
    body = inliner.normalize(function, dict(names), (function.node,))
    header = ", ".join(name.id for name in names.values())
    code = "\n".join([f"{header}:", *map(_unparse, body), *inliner.called.values()])
    numbers: dict[str, str] = {}
    return re.sub(f"{LOCAL}\\w+{LOCAL}", lambda match: numbers.setdefault(match[0], f"v{len(numbers)}"), code)


class _Inliner:
    """Normalizer of functions; ``called`` has the code of those whose calls stay, by name."""

    def __init__(self, modules: ReleaseModules) -> None:
        self.modules = modules
        self.called: dict[str, str] = {}
        self._locals = 0

    def name_local(self, name: str) -> ast.Name:
        """Return a name for a local variable that no other variable has."""
        self._locals += 1
        return ast.Name(f"{LOCAL}{name}{self._locals}{LOCAL}", ast.Load())

    def normalize(
        self, function: FunctionSymbol, names: dict[str, ast.expr], running: tuple[ast.AST, ...]
    ) -> list[ast.stmt]:
        """Return the statements of a function, with ``names`` in the place of its arguments."""
        for node in ast.walk(function.node):
            stored = node.arg if isinstance(node, ast.arg) else getattr(node, "name", None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored = node.id
            if isinstance(stored, str) and node is not function.node and stored not in (*names, "self", "cls"):
                names[stored] = self.name_local(stored)
        rewriter = _Rewriter(self, function.module, function.owner, names, running)
        body: list[ast.stmt] = []
        for statement in function.node.body:
            rewritten = rewriter.visit(copy.deepcopy(statement))
            body += rewritten if isinstance(rewritten, list) else [rewritten] if rewritten is not None else []
        return join_single_uses(without_else_after_return(body))

    def describe_call(self, target: FunctionSymbol, running: tuple[ast.AST, ...]) -> str:
        """Return the name for a function whose calls stay, and add its code."""
        key = f"{target.module}.{target.name}"
        if key not in self.called and target.node not in running and len(running) <= MAXIMUM_DEPTH:
            name = f"{LOCAL}function{len(self.called)}{LOCAL}"
            self.called[key] = ""
            arguments = _parameters(target)
            names: dict[str, ast.expr] = {a.arg: self.name_local(a.arg) for a in arguments}
            header = ", ".join(map(ast.unparse, names.values()))
            body = self.normalize(target, names, (*running, target.node))
            self.called[key] = "\n".join([f"{name}({header}):", *map(_unparse, body)])
        return self.called.get(key, "").partition("(")[0] or target.name


class _Rewriter(ast.NodeTransformer):
    def __init__(
        self,
        inliner: _Inliner,
        module: str,
        owner: Symbol | None,
        names: dict[str, ast.expr],
        running: tuple[ast.AST, ...],
    ) -> None:
        self._inliner, self._module, self._owner, self._names = inliner, module, owner, names
        self._running = running

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a local name, or a name of the module by the definition behind it."""
        known = self._names.get(node.id)
        if isinstance(known, ast.Name):
            return ast.Name(known.id, node.ctx)
        return copy.deepcopy(known) if known is not None else self._resolve(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace a dotted name of a module, or of an import, by the definition behind it."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_global = isinstance(root, ast.Name) and root.id not in (*self._names, "self", "cls")
        return self._resolve(node) if is_global else self.generic_visit(node)

    def _resolve(self, node: ast.Name | ast.Attribute) -> ast.AST:
        target = self._inliner.modules.resolve(self._module, node)
        if isinstance(target, FunctionSymbol):
            return ast.Name(self._inliner.describe_call(target, self._running), node.ctx)
        if isinstance(target, Symbol) and isinstance(target.node, ast.expr) and target.node not in self._running:
            if isinstance(target.node, ast.Call) or len(self._running) > MAXIMUM_DEPTH:
                return ast.Name(target.name, node.ctx)
            running = (*self._running, target.node)
            inner = _Rewriter(self._inliner, target.module, None, {}, running)
            value: ast.AST = inner.visit(copy.deepcopy(target.node))
            return value
        return ast.Name(target.name if isinstance(target, ExternalName | Symbol) else ast.unparse(node), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call of a function that only returns an expression by that expression."""
        target = self._find_function(node.func)
        if target is None:
            return self.generic_visit(node)
        bound = self._bind(node, target)
        body = [statement for statement in target.node.body if not _is_docstring(statement)]
        if bound is not None and len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
            (returned,) = self._normalize(target, bound)
            assert isinstance(returned, ast.Return)
            return returned.value or ast.Constant(None)
        call = ast.Call(node.func, node.args, node.keywords)
        self.generic_visit(call)
        name = self._inliner.describe_call(target, self._running)
        return ast.Call(ast.Name(name, ast.Load()), call.args, call.keywords)

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        """Replace the return of a call by the statements of the called function."""
        target = self._find_function(node.value.func) if isinstance(node.value, ast.Call) else None
        bound = self._bind(node.value, target) if target is not None and isinstance(node.value, ast.Call) else None
        if target is None or bound is None:
            return self.generic_visit(node)
        body: list[ast.stmt] = []
        for name, value in bound.items():
            uses = [part for part in ast.walk(target.node) if isinstance(part, ast.Name) and part.id == name]
            is_changed = any(isinstance(part.ctx, ast.Store) for part in uses)
            if not isinstance(value, ast.Name | ast.Constant) and (is_changed or len(uses) > 1):
                bound[name] = local = self._inliner.name_local(name)
                body.append(ast.Assign([ast.Name(local.id, ast.Store())], value, lineno=0))
        body += self._normalize(target, bound)
        return body if body and isinstance(body[-1], ast.Return | ast.Raise) else [*body, ast.Return(None)]

    def _normalize(self, target: FunctionSymbol, names: dict[str, ast.expr]) -> list[ast.stmt]:
        return self._inliner.normalize(target, names, (*self._running, target.node))

    def _find_function(self, function: ast.expr) -> FunctionSymbol | None:
        """Return the function of the package that a call calls, unless it calls itself."""
        found = self._inliner.modules.resolve(self._module, function)
        if isinstance(function, ast.Name) and function.id in self._names:
            return None
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            owner = self._inliner.modules.resolve(self._module, function.value)
            own = self._owner if function.value.id in ("self", "cls") else owner
            if isinstance(own, Symbol) and isinstance(own.node, ast.ClassDef):
                found = _find_method(own, function.attr) or found
        is_known = isinstance(found, FunctionSymbol) and found.node not in self._running
        return found if is_known and len(self._running) <= MAXIMUM_DEPTH else None  # type: ignore[return-value]

    def _bind(self, call: ast.Call, target: FunctionSymbol) -> dict[str, ast.expr] | None:
        """Return the rewritten arguments of a call by name; None for a call with * or **, or a wrong one."""
        spec = target.node.args
        is_plain = not spec.vararg and not spec.kwarg and all(keyword.arg for keyword in call.keywords)
        if not is_plain or any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        parameters = [argument.arg for argument in _parameters(target)]
        positional = [*spec.posonlyargs, *spec.args]
        values: dict[str, ast.expr | None] = dict.fromkeys(parameters)
        values |= dict(zip([a.arg for a in reversed(positional)], reversed(spec.defaults), strict=False))
        values |= {a.arg: default for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default}
        values |= dict(zip(parameters, call.args, strict=False))
        values |= {str(keyword.arg): keyword.value for keyword in call.keywords}
        if None in values.values() or values.keys() != set(parameters) or len(call.args) > len(parameters):
            return None
        return {name: self.visit(copy.deepcopy(value)) for name, value in values.items() if value is not None}

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove docstrings."""
        return None if _is_docstring(node) else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Turn an annotated assignment into a plain one."""
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=0))

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Remove the text of an error."""
        return ast.Raise(None, None)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Rename an argument of an inner function, and remove its annotation."""
        known = self._names.get(node.arg)
        return ast.arg(known.id if isinstance(known, ast.Name) else node.arg, None)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Rename the variable of a caught error."""
        known = self._names.get(node.name or "")
        node.name = known.id if isinstance(known, ast.Name) else node.name
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rename an inner function, and remove its decorators and annotations."""
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Treat a coroutine like a function."""
        return self._visit_function(node)

    def _visit_function(self, node: Function) -> ast.AST:
        known = self._names.get(node.name)
        name = known.id if isinstance(known, ast.Name) else node.name
        body = [s for s in node.body if not _is_docstring(s)] or [ast.Pass()]
        return self.generic_visit(ast.FunctionDef(name, node.args, body, [], None, lineno=0))


def _parameters(function: FunctionSymbol) -> Sequence[ast.arg]:
    """Return the parameters of a function, without self or cls."""
    spec = function.node.args
    parameters = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    return parameters[1:] if function.owner and parameters and parameters[0].arg in ("self", "cls") else parameters


def _find_method(owner: Symbol, name: str) -> FunctionSymbol | None:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in iter_statements(owner.node.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name:
            return FunctionSymbol(owner.module, f"{owner.name}.{name}", statement, owner)
    return None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _unparse(statement: ast.stmt) -> str:
    return ast.unparse(ast.fix_missing_locations(statement))
