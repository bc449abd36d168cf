"""Numpy, loaded at its first use: that alone takes about as long as all else that an import of the client loads."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Array", "np"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module("numpy"), name)
            # From now on it is an attribute like any other.
            setattr(self, name, found)
            return found

    np = _Numpy()
    Array = Any
