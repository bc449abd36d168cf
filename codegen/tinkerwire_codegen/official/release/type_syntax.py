"""The shape of annotations: what stands before brackets and in them, and the members of unions."""

from __future__ import annotations

import ast

from .modules import Foreign, Modules

WRAPPERS = frozenset({"Annotated", "Required", "NotRequired", "ReadOnly", "SerializeAsAny", "Final", "InitVar"})


def unquoted(annotation: ast.expr) -> ast.expr:
    """The expression of an annotation that is written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def head(modules: Modules, module: str, annotation: ast.Subscript) -> str:
    """The last part of the name before the brackets, such as Union."""
    meaning = modules.meaning(module, annotation.value)
    return meaning.last if isinstance(meaning, Foreign) else meaning.name


def arguments(annotation: ast.Subscript) -> list[ast.expr]:
    """What stands in the brackets."""
    inner = annotation.slice
    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]


def bare(modules: Modules, module: str, annotation: ast.expr) -> ast.expr:
    """An annotation without what only wraps it, such as Annotated or SerializeAsAny."""
    while isinstance(annotation, ast.Subscript) and head(modules, module, annotation) in WRAPPERS:
        annotation = arguments(annotation)[0]
    return annotation


def members(modules: Modules, module: str, annotation: ast.expr) -> list[ast.expr]:
    """The members of a union as they are written, none when it is no union."""
    annotation = bare(modules, module, annotation)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        left, right = annotation.left, annotation.right
        return [*(members(modules, module, left) or [left]), *(members(modules, module, right) or [right])]
    if isinstance(annotation, ast.Subscript) and head(modules, module, annotation) == "Union":
        return arguments(annotation)
    return []


def literal_values(modules: Modules, module: str, annotation: ast.expr) -> list[object] | None:
    """The values of a Literal annotation, or None when it is something else."""
    if isinstance(annotation, ast.Subscript) and head(modules, module, annotation) == "Literal":
        return [value.value for value in arguments(annotation) if isinstance(value, ast.Constant)]
    return None
