"""Attributes of classes of a release: methods, class attributes, properties, and attributes set on self."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .classify import last_name
from .modules import ReleaseModules, Symbol, assigned_names, assigned_value, iter_statements
from .values import Closure, Environment, Source, Value


class MemberReader:
    """Reader of the attributes of objects whose class is known."""

    def __init__(
        self,
        modules: ReleaseModules,
        evaluate: Callable[[ast.expr, Environment], Value],
        call: Callable[[Closure, Environment], Value],
    ) -> None:
        """Initialize with the functions that evaluate their values and call their properties."""
        self._modules, self._evaluate, self._call = modules, evaluate, call
        self._members: dict[tuple[str, str], Value | None] = {}
        self._evaluating: set[tuple[str, str]] = set()

    def owner_of(self, expression: ast.expr, environment: Environment) -> Symbol | None:
        """Return the class of ``self``, ``cls``, ``super()``, a class by name, or an instance of one."""
        if isinstance(expression, ast.Name):
            if expression.id in ("self", "cls"):
                here: Environment | None = environment
                while here is not None and here.owner is None:
                    here = here.parent
                return here.owner if here else None
            value = environment.find(expression.id)
            if isinstance(value, Source) and isinstance(value.expression, ast.Call):
                return self._class(value.expression.func, value.environment)
            annotation = environment.find_annotation(expression.id)
            if annotation is not None:
                return self._class(annotation.expression, annotation.environment)
        if isinstance(expression, ast.Call):
            return self._class(expression.func, environment)
        return self._class(expression, environment)

    def _class(self, expression: ast.expr, environment: Environment) -> Symbol | None:
        if (
            isinstance(expression, ast.Constant)
            and isinstance(expression.value, str)
            and expression.value.isidentifier()
        ):
            expression = ast.Name(expression.value)
        referent = self._modules.resolve(environment.module, expression)
        return referent if isinstance(referent, Symbol) and isinstance(referent.node, ast.ClassDef) else None

    def find_member(self, owner: Symbol, name: str, seen: frozenset[str] = frozenset()) -> Value | None:
        """Find a method, a class attribute, a property's value or an attribute set on self, in a class or its bases."""
        assert isinstance(owner.node, ast.ClassDef)
        key = (f"{owner.module}.{owner.name}", name)
        if key in self._members:
            return self._members[key]
        if key in self._evaluating or owner.name in seen:
            return None
        self._evaluating.add(key)
        try:
            value = self._own_member(owner, name)
        finally:
            self._evaluating.discard(key)
        for base in owner.node.bases if value is None else ():
            target = self._modules.resolve(owner.module, base.value if isinstance(base, ast.Subscript) else base)
            if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
                value = self.find_member(target, name, seen | {owner.name})
            if value is not None:
                break
        self._members[key] = value
        return value

    def _own_member(self, owner: Symbol, name: str) -> Value | None:
        assert isinstance(owner.node, ast.ClassDef)
        environment = Environment(owner.module, owner.name, owner)
        # Attributes see those above them in the class; methods do not.
        above = Environment(owner.module, owner.name, owner)
        methods = []
        for statement in iter_statements(owner.node.body):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                if statement.name == name:
                    closure = Closure(statement, environment, owner)
                    is_property = any("property" in last_name(part) for part in statement.decorator_list)
                    return self._call(closure, environment) if is_property else closure
                methods.append(statement)
            elif _assigns(statement, name) and statement.value is not None:  # type: ignore[attr-defined]
                return self._evaluate(statement.value, above)  # type: ignore[attr-defined]
            elif (value := assigned_value(statement)) is not None:
                for attribute, part in assigned_names(statement, value):
                    above.variables[attribute] = self._evaluate(part, above)
        for method in methods:
            inside = Environment(owner.module, f"{owner.name}.{method.name}", owner, method, environment)
            for statement in iter_statements(method.body):
                value = getattr(statement, "value", None)
                if value is not None and _assigns(statement, name, of="self"):
                    return self._evaluate(value, inside)
        return None


def _assigns(statement: ast.stmt, name: str, of: str = "") -> bool:
    """Report whether a statement assigns to a name, or to an attribute of ``of``."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if not of and isinstance(target, ast.Name) and target.id == name:
            return True
        if of and isinstance(target, ast.Attribute) and target.attr == name and last_name(target.value) == of:
            return True
    return False
