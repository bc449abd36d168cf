"""``import tinker`` gives tinkerwire: for code written for the official SDK, as it is.

``python -m tinkerwire.dropin SCRIPT [ARGS]`` and ``-m MODULE`` run a program so; ``install()`` does it from within.
Processes that such a program starts inherit it, workers of multiprocessing among them; after ``install()`` they
do not, after ``install(children=True)`` they do.
"""

from .finder import install as install
from .paths import API_VERSION as API_VERSION
from .paths import PATHS as PATHS
