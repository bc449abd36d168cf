"""Names inside nested functions: their annotations, assigned values and parameter defaults."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .modules import assigned_value, iter_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Scope:
    """The functions around one place in a module, outermost first; ``path`` also names a class around them."""

    module: str
    path: str
    functions: tuple[Function, ...]

    def find_annotation(self, name: str) -> ast.expr | None:
        """Find the nearest annotation of a name, on a parameter or an annotated assignment."""
        for function in reversed(self.functions):
            for argument in _arguments(function):
                if argument.arg == name:
                    return argument.annotation
            for statement in _statements(function):
                if isinstance(statement, ast.AnnAssign) and _is_name(statement.target, name):
                    return statement.annotation
        return None

    def find_value(self, name: str) -> ast.expr | None:
        """Find the first value assigned to a name in the nearest function."""
        return next(iter(self.find_values(name)), None)

    def find_values(self, name: str) -> list[ast.expr]:
        """Find all values assigned to a name in the nearest function, in source order."""
        for function in reversed(self.functions):
            values = [value for statement in _statements(function) if (value := _assigned_to(statement, name))]
            if values:
                return values
        return []

    def find_entries(self, name: str) -> dict[str, ast.expr]:
        """Find the entries stored in a mapping after its creation: name["key"] = value."""
        entries = {}
        for function in self.functions:
            for statement in _statements(function):
                if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
                    continue
                target = statement.targets[0]
                if _is_name(target.value, name) and isinstance(target.slice, ast.Constant):
                    entries[str(target.slice.value)] = statement.value
        return entries

    def find_default(self, name: str) -> ast.expr | None:
        """Find the default of the nearest parameter ``name``."""
        for function in reversed(self.functions):
            spec = function.args
            positional = [*spec.posonlyargs, *spec.args]
            pairs = list(zip(reversed(positional), reversed(spec.defaults), strict=False))
            pairs += [
                (parameter, default_)
                for parameter, default_ in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
                if default_ is not None
            ]
            for argument, default in pairs:
                if argument.arg == name:
                    return default
        return None


def iter_calls(module: str, tree: ast.Module) -> Iterator[tuple[Scope, ast.Call]]:
    """Yield every call in a module with its scope."""
    yield from _iter_calls(tree, Scope(module, "", ()))


def _iter_calls(node: ast.AST, scope: Scope) -> Iterator[tuple[Scope, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield scope, child
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            functions = () if isinstance(child, ast.ClassDef) else (*scope.functions, child)
            inner = Scope(scope.module, f"{scope.path}.{child.name}".lstrip("."), functions)
        yield from _iter_calls(child, inner)


def _arguments(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _statements(function: Function) -> Iterator[ast.stmt]:
    return iter_statements(function.body)


def _assigned_to(statement: ast.stmt, name: str) -> ast.expr | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    is_assignment = isinstance(statement, ast.Assign | ast.AnnAssign) and any(
        _is_name(target, name) for target in targets
    )
    return assigned_value(statement) if is_assignment else None


def _is_name(target: ast.expr | None, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name
