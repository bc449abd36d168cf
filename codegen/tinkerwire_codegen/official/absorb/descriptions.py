"""Descriptions in the source of a release: docstrings, texts below fields, comments, and Field(description=...)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..drift.schema_builder import TODO
from ..release.archive import Release

REWORD = "TODO: reword: "
"""Start of a description that has the words of the release."""
MAX_LENGTH = 400


@dataclass
class Descriptions:
    """Texts about types, fields (as Type.field), values of enums (as Type.value) and functions, by name."""

    types: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def describe_type(self, name: str) -> str:
        """Return the description of a type, marked to be reworded."""
        return _mark(self.types.get(name))

    def describe_field(self, owner: str, name: str) -> str:
        """Return the description of a field, marked to be reworded."""
        return _mark(self.fields.get(f"{owner}.{name}"))

    def describe_function(self, name: str) -> str:
        """Return the description of a function, marked to be reworded."""
        return _mark(self.functions.get(name))


def read_descriptions(release: Release) -> Descriptions:
    """Read the descriptions of all modules of a release."""
    found = Descriptions()
    for path, text in sorted(release.files.items()):
        if path.endswith(".py") and not path.endswith("_pb2.py"):
            _read_module(found, ast.parse(text), _read_comments(text))
    return found


def _mark(text: str | None) -> str:
    return f"{REWORD}{text}" if text else TODO


def _read_module(found: Descriptions, tree: ast.Module, comments: Mapping[int, str]) -> None:
    _read_assignments(found.types, "", tree.body, comments)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            _add(found.types, node.name, ast.get_docstring(node))
            _read_assignments(found.fields, f"{node.name}.", node.body, comments)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _add(found.functions, node.name, ast.get_docstring(node))


def _read_assignments(found: dict[str, str], prefix: str, body: list[ast.stmt], comments: Mapping[int, str]) -> None:
    """Read the texts of assigned names: the string below, an argument of Field, or a comment behind or above."""
    for statement, following in zip(body, [*body[1:], None], strict=False):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            name = f"{prefix}{target.id}"
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                _add(found, name, following.value.value)
            _add(found, name, _field_description(statement))
            _add(found, name, comments.get(statement.end_lineno or 0))
            _add(found, name, _comment_above(statement.lineno, comments))


def _field_description(statement: ast.stmt) -> str | None:
    for call in ast.walk(statement):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "description":
                try:
                    value = ast.literal_eval(keyword.value)
                except ValueError:
                    continue
                return value if isinstance(value, str) else None
    return None


def _comment_above(line: int, comments: Mapping[int, str]) -> str | None:
    """Return the comment lines directly above a line; those behind code do not count."""
    lines: list[str] = []
    while (above := comments.get(-(line - 1 - len(lines)))) is not None:
        lines.insert(0, above)
    return " ".join(lines) or None


def _read_comments(text: str) -> dict[int, str]:
    """Return the comments by line; those alone on their line have the negated number."""
    found: dict[int, str] = {}
    for token in _iter_tokens(text):
        if token.type == tokenize.COMMENT and not re.match(
            r"#\s*(type:|noqa|pyright|mypy|TODO|FIXME|pylint)", token.string
        ):
            row, column = token.start
            is_alone = not token.line[:column].strip()
            found[-row if is_alone else row] = token.string.lstrip("#: ").strip()
    return found


def _iter_tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, IndentationError):
        return


def _add(found: dict[str, str], name: str, text: object) -> None:
    """Add the first paragraph of a text as one line, unless the name has one."""
    if not isinstance(text, str):
        return
    paragraph = " ".join(re.split(r"\n\s*\n", text.strip())[0].split()).replace("`", "")
    if not paragraph or paragraph.lower().startswith(("deprecated", "args:")):
        return
    if len(paragraph) > MAX_LENGTH:
        paragraph = paragraph[:MAX_LENGTH].rsplit(" ", 1)[0] + " ..."
    found.setdefault(name, paragraph if paragraph.endswith((".", "?", "!")) else paragraph + ".")
