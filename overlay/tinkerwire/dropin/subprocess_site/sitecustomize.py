"""First import of a process that inherits the drop-in: ``import tinker`` imports tinkerwire there as well.

Python imports only the first ``sitecustomize`` on its path, so this module runs the one that it hides.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType


class DeferredFinder(MetaPathFinder):
    """Finder that installs the drop-in at the first import of tinker; most processes never import it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the drop-in's spec for tinker; None for other modules, and if tinkerwire cannot be imported."""
        if fullname != "tinker":
            return None
        sys.meta_path.remove(self)
        try:
            from tinkerwire.dropin.finder import Finder, install  # noqa: PLC0415
        except ImportError:
            return None
        install()
        return Finder().find_spec(fullname, path, target)


def run_hidden() -> None:
    """Run the sitecustomize that this module hides."""
    here = Path(__file__).resolve().parent
    hidden = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if Path(entry).resolve() != here])
    if hidden is not None and hidden.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(hidden)
        hidden.loader.exec_module(module)


sys.meta_path.insert(0, DeferredFinder())
run_hidden()
