"""What a name means inside nested functions: annotated, assigned, or a parameter with a default."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .modules import assigned_value, iter_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Scope:
    """The functions around one place in a module, the outermost first, and the class around them, if any."""

    module: str
    path: str
    functions: tuple[Function, ...]

    def find_annotation(self, name: str) -> ast.expr | None:
        """The annotation of a name where it is nearest, as a parameter or an annotated assignment."""
        for function in reversed(self.functions):
            for argument in _arguments(function):
                if argument.arg == name:
                    return argument.annotation
            for statement in _statements(function):
                if isinstance(statement, ast.AnnAssign) and _is_name(statement.target, name):
                    return statement.annotation
        return None

    def find_value(self, name: str) -> ast.expr | None:
        """What is assigned to a name first, where it is nearest."""
        return next(iter(self.find_values(name)), None)

    def find_values(self, name: str) -> list[ast.expr]:
        """All that is assigned to a name where it is nearest, in the order of the source."""
        for function in reversed(self.functions):
            found = [value for statement in _statements(function) if (value := _assigned_to(statement, name))]
            if found:
                return found
        return []

    def find_entries(self, name: str) -> dict[str, ast.expr]:
        """What is put into a mapping by key after it was made: name["key"] = value."""
        found = {}
        for function in self.functions:
            for statement in _statements(function):
                if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
                    continue
                target = statement.targets[0]
                if _is_name(target.value, name) and isinstance(target.slice, ast.Constant):
                    found[str(target.slice.value)] = statement.value
        return found

    def find_default(self, name: str) -> ast.expr | None:
        """The default of the parameter ``name`` where it is nearest."""
        for function in reversed(self.functions):
            spec = function.args
            positional = [*spec.posonlyargs, *spec.args]
            pairs = list(zip(reversed(positional), reversed(spec.defaults), strict=False))
            pairs += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
            for argument, default in pairs:
                if argument.arg == name:
                    return default
        return None


def calls(module: str, tree: ast.Module) -> Iterator[tuple[Scope, ast.Call]]:
    """Every call in a module, each with the scope it stands in."""
    yield from _calls(tree, Scope(module, "", ()))


def _calls(node: ast.AST, scope: Scope) -> Iterator[tuple[Scope, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield scope, child
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            functions = () if isinstance(child, ast.ClassDef) else (*scope.functions, child)
            inner = Scope(scope.module, f"{scope.path}.{child.name}".lstrip("."), functions)
        yield from _calls(child, inner)


def _arguments(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _statements(function: Function) -> Iterator[ast.stmt]:
    return iter_statements(function.body)


def _assigned_to(statement: ast.stmt, name: str) -> ast.expr | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    is_wanted = isinstance(statement, ast.Assign | ast.AnnAssign) and any(_is_name(target, name) for target in targets)
    return assigned_value(statement) if is_wanted else None


def _is_name(target: ast.expr | None, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name
