"""``import tinker`` gives tinkerwire: for code written for the official SDK, as it is.

``python -m tinkerwire.dropin SCRIPT [ARGS]`` and ``-m MODULE`` run a program so; ``install()`` does it from within.
Processes that the program starts are on their own: they need ``install()`` before their first ``import tinker``, for
example in a ``sitecustomize.py`` on their PYTHONPATH.
"""

from .finder import install as install
from .paths import API_VERSION as API_VERSION
from .paths import PATHS as PATHS
