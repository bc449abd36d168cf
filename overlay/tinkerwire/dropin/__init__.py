"""``import tinker`` imports tinkerwire, for unchanged code of the official SDK.

``python -m tinkerwire.dropin SCRIPT [ARGS]`` and ``-m MODULE`` run a program with the drop-in; ``install()`` installs
it in a running program. Child processes of such a program inherit it, workers of multiprocessing included; after
``install()`` only with ``install(children=True)``.
"""

from .finder import install as install
from .paths import API_VERSION as API_VERSION
from .paths import PATHS as PATHS
