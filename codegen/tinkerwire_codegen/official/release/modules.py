"""The modules of a release as syntax trees, and the definitions behind their names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .parsing import UnparsableSource, parse_source
from .problems import Problems

Function = ast.FunctionDef | ast.AsyncFunctionDef


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


@dataclass(frozen=True)
class FunctionSymbol:
    """Function of the package; ``owner`` is the class of a method."""

    module: str
    name: str
    node: Function = field(compare=False, hash=False)
    owner: Symbol | None = None


Referent = Symbol | ExternalName | ModuleName | FunctionSymbol


class ReleaseModules:
    """All modules of a package by dotted name, parsed but not run."""

    def __init__(self, files: Mapping[str, str], problems: Problems | None = None) -> None:
        """Parse the modules; a file that is not Python is recorded as a problem."""
        self.problems = problems or Problems()
        self.trees: dict[str, ast.Module] = {}
        self._packages: set[str] = set()
        for path, text in files.items():
            if not path.endswith(".py"):
                continue
            name = path.removesuffix(".py").replace("/", ".")
            if name.endswith(".__init__"):
                name = name.removesuffix(".__init__")
                self._packages.add(name)
            self.problems.paths[name] = path
            try:
                self.trees[name] = parse_source(text, path)
            except UnparsableSource as error:
                self.problems.add_file(path, str(error), error.line)
        self._names: dict[str, dict[str, Referent]] = {}
        for name in self.trees:
            self._bind(name)

    def keep_origin(self, module: str, node: ast.AST) -> None:
        """Resolve the names of a node of ``module`` there, also when it is put into code of another module."""
        self.problems.origins.update(dict.fromkeys(ast.walk(node), module))

    def is_package(self, module: str) -> bool:
        """Report whether a module is the ``__init__`` of a package."""
        return module in self._packages

    def exports(self, module: str) -> Iterator[tuple[str, Referent]]:
        """Yield the names of a module with the definitions behind them, in order."""
        for name, referent in self._names[module].items():
            yield name, self._follow(referent)

    def imported_symbols(self, module: str) -> Iterator[Symbol]:
        """Yield the definitions that a module imports by name, or that a module has that it imports with a star."""
        for statement in iter_statements(self.trees[module].body):
            if not isinstance(statement, ast.ImportFrom):
                continue
            base = self._imported(module, statement)
            for alias in statement.names:
                if alias.name == "*" and base in self.trees and base != module:
                    yield from self.symbols(base)
                elif alias.name != "*":
                    referent = self._follow(ExternalName(f"{base}.{alias.name}"))
                    if isinstance(referent, Symbol):
                        yield referent

    def is_bound(self, module: str, name: str) -> bool:
        """Report whether a name is bound in a module, or built in."""
        return name in self._names[module] or hasattr(builtins, name)

    def symbols(self, module: str) -> Iterator[Symbol]:
        """Yield the top-level definitions of ``module``, in order."""
        for referent in self._names[module].values():
            if isinstance(referent, Symbol) and referent.module == module:
                yield referent

    def resolve(self, module: str, expression: ast.expr) -> Referent:
        """Resolve a name or dotted name in ``module``; any other expression is an ExternalName of its source text."""
        module = self.problems.origins.get(expression, module)
        if isinstance(expression, ast.Name):
            return self._follow(self._names[module].get(expression.id, ExternalName(expression.id)))
        if isinstance(expression, ast.Attribute):
            base = self.resolve(module, expression.value)
            if isinstance(base, ModuleName):
                return self._member(base.name, expression.attr)
            if isinstance(base, ExternalName):
                return ExternalName(f"{base.name}.{expression.attr}")
            if isinstance(base, Symbol) and isinstance(base.node, ast.ClassDef):
                return _nested_class(base, expression.attr) or ExternalName(ast.unparse(expression))
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

    def _bind(self, module: str) -> dict[str, Referent]:
        """Bind the names of a module, those of its star imports first."""
        if module in self._names:
            return self._names[module]
        names = self._names[module] = {}
        for statement in iter_statements(self.trees[module].body):
            if isinstance(statement, ast.ClassDef):
                names[statement.name] = Symbol(module, statement.name, statement)
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                names[statement.name] = FunctionSymbol(module, statement.name, statement)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    names[alias.asname or name] = ExternalName(name)
            elif isinstance(statement, ast.ImportFrom):
                names.update(self._imported_names(module, statement))
            elif (value := assigned_value(statement)) is not None:
                for name, part in assigned_names(statement, value):
                    names[name] = Symbol(module, name, part)
        return names

    def _imported_names(self, module: str, statement: ast.ImportFrom) -> Iterator[tuple[str, Referent]]:
        base = self._imported(module, statement)
        for alias in statement.names:
            if alias.name != "*":
                yield alias.asname or alias.name, ExternalName(f"{base}.{alias.name}")
            elif base in self.trees and base != module:
                for name in list(self._bind(base)):
                    if not name.startswith("_"):
                        yield name, ExternalName(f"{base}.{name}")

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
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def assigned_names(statement: ast.stmt, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that an assignment binds, each with its value; tuples bind each name to its part."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            for element, part in zip(target.elts, value.elts, strict=False):
                if isinstance(element, ast.Name):
                    yield element.id, part


def _nested_class(owner: Symbol, name: str) -> Symbol | None:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in iter_statements(owner.node.body):
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return Symbol(owner.module, f"{owner.name}.{name}", statement)
    return None


@lru_cache(maxsize=4096)
def is_value_function(node: ast.AST) -> bool:
    """Report whether a function is short enough to be one that makes a value."""
    return isinstance(node, ast.Lambda) or sum(isinstance(part, ast.stmt) for part in ast.walk(node)) <= 40
