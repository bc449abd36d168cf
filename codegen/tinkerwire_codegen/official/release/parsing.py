"""Syntax trees of Python source, independent of the version of Python that runs this code.

``ast`` parses only the syntax of the running Python. Newer syntax goes through libcst, which parses that of every
Python and rewrites it in terms of older syntax: ``type X = int`` becomes ``X: TypeAlias = int``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

import libcst


class UnparsableSource(ValueError):
    """Source that is not Python; ``line`` is the place of the error."""

    def __init__(self, reason: str, line: int) -> None:
        """Initialize with the parser's reason and line."""
        super().__init__(reason)
        self.line = line


@lru_cache(maxsize=2048)
def parse_source(text: str, path: str) -> ast.Module:
    """Parse a module; type parameters become bases or type variables, and ``type`` statements become aliases.

    Raises:
        UnparsableSource: the text is not Python.
    """
    try:
        return _parse(text, path)
    except SyntaxError as error:
        raise UnparsableSource(f"cannot be parsed as Python: {error.msg}", error.lineno or 1) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnparsableSource(f"cannot be parsed as Python: {error}", 1) from error


def _parse(text: str, path: str) -> ast.Module:
    try:
        tree = ast.parse(text, path)
    except SyntaxError as error:
        if _is_deep(text):
            raise
        try:
            return ast.parse(_rewrite(text), path)
        except (libcst.ParserSyntaxError, libcst.CSTValidationError, SyntaxError):
            raise error from None
    is_newer = any(type(node).__name__ in _NEWER or getattr(node, "type_params", None) for node in ast.walk(tree))
    return ast.parse(_rewrite(text), path) if is_newer else tree


def _is_deep(text: str) -> bool:
    """Report whether brackets or blocks are nested deeper than libcst can parse without exhausting the stack."""
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest > MAXIMUM_DEPTH or any(
        len(line) - len(line.lstrip()) > 4 * MAXIMUM_DEPTH for line in text.split("\n")
    )


MAXIMUM_DEPTH = 100
_NEWER = frozenset({"TypeAlias", "TemplateStr"})
"""Nodes of newer Pythons, which are rewritten so that each Python reads the same tree."""


def _rewrite(text: str) -> str:
    return libcst.parse_module(text).visit(_OlderSyntax()).code


class _OlderSyntax(libcst.CSTTransformer):
    """Rewriter of newer syntax; it adds and removes no line."""

    def leave_SimpleStatementLine(
        self, original_node: libcst.SimpleStatementLine, updated_node: libcst.SimpleStatementLine
    ) -> libcst.SimpleStatementLine:
        body: list[libcst.BaseSmallStatement] = []
        for statement in updated_node.body:
            body += _alias_statements(statement) if isinstance(statement, libcst.TypeAlias) else [statement]
        return updated_node.with_changes(body=body)

    def leave_ClassDef(self, original_node: libcst.ClassDef, updated_node: libcst.ClassDef) -> libcst.ClassDef:
        if updated_node.type_parameters is None:
            return updated_node
        names = ", ".join(parameter.param.name.value for parameter in updated_node.type_parameters.params)
        base = libcst.Arg(libcst.parse_expression(f"Generic[{names}]"))
        # The generator's own parentheses are absent when the class has no bases.
        return updated_node.with_changes(
            type_parameters=None,
            bases=[*updated_node.bases, base],
            lpar=libcst.LeftParen(),
            rpar=libcst.RightParen(),
        )

    def leave_FunctionDef(
        self, original_node: libcst.FunctionDef, updated_node: libcst.FunctionDef
    ) -> libcst.FunctionDef:
        return updated_node.with_changes(type_parameters=None)

    def leave_ExceptHandler(
        self, original_node: libcst.ExceptHandler, updated_node: libcst.ExceptHandler
    ) -> libcst.ExceptHandler:
        caught = updated_node.type
        if isinstance(caught, libcst.Tuple) and not caught.lpar:
            caught = caught.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])
        return updated_node.with_changes(type=caught)

    def leave_FormattedString(
        self, original_node: libcst.FormattedString, updated_node: libcst.FormattedString
    ) -> libcst.BaseExpression:
        try:
            ast.parse(libcst.Module([]).code_for_node(updated_node), mode="eval")
        except SyntaxError:
            return _join_parts(updated_node.parts)
        return updated_node

    def leave_TemplatedString(
        self, original_node: libcst.TemplatedString, updated_node: libcst.TemplatedString
    ) -> libcst.BaseExpression:
        return _join_parts(updated_node.parts)


def _alias_statements(alias: libcst.TypeAlias) -> list[libcst.BaseSmallStatement]:
    code = libcst.Module([]).code_for_node
    parameters = alias.type_parameters.params if alias.type_parameters else ()
    names = [parameter.param.name.value for parameter in parameters]
    lines = [f'{name} = TypeVar("{name}")' for name in names] + [f"{alias.name.value}: TypeAlias = {code(alias.value)}"]
    statements: list[libcst.BaseSmallStatement] = []
    for index, line in enumerate(lines):
        (statement,) = libcst.ensure_type(libcst.parse_statement(line), libcst.SimpleStatementLine).body
        is_last = index == len(lines) - 1
        statements.append(statement if is_last else statement.with_changes(semicolon=libcst.Semicolon()))
    return statements


def _join_parts(parts: Sequence[libcst.CSTNode]) -> libcst.BaseExpression:
    """Write the parts of a formatted string as a sum of strings."""
    texts = []
    for part in parts:
        if isinstance(part, libcst.FormattedStringText | libcst.TemplatedStringText):
            texts.append(repr(part.value.replace("{{", "{").replace("}}", "}")))
        elif isinstance(part, libcst.FormattedStringExpression | libcst.TemplatedStringExpression):
            texts.append(f"str({libcst.Module([]).code_for_node(part.expression)})")
    return libcst.parse_expression(f"({' + '.join(texts) or repr('')})")
