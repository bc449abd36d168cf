"""Fingerprints of functions that change what is read or sent: equal for code that differs in names and comments."""

from __future__ import annotations

import ast
import copy
import hashlib

from .modules import Function, FunctionSymbol, ReleaseModules

DEPTH = 3


def take_fingerprint(modules: ReleaseModules, module: str, function: Function, depth: int = 0) -> str:
    """Return a fingerprint of a function and of those of the package that it calls.

    Names of arguments and local variables, annotations, docstrings and the texts of errors do not count.
    """
    called: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and depth < DEPTH:
            target = modules.resolve(module, node.func)
            if isinstance(target, FunctionSymbol) and target.node is not function:
                called[node.func.id] = take_fingerprint(modules, target.module, target.node, depth + 1)
    body = copy.deepcopy(function)
    names = _local_names(body)
    normalized = _Normalizer(names, called).visit(body)
    text = ast.dump(ast.Module([ast.Expr(normalized.args), *normalized.body], []))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _local_names(function: Function) -> dict[str, str]:
    """Return a number for each argument and local variable of a function, in order of appearance."""
    names: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.setdefault(node.arg, f"v{len(names)}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, f"v{len(names)}")
    return names


class _Normalizer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], called: dict[str, str]) -> None:
        self._names, self._called = names, called

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a local name by its number, and a function of the package by its fingerprint."""
        return ast.Name(self._names.get(node.id) or self._called.get(node.id) or node.id, node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Remove the annotation of an argument."""
        return ast.arg(self._names[node.arg], None)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remove name, decorators, docstring and annotations of a function."""
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Treat a coroutine like a function."""
        return self._visit_function(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Turn an annotated assignment into a plain one."""
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=0))

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Remove the text of an error."""
        return ast.Raise(None, None)

    def _visit_function(self, node: Function) -> ast.AST:
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        plain = ast.FunctionDef("f", node.args, body, [], None, lineno=0)
        return self.generic_visit(plain)
