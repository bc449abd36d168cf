"""Facts of an installed release of the official SDK: its modules, what each defines, and what it deprecates.

Run by the release's own Python; prints JSON.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

CLIENTS = ("ServiceClient", "TrainingClient", "SamplingClient", "RestClient", "AdminClient", "APIFuture")


def list_defined(file: Path) -> Iterator[str]:
    """Yield the public names that a module defines; those of a package are what it imports from its own modules."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom) and node.level and file.name == "__init__.py":
            yield from (alias.asname or alias.name for alias in node.names)


def list_modules(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each module of the package that can be imported, with the public names that it defines."""
    for file in sorted(root.rglob("*.py")):
        if file.name == "__main__.py" or file.stem.endswith("_test"):
            continue
        parts = file.relative_to(root).with_suffix("").parts
        name = ".".join(["tinker", *(parts[:-1] if parts[-1] == "__init__" else parts)])
        module = importlib.import_module(name)
        # Generated protobuf code defines its names when it runs.
        names = dir(module) if name.endswith("_pb2") else list_defined(file)
        yield name, sorted({public for public in names if not public.startswith("_") and hasattr(module, public)})


def list_deprecated() -> Iterator[str]:
    """Yield the methods of the clients that warn of their end."""
    import tinker  # noqa: PLC0415

    for client in CLIENTS:
        cls = getattr(tinker, client, None)
        for name in sorted(dir(cls)):
            method = getattr(cls, name, None)
            if not name.startswith("_") and getattr(method, "__deprecated__", None):
                yield f"{client}.{name}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    package = Path(importlib.import_module("tinker").__path__[0])
    json.dump({"modules": dict(list_modules(package)), "deprecated": [*list_deprecated()]}, sys.stdout)
