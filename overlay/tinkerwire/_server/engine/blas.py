"""Limits numpy's BLAS to one thread.

numpy's bundled OpenBLAS starts one thread per core, and the threads spin while they wait. On a busy machine, products
of this size take up to a hundred times longer, and their last bits depend on the number of cores. The engine runs
pieces of a batch in parallel instead.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import numpy as np

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


@lru_cache(maxsize=1)
def use_one_thread() -> bool:
    """Set numpy's OpenBLAS to one thread for the process; False when numpy uses another library."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            for name in _SETTERS:
                if hasattr(library, name):
                    getattr(library, name)(1)
                    return True
    return False
