"""Attributes of objects that a release changes at places where the change cannot be followed."""

from __future__ import annotations

import ast

from .classify import last_name
from .modules import Function, FunctionSymbol, ModuleName, ReleaseModules, Symbol

SETTERS = frozenset({"setattr", "__setattr__"})


class AttributeChanges:
    """Attributes that are assigned on other objects than ``self`` and those that the same function creates."""

    def __init__(self, modules: ReleaseModules) -> None:
        """Initialize with the modules of a release."""
        self._modules = modules
        self._by_module: dict[str, set[str]] = {}
        self._by_class: dict[Symbol, set[str]] = {}

    def may_change(self, owner: Symbol, name: str) -> bool:
        """Report whether an attribute of instances of a class may be assigned where this is not followed.

        Such a place is in a module that has the name of the class, or that such a module has a function of.
        """
        if owner not in self._by_class:
            names: set[str] = set()
            for module in self._modules.trees:
                referents = [referent for _, referent in self._modules.exports(module)]
                if owner in referents:
                    functions = {referent.module for referent in referents if isinstance(referent, FunctionSymbol)}
                    imported = {referent.name for referent in referents if isinstance(referent, ModuleName)}
                    names.update(*map(self._list_changes, {module} | functions | imported))
            self._by_class[owner] = names
        return name in self._by_class[owner]

    def _list_changes(self, module: str) -> set[str]:
        if module not in self._by_module:
            visitor = _Visitor()
            visitor.visit(self._modules.trees.get(module, ast.Module([], [])))
            self._by_module[module] = visitor.names
        return self._by_module[module]


def read_setter(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """Return object, name and value of a call of setattr; None for another call."""
    is_setter = last_name(call) in SETTERS and len(call.args) == 3
    return (call.args[0], call.args[1], call.args[2]) if is_setter else None


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self._created: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit a function with the names that it only binds to calls."""
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Treat a coroutine like a function."""
        self._visit_function(node)

    def _visit_function(self, node: Function) -> None:
        outer, self._created = self._created, _list_created(node)
        self.generic_visit(node)
        self._created = outer

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Add an attribute that is assigned or deleted."""
        if not isinstance(node.ctx, ast.Load):
            self._add(node.value, node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Add the attribute that setattr assigns."""
        found = read_setter(node)
        if found is not None and isinstance(found[1], ast.Constant):
            self._add(found[0], str(found[1].value))
        self.generic_visit(node)

    def _add(self, owner: ast.expr, name: str) -> None:
        if not isinstance(owner, ast.Name) or owner.id not in ("self", "cls", *self._created):
            self.names.add(name)


def _list_created(function: Function) -> set[str]:
    """List the names that a function binds to the results of calls, and to nothing else."""
    created: set[str] = set()
    others = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            created |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.AsyncFor | ast.AugAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            others |= {part.id for part in parts if isinstance(part.ctx, ast.Store)}
    return created - others
