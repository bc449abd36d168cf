"""Type annotations in the notation of the facts, such as list[int] or map[str, X]."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping

from .classify import TYPE_CALLS, Classifier, last_name
from .modules import ExternalName, Symbol
from .type_syntax import WRAPPERS, literal_values, outer_name, type_arguments, unquote

SCALARS = {name: name for name in ("str", "int", "float", "bool", "bytes", "datetime", "date")}
SCALARS |= {"None": "null", "NoneType": "null", "Any": "any", "object": "any", "AwareDatetime": "datetime(tz)"}
CONSTRAINED = {
    **dict.fromkeys(("conint", "StrictInt", "PositiveInt", "NegativeInt", "NonNegativeInt", "NonPositiveInt"), "int"),
    **dict.fromkeys(
        (*("confloat", "StrictFloat", "FiniteFloat", "PositiveFloat", "NegativeFloat"), "NonNegativeFloat"), "float"
    ),
    **dict.fromkeys(("constr", "StrictStr"), "str"),
    **dict.fromkeys(("conbytes", "StrictBytes"), "bytes"),
    "StrictBool": "bool",
    "NonPositiveFloat": "float",
}
"""Types of pydantic that are another type with limits."""
SCALARS |= CONSTRAINED
LISTS = frozenset({"List", "list", "Sequence", "Iterable", "Iterator", "Set", "set", "FrozenSet", "frozenset"})
LISTS |= {"conlist", "conset", "MutableSequence", "Collection", "AbstractSet"}
MAPS = frozenset({"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"})
TUPLES = frozenset({"Tuple", "tuple"})

Bindings = Mapping[str, str]
"""Types of the type variables of a generic base, by name."""
MAXIMUM_DEPTH = 30


def render(
    classifier: Classifier,
    module: str,
    annotation: ast.expr,
    bindings: Bindings | None = None,
    *,
    of_field: bool = True,
) -> str:
    """Render an annotation in ``module``; names of wire types stay names.

    ``of_field`` reports names that are not defined, which an annotation of a function may have.
    """
    return _Renderer(classifier, bindings or {}, of_field=of_field).render(module, annotation)


class _Renderer:
    def __init__(self, classifier: Classifier, bindings: Bindings, *, of_field: bool) -> None:
        self._of_field = of_field
        self._classifier, self._modules, self._bindings = classifier, classifier.modules, bindings
        self._depth = 0

    def render(self, module: str, annotation: ast.expr) -> str:
        """Render an annotation; an alias of itself is reported."""
        self._depth += 1
        try:
            if self._depth > MAXIMUM_DEPTH:
                self._modules.problems.add(module, annotation, f"type that refers to itself: {ast.unparse(annotation)}")
                return "any"
            return self._render(module, annotation)
        finally:
            self._depth -= 1

    def _render(self, module: str, annotation: ast.expr) -> str:
        annotation = unquote(annotation)
        if isinstance(annotation, ast.Constant):
            return "null" if annotation.value is None else json.dumps(annotation.value, default=str)
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            return _join_union([self.render(module, side) for side in (annotation.left, annotation.right)])
        if isinstance(annotation, ast.Subscript):
            return self._render_subscript(module, annotation)
        if isinstance(annotation, ast.Call):
            return self._render_call(module, annotation)
        return self._render_name(module, annotation)

    def _render_call(self, module: str, call: ast.Call) -> str:
        name = last_name(call)
        if name in TYPE_CALLS and len(call.args) > 1:
            return self.render(module, call.args[1])
        if name in CONSTRAINED:
            return CONSTRAINED[name]
        if name in ("conlist", "conset") and call.args:
            return f"list[{self.render(module, call.args[0])}]"
        if name in ("TypeVar", "ParamSpec", "TypeVarTuple"):
            return "any"
        if name == "type" and len(call.args) == 1:
            return "null" if isinstance(call.args[0], ast.Constant) and call.args[0].value is None else "any"
        self._modules.problems.add(module, call, f"type: {ast.unparse(call)}")
        return "any"

    def _render_subscript(self, module: str, annotation: ast.Subscript) -> str:
        name = outer_name(self._modules, module, annotation)
        values = literal_values(self._modules, module, annotation)
        if values is not None:
            return _join_union([json.dumps(value, default=str) for value in values])
        inner = type_arguments(annotation)
        if name in WRAPPERS:
            return self.render(module, inner[0])
        if name == "Union":
            return _join_union([self.render(module, argument) for argument in inner])
        if name == "Optional":
            return _join_union([self.render(module, inner[0]), "null"])
        if name in LISTS:
            return f"list[{self.render(module, inner[0])}]"
        if name not in MAPS | TUPLES:
            return self._render_generic(module, annotation, inner)
        parts = [self.render(module, argument) for argument in inner if not _is_ellipsis(argument)]
        if name in TUPLES and len(parts) < len(inner):
            return f"list[{parts[0]}]"
        return f"{'map' if name in MAPS else 'tuple'}[{', '.join(parts)}]"

    def _render_generic(self, module: str, annotation: ast.Subscript, inner: list[ast.expr]) -> str:
        """Render a generic model or a generic alias with its arguments."""
        target = self._modules.resolve(module, annotation.value)
        if not isinstance(target, Symbol):
            return self._render_name(module, annotation.value)
        texts = [self.render(module, argument) for argument in inner]
        if isinstance(target.node, ast.ClassDef):
            name = self._render_name(module, annotation.value)
            return f"{name}[{', '.join(texts)}]" if self._classifier.classify(target) == "pydantic" else name
        names = type_variables(self._classifier, target.module, target.node)
        bound = _Renderer(self._classifier, dict(zip(names, texts, strict=False)), of_field=self._of_field)
        bound._depth = self._depth
        return bound.render(target.module, target.node)

    def _render_name(self, module: str, annotation: ast.expr) -> str:
        name = last_name(annotation)
        if name in self._bindings:
            return self._bindings[name]
        target = self._modules.resolve(module, annotation)
        if name == "NoneType":
            return "null"
        if isinstance(target, ExternalName):
            if target.last in LISTS:
                return "list[any]"
            if target.last in MAPS:
                return "map[str, any]"
            if target.last in SCALARS:
                return SCALARS[target.last]
            if (
                self._of_field
                and isinstance(annotation, ast.Name)
                and not self._modules.is_bound(module, annotation.id)
            ):
                self._modules.problems.add(module, annotation, f"name {name}, which is not defined")
            return ast.unparse(annotation)
        if not isinstance(target, Symbol):
            return ast.unparse(annotation)
        kind, node = self._classifier.classify(target), target.node
        if kind == "other" and not isinstance(node, ast.ClassDef):
            # Inline an alias that is not a type of the wire.
            return self.render(target.module, node)
        return f"{target.name}#inmem" if kind == "dataclass" else target.name


def type_variables(classifier: Classifier, module: str, node: ast.expr) -> list[str]:
    """Return the names of the type variables in an expression, in order of appearance."""
    names: list[str] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id not in names:
            target = classifier.modules.resolve(module, part)
            if isinstance(target, Symbol) and isinstance(target.node, ast.Call) and last_name(target.node) == "TypeVar":
                names.append(part.id)
    return names


def _join_union(parts: list[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _is_ellipsis(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Constant) and argument.value is Ellipsis
