"""Names of the official SDK 0.38.0 that stand for nothing here yet: they can be imported and named in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

MISSING: Mapping[str, str] = {
    "LossHandle": "a loss of one's own that the server computes",
    "PerDatumLossFn": "the function of such a loss",
    "RequestOptions": "settings of one HTTP request",
    "Timeout": "time-outs of HTTP by phase; RetryConfig has the deadlines of operations",
}
"""Each name with what it is, and what to use instead where there is something."""

_made: dict[str, type] = {}


def stand_in(name: str) -> type:
    """The class that stands in for a missing name: using it raises NotImplementedError."""
    if name not in _made:
        _made[name] = _Missing(name, (), {"__doc__": f"Not there yet: {MISSING[name]}.", "__module__": "tinkerwire"})
    return _made[name]


class _Missing(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(cls.__name__)

    def __getattr__(cls, name: str) -> NoReturn:
        # Python itself asks for names with underscores, and takes AttributeError for no.
        if name.startswith("_"):
            raise AttributeError(name)
        _refuse(f"{cls.__name__}.{name}")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"tinkerwire has no {name} yet: {MISSING[name.partition('.')[0]]}")
