"""The modules of a release as syntax trees, and the definitions behind their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Symbol:
    """A class or an assigned value of the package, at the place of its definition."""

    module: str
    name: str
    node: ast.ClassDef | ast.expr = field(compare=False, hash=False)


@dataclass(frozen=True)
class ExternalName:
    """Dotted name from outside the package; builtins have no dots."""

    name: str

    @property
    def last(self) -> str:
        """Return the last part of the dotted name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class ModuleName:
    """Dotted name of a module of the package."""

    name: str


Referent = Symbol | ExternalName | ModuleName


class ReleaseModules:
    """All modules of a package by dotted name, parsed but not run."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Parse the modules.

        Raises:
            ValueError: a file cannot be parsed.
        """
        self.trees: dict[str, ast.Module] = {}
        self._packages: set[str] = set()
        for path, text in files.items():
            if not path.endswith(".py"):
                continue
            name = path.removesuffix(".py").replace("/", ".")
            if name.endswith(".__init__"):
                name = name.removesuffix(".__init__")
                self._packages.add(name)
            try:
                self.trees[name] = ast.parse(text, path)
            except SyntaxError as error:
                raise ValueError(f"{path}: cannot be parsed as Python: {error}; use a complete release") from error
        self._names = {name: dict(self._bindings(name)) for name in self.trees}

    def symbols(self, module: str) -> Iterator[Symbol]:
        """Yield the top-level definitions of ``module``, in order."""
        for referent in self._names[module].values():
            if isinstance(referent, Symbol) and referent.module == module:
                yield referent

    def resolve(self, module: str, expression: ast.expr) -> Referent:
        """Resolve a name or dotted name in ``module``; any other expression is an ExternalName of its source text."""
        if isinstance(expression, ast.Name):
            return self._follow(self._names[module].get(expression.id, ExternalName(expression.id)))
        if isinstance(expression, ast.Attribute):
            base = self.resolve(module, expression.value)
            if isinstance(base, ModuleName):
                return self._member(base.name, expression.attr)
            if isinstance(base, ExternalName):
                return ExternalName(f"{base.name}.{expression.attr}")
        return ExternalName(ast.unparse(expression))

    def _member(self, module: str, name: str) -> Referent:
        if f"{module}.{name}" in self.trees and name not in self._names[module]:
            return ModuleName(f"{module}.{name}")
        return self._follow(self._names[module].get(name, ExternalName(f"{module}.{name}")))

    def _follow(self, referent: Referent) -> Referent:
        """Follow re-exports to the place of the definition."""
        for _ in range(20):
            if isinstance(referent, Symbol) and isinstance(referent.node, ast.Name):
                inner = self._names[referent.module].get(referent.node.id)
                if inner is None or inner == referent or isinstance(inner, ExternalName):
                    return referent
                referent = inner
            elif isinstance(referent, ExternalName):
                module, _, name = referent.name.rpartition(".")
                next_referent = self._names.get(module, {}).get(name)
                if next_referent is None or next_referent == referent:
                    return ModuleName(referent.name) if referent.name in self.trees else referent
                referent = next_referent
            else:
                return referent
        return referent

    def _bindings(self, module: str) -> Iterator[tuple[str, Referent]]:
        for statement in iter_statements(self.trees[module].body):
            if isinstance(statement, ast.ClassDef):
                yield statement.name, Symbol(module, statement.name, statement)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    yield alias.asname or name, ExternalName(name)
            elif isinstance(statement, ast.ImportFrom):
                base = self._imported(module, statement)
                for alias in statement.names:
                    yield alias.asname or alias.name, ExternalName(f"{base}.{alias.name}")
            elif (value := assigned_value(statement)) is not None:
                for name in _targets(statement):
                    yield name, Symbol(module, name, value)

    def _imported(self, module: str, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        steps = module.split(".")
        keep = len(steps) - statement.level + (module in self._packages)
        return ".".join([*steps[:keep], *([statement.module] if statement.module else [])])


def iter_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body and of the if, try and with blocks in it."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from iter_statements(getattr(statement, part, []))
        if isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from iter_statements(handler.body)


def assigned_value(statement: ast.stmt) -> ast.expr | None:
    """Return the value of an assignment to a name, or None."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return statement.value
    return getattr(statement, "value", None) if type(statement).__name__ == "TypeAlias" else None


def _targets(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    target = getattr(statement, "target", None) or getattr(statement, "name", None)
    return [target.id] if isinstance(target, ast.Name) else []
