"""Type annotations in the notation of the facts, such as list[int] or map[str, X]."""

from __future__ import annotations

import ast
import json

from .classify import Classifier, last_name
from .modules import ExternalName, Symbol
from .type_syntax import WRAPPERS, literal_values, outer_name, type_arguments, unquote

SCALARS = {name: name for name in ("str", "int", "float", "bool", "bytes", "datetime", "date")}
SCALARS |= {"None": "null", "NoneType": "null", "Any": "any", "object": "any", "AwareDatetime": "datetime(tz)"}
LISTS = frozenset({"List", "list", "Sequence", "Iterable", "Iterator", "Set", "set", "FrozenSet", "frozenset"})
MAPS = frozenset({"Dict", "dict", "Mapping", "MutableMapping"})
TUPLES = frozenset({"Tuple", "tuple"})


def render(classifier: Classifier, module: str, annotation: ast.expr) -> str:
    """Render an annotation in ``module``; names of wire types stay names."""
    annotation = unquote(annotation)
    if isinstance(annotation, ast.Constant):
        return "null" if annotation.value is None else json.dumps(annotation.value)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _join_union([render(classifier, module, side) for side in (annotation.left, annotation.right)])
    if isinstance(annotation, ast.Subscript):
        return _render_subscript(classifier, module, annotation)
    return _render_name(classifier, module, annotation)


def _render_subscript(classifier: Classifier, module: str, annotation: ast.Subscript) -> str:
    name = outer_name(classifier.modules, module, annotation)
    values = literal_values(classifier.modules, module, annotation)
    if values is not None:
        return _join_union([json.dumps(value) for value in values])
    inner = type_arguments(annotation)
    if name in WRAPPERS:
        return render(classifier, module, inner[0])
    parts = [render(classifier, module, argument) for argument in inner if not _is_ellipsis(argument)]
    if name == "Optional":
        return _join_union([*parts, "null"])
    if name == "Union":
        return _join_union(parts)
    if name in LISTS or (name in TUPLES and len(parts) < len(inner)):
        return f"list[{parts[0]}]"
    if name in MAPS:
        return f"map[{', '.join(parts)}]"
    if name in TUPLES:
        return f"tuple[{', '.join(parts)}]"
    return _render_name(classifier, module, annotation.value)


def _render_name(classifier: Classifier, module: str, annotation: ast.expr) -> str:
    target = classifier.modules.resolve(module, annotation)
    if last_name(annotation) == "NoneType":
        return "null"
    if isinstance(target, ExternalName):
        if target.last in LISTS:
            return "list[any]"
        return "map[str, any]" if target.last in MAPS else SCALARS.get(target.last, ast.unparse(annotation))
    if not isinstance(target, Symbol):
        return ast.unparse(annotation)
    kind, node = classifier.classify(target), target.node
    if kind == "other" and not isinstance(node, ast.ClassDef):
        # Inline an alias that is not a type of the wire; a type variable may be anything.
        return "any" if isinstance(node, ast.Call) else render(classifier, target.module, node)
    return f"{target.name}#inmem" if kind == "dataclass" else target.name


def _join_union(parts: list[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _is_ellipsis(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Constant) and argument.value is Ellipsis
