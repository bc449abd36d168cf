"""Finder for ``import tinker``, and the modules that it creates."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from .deprecations import warn_of_deprecated_methods
from .paths import ADDED, API_VERSION, PATHS, find_reason, find_target

SUBPROCESS_SITE = Path(__file__).parent / "subprocess_site"
"""A folder whose sitecustomize installs the drop-in, for the PYTHONPATH of other processes."""
MODULE_ATTRIBUTES = {"__version__": API_VERSION, "__title__": "tinker", "__file__": __file__}
"""Attributes of each proxy module; the file is the one of this package."""


class ProxyModule(ModuleType):
    """Module with an official name and the contents of a module of tinkerwire."""

    def __getattr__(self, name: str) -> Any:
        """Return a submodule, an added name, or an attribute of the target."""
        path, target = f"{self.__name__}.{name}", self.__dict__.get("_target")
        if path not in PATHS and not name.startswith("__") and hasattr(target, name):
            return getattr(target, name)
        if find_target(path) is not None:
            return importlib.import_module(path)
        added = ADDED.get(self.__name__, {}).get(name)
        if added is not None:
            module, _, attribute = added.partition(":")
            return getattr(importlib.import_module(module), attribute)
        raise AttributeError(f"tinkerwire has no {path} (looked for in {getattr(target, '__name__', None)})")

    def __dir__(self) -> list[str]:
        """Return the names of the module and of its target."""
        return sorted({*super().__dir__(), *dir(self.__dict__["_target"])})


class Finder(MetaPathFinder, Loader):
    """Finder of ``tinker`` and its submodules, before an installed official SDK."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module comes from; None for modules that are not official.

        Raises:
            ModuleNotFoundError: a module of the official SDK that is not here, with the reason.
        """
        if find_target(fullname) is None:
            reason = find_reason(fullname)
            if reason is not None:
                raise ModuleNotFoundError(f"tinkerwire has no module {fullname}: {reason}", name=fullname)
            return None
        return ModuleSpec(fullname, self, origin=find_target(fullname), is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a proxy module."""
        return ProxyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Connect a proxy module with its target."""
        target = importlib.import_module(find_target(module.__name__) or "tinkerwire")
        if module.__name__ == "tinker":
            warn_of_deprecated_methods()
        public = [name for name in dir(target) if not name.startswith("_")]
        module.__dict__.update(
            MODULE_ATTRIBUTES,
            _target=target,
            __doc__=target.__doc__,
            __all__=getattr(target, "__all__", public),
        )


def install(*, children: bool = False) -> None:
    """Make ``import tinker`` import tinkerwire from now on; a second call changes nothing.

    Args:
        children: install it also in Python processes that this process starts later, by a folder on their PYTHONPATH.

    Raises:
        RuntimeError: an official SDK was imported before, and its objects would not fit.
    """
    there = sys.modules.get("tinker")
    if there is not None and not isinstance(there, ProxyModule):
        raise RuntimeError(
            f"tinker was imported already, from {getattr(there, '__file__', None)}; call tinkerwire.dropin.install() "
            "before anything imports it, or run `python -m tinkerwire.dropin SCRIPT`"
        )
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    if children:
        folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
        if str(SUBPROCESS_SITE) not in folders:
            os.environ["PYTHONPATH"] = os.pathsep.join([str(SUBPROCESS_SITE), *folders])
