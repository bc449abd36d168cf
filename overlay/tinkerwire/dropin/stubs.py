"""Stubs that let type checkers resolve ``import tinker`` without the official SDK.

``python -m tinkerwire.dropin stubs DIR`` writes them. Each module of the stubs re-exports the objects of this package
under the official names, so that a type is the same by either name. pyright reads the folder ``typings`` by itself, or
what ``stubPath`` names; mypy reads what MYPYPATH or ``mypy_path`` names.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from .paths import ADDED, API_VERSION, PATHS, TYPE_FOLDERS

NOTE = "# Written by `python -m tinkerwire.dropin stubs`.\n"
MESSAGES = "tinker.proto.tinker_public_pb2"


def write_stubs(folder: Path) -> list[Path]:
    """Write the stubs of ``tinker`` into a folder, over what is there, and return their files."""
    from .proto import message_stubs  # noqa: PLC0415  (it needs the messages, which load protobuf)

    texts = {path: _exports(path) for path in PATHS}
    texts |= dict(_type_modules())
    texts[MESSAGES] = message_stubs.text()
    written = []
    for path, text in sorted(texts.items()):
        is_package = any(name.startswith(f"{path}.") for name in texts)
        place = folder.joinpath(*path.split("."))
        file = place / "__init__.pyi" if is_package else place.with_suffix(".pyi")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTE + text)
        written.append(file)
    return written


def _exports(path: str) -> str:
    """Return the stub of a module: imports of all public names of its counterpart, and of what is added to it."""
    target = importlib.import_module(PATHS[path])
    lines = [f"from {target.__name__} import {name} as {name}" for name in _names(target)]
    for name, place in ADDED.get(path, {}).items():
        module, _, attribute = place.partition(":")
        lines.append(f"from {module} import {attribute} as {name}")
    below = {child.removeprefix(f"{path}.").partition(".")[0] for child in PATHS if child.startswith(f"{path}.")}
    exported = set(_names(target)) - {"auth", "types"}
    lines += [f"from . import {name} as {name}" for name in sorted(below - exported)]
    if path == "tinker":
        lines = [line for line in lines if not line.endswith((" auth as auth", " types as types")) or "from ." in line]
        lines += [f'__version__: str  # "{API_VERSION}"', "__title__: str"]
    return "\n".join(lines) + "\n"


def _names(target: ModuleType) -> list[str]:
    """Return the public names that a module gives: those that it lists, else all that are defined here."""
    listed = getattr(target, "__all__", None)
    extra = [name for name in ("APIResponse", "AsyncAPIResponse") if target.__name__ == "tinkerwire"]
    names = [*listed, *extra] if listed is not None else _defined_names(target.__name__) & {*dir(target)}
    return sorted(name for name in names if not name.startswith("_"))


@cache
def _defined_names(module: str) -> frozenset[str]:
    """Return the names that the source of a module defines at its top, or exports by ``import X as X``."""
    names: set[str] = set()
    for node in ast.parse(inspect.getsource(importlib.import_module(module))).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {node_name.id for node_name in node.targets if isinstance(node_name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names |= {node_name.name for node_name in node.names if node_name.asname == node_name.name}
    return frozenset(names)


def _type_modules() -> Iterator[tuple[str, str]]:
    """Yield the modules that are called after a type, with their stubs."""
    types = importlib.import_module(PATHS["tinker.types"])
    for name in _names(types):
        if not inspect.isclass(getattr(types, name)) and name[0].islower():
            continue
        for folder in TYPE_FOLDERS:
            path = f"{folder}.{_snake_case(name)}"
            if path not in PATHS:
                yield path, f"from tinkerwire.types import {name} as {name}\n"


def _snake_case(name: str) -> str:
    """Return the name of the official module of a type: ``TensorData`` is in ``tensor_data``."""
    out = ""
    for index, letter in enumerate(name):
        before, after = name[index - 1 : index], name[index + 1 : index + 2]
        starts = letter.isupper() and index > 0 and (before.islower() or before.isdigit() or after.islower())
        out += ("_" if starts else "") + letter.lower()
    return out
