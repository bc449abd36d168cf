"""The syntax of annotations: the name and the arguments of a subscript, and the members of unions."""

from __future__ import annotations

import ast

from .modules import ExternalName, ReleaseModules

WRAPPERS = frozenset({"Annotated", "Required", "NotRequired", "ReadOnly", "SerializeAsAny", "Final", "InitVar"})


def unquote(annotation: ast.expr) -> ast.expr:
    """Parse an annotation that is written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def outer_name(modules: ReleaseModules, module: str, annotation: ast.Subscript) -> str:
    """Return the last part of the name before the brackets, such as Union."""
    target = modules.resolve(module, annotation.value)
    return target.last if isinstance(target, ExternalName) else target.name


def type_arguments(annotation: ast.Subscript) -> list[ast.expr]:
    """Return the expressions inside the brackets."""
    inner = annotation.slice
    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]


def unwrap(modules: ReleaseModules, module: str, annotation: ast.expr) -> ast.expr:
    """Remove wrappers such as Annotated or SerializeAsAny from an annotation."""
    while isinstance(annotation, ast.Subscript) and outer_name(modules, module, annotation) in WRAPPERS:
        annotation = type_arguments(annotation)[0]
    return annotation


def union_members(modules: ReleaseModules, module: str, annotation: ast.expr) -> list[ast.expr]:
    """Return the members of a union as written, or an empty list for another type."""
    annotation = unwrap(modules, module, annotation)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        left, right = annotation.left, annotation.right
        return [*(union_members(modules, module, left) or [left]), *(union_members(modules, module, right) or [right])]
    if isinstance(annotation, ast.Subscript) and outer_name(modules, module, annotation) == "Union":
        return type_arguments(annotation)
    return []


def literal_values(modules: ReleaseModules, module: str, annotation: ast.expr) -> list[object] | None:
    """Return the values of a Literal annotation, or None for another type."""
    if isinstance(annotation, ast.Subscript) and outer_name(modules, module, annotation) == "Literal":
        return [value.value for value in type_arguments(annotation) if isinstance(value, ast.Constant)]
    return None
