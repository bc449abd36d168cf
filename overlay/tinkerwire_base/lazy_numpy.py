"""Numpy, imported at first use: its import takes about as long as the rest of the client's."""

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
            value = getattr(importlib.import_module("numpy"), name)
            # Later reads find the attribute without this function.
            setattr(self, name, value)
            return value

    np = _Numpy()
    Array = Any
