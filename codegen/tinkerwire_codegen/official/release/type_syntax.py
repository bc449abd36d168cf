"""The syntax of annotations: the name and the arguments of a subscript, and the members of unions."""

from __future__ import annotations

import ast

from .modules import ExternalName, ReleaseModules, Symbol

WRAPPERS = frozenset({"Annotated", "Required", "NotRequired", "ReadOnly", "SerializeAsAny", "Final", "InitVar"})


def unquote(annotation: ast.expr) -> ast.expr:
    """Parse an annotation that is written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            body = ast.parse(annotation.value.strip(), mode="eval").body
        except SyntaxError:
            return annotation
        return ast.copy_location(body, annotation)
    return annotation


def outer_name(modules: ReleaseModules, module: str, annotation: ast.Subscript) -> str:
    """Return the last part of the name before the brackets, such as Union."""
    target = modules.resolve(module, annotation.value)
    if isinstance(target, Symbol) and isinstance(target.node, ast.Name | ast.Attribute):
        return outer_name(modules, target.module, ast.Subscript(target.node, annotation.slice))
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
    """Return the values of a Literal annotation, those of nested ones too, or None for another type."""
    if not isinstance(annotation, ast.Subscript) or outer_name(modules, module, annotation) != "Literal":
        return None
    values: list[object] = []
    for argument in type_arguments(annotation):
        values += [value for value in _literal_value(modules, module, argument) if value not in values]
    return values


def _literal_value(modules: ReleaseModules, module: str, argument: ast.expr) -> list[object]:
    """Return the values of one argument of Literal: a constant, a member of an enum, or another Literal."""
    if isinstance(argument, ast.Constant):
        return [argument.value]
    if isinstance(argument, ast.UnaryOp) and isinstance(argument.operand, ast.Constant):
        return [ast.literal_eval(argument)]
    nested = literal_values(modules, module, argument)
    if nested is not None:
        return nested
    target = modules.resolve(module, argument)
    if isinstance(target, Symbol) and isinstance(target.node, ast.expr):
        inner = literal_values(modules, target.module, target.node)
        if inner is not None:
            return inner
        return _literal_value(modules, target.module, target.node)
    if isinstance(argument, ast.Attribute):
        owner = modules.resolve(module, argument.value)
        if isinstance(owner, Symbol) and isinstance(owner.node, ast.ClassDef):
            for statement in owner.node.body:
                if isinstance(statement, ast.Assign) and last_target(statement) == argument.attr:
                    return _literal_value(modules, owner.module, statement.value)
    modules.problems.add(module, argument, f"value of a Literal: {ast.unparse(argument)}")
    return []


def last_target(statement: ast.Assign) -> str:
    """Return the name that an assignment binds last."""
    target = statement.targets[-1]
    return target.id if isinstance(target, ast.Name) else ""
