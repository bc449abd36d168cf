"""Division of the generated models into one module per family of the contract, and the package that loads them."""

from __future__ import annotations

import ast

INIT = '''"""Types of all wire versions, one module per family of the contract.

Importing this package imports no family: a family is imported when one of its names is read for the first time, since
making all classes takes longer than importing the rest of the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FAMILIES = {families}
"""Family of each name."""

if TYPE_CHECKING:
{imports}
else:
    # Type checkers see the imports instead, and so report names that do not exist.
    __all__ = list(_FAMILIES)

    def __getattr__(name: str) -> Any:
        """Return a type, and import its family."""
        family = _FAMILIES.get(name)
        if family is None:
            raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
        value = globals()[name] = getattr(import_module(f"{{__name__}}.{{family}}"), name)
        return value

    def __dir__() -> list[str]:
        """Return the names of all types."""
        return sorted({{*globals(), *__all__}})
'''


def split_models(source: str, families: dict[str, str]) -> dict[str, str]:
    """Return the sources of the package of models by module name, from the source of one module of all models.

    Args:
        source: the source of all models, each defined after those that its definition needs.
        families: the family of each name that the source defines.

    Raises:
        RuntimeError: a name has no family.
    """
    lines = source.splitlines(keepends=True)
    blocks = _blocks(ast.parse(source))
    header = "".join(lines[: _first_line(blocks[0][1][0]) - 1])
    texts: dict[str, list[str]] = {}
    references: dict[str, dict[str, str]] = {}
    for name, nodes in blocks:
        if name not in families:
            raise RuntimeError(f"the generator defined {name}, which is not a schema; give the schema inside it a name")
        family = families[name]
        texts.setdefault(family, []).append("".join(lines[_first_line(nodes[0]) - 1 : nodes[-1].end_lineno]))
        for used in sorted(_used_names(nodes)):
            if families.get(used, family) != family:
                references.setdefault(family, {}).setdefault(used, name)
    modules = {
        family: f'"""Types of the family {family}."""\n\n{header}{_imports(references.get(family, {}), families)}\n\n'
        + "\n\n".join(parts)
        for family, parts in texts.items()
    }
    return {"__init__": _init({name: families[name] for name, _ in blocks}), **modules}


def _blocks(tree: ast.Module) -> list[tuple[str, list[ast.stmt]]]:
    """Return the definitions in order by name, each with the docstring after it."""
    blocks: list[tuple[str, list[ast.stmt]]] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            blocks.append((node.name, [node]))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            blocks.append((node.target.id, [node]))
        elif isinstance(node, ast.Expr) and blocks:
            blocks[-1][1].append(node)
    return blocks


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _used_names(nodes: list[ast.stmt]) -> set[str]:
    """Return the names in definitions, also those in annotations."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _imports(references: dict[str, str], families: dict[str, str]) -> str:
    return "".join(f"from .{families[name]} import {name}\n" for name in sorted(references))


def _init(families: dict[str, str]) -> str:
    imports = "".join(f"    from .{family} import {name} as {name}\n" for name, family in sorted(families.items()))
    return INIT.format(families=dict(sorted(families.items())), imports=imports)
