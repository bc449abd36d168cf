"""Type annotations as text, in the notation of the facts: list[int], map[str, X], "a" | "b", X | null."""

from __future__ import annotations

import ast
import json

from .classify import Kinds, last_name
from .modules import Foreign, Symbol
from .type_syntax import WRAPPERS, arguments, head, literal_values, unquoted

SCALARS = {name: name for name in ("str", "int", "float", "bool", "bytes", "datetime", "date")}
SCALARS |= {"None": "null", "NoneType": "null", "Any": "any", "object": "any", "AwareDatetime": "datetime(tz)"}
LISTS = frozenset({"List", "list", "Sequence", "Iterable", "Iterator", "Set", "set", "FrozenSet", "frozenset"})
MAPS = frozenset({"Dict", "dict", "Mapping", "MutableMapping"})
TUPLES = frozenset({"Tuple", "tuple"})


def text(kinds: Kinds, module: str, annotation: ast.expr) -> str:
    """The type that an annotation in ``module`` stands for; names of wire types stay names."""
    annotation = unquoted(annotation)
    if isinstance(annotation, ast.Constant):
        return "null" if annotation.value is None else json.dumps(annotation.value)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _union([text(kinds, module, each) for each in (annotation.left, annotation.right)])
    if isinstance(annotation, ast.Subscript):
        return _subscript(kinds, module, annotation)
    return _named(kinds, module, annotation)


def _subscript(kinds: Kinds, module: str, annotation: ast.Subscript) -> str:
    name = head(kinds.modules, module, annotation)
    values = literal_values(kinds.modules, module, annotation)
    if values is not None:
        return _union([json.dumps(value) for value in values])
    inner = arguments(annotation)
    if name in WRAPPERS:
        return text(kinds, module, inner[0])
    parts = [text(kinds, module, argument) for argument in inner if not _is_ellipsis(argument)]
    if name == "Optional":
        return _union([*parts, "null"])
    if name == "Union":
        return _union(parts)
    if name in LISTS or (name in TUPLES and len(parts) < len(inner)):
        return f"list[{parts[0]}]"
    if name in MAPS:
        return f"map[{', '.join(parts)}]"
    if name in TUPLES:
        return f"tuple[{', '.join(parts)}]"
    return _named(kinds, module, annotation.value)


def _named(kinds: Kinds, module: str, annotation: ast.expr) -> str:
    meaning = kinds.modules.meaning(module, annotation)
    if last_name(annotation) == "NoneType":
        return "null"
    if isinstance(meaning, Foreign):
        if meaning.last in LISTS:
            return "list[any]"
        return "map[str, any]" if meaning.last in MAPS else SCALARS.get(meaning.last, ast.unparse(annotation))
    if not isinstance(meaning, Symbol):
        return ast.unparse(annotation)
    kind, node = kinds.kind(meaning), meaning.node
    if kind == "other" and not isinstance(node, ast.ClassDef):
        # An alias that is no type of the wire is written out; a type variable may be anything.
        return "any" if isinstance(node, ast.Call) else text(kinds, meaning.module, node)
    return f"{meaning.name}#inmem" if kind == "dataclass" else meaning.name


def _union(parts: list[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _is_ellipsis(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Constant) and argument.value is Ellipsis
