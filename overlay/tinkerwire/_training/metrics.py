"""Metrics in results: numbers, and numbers as text."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

log = logging.getLogger("tinkerwire")
Warn = Callable[[str, str], None]
"""Receives the name of a metric and the problem."""
INTEGER = re.compile(r"\s*[+-]?[0-9]{1,300}\s*")
MAX_NAMES = 1000


class MetricWarnings:
    """Warnings about metrics, at most one per name."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def warn(self, name: str, text: str) -> None:
        """Log a warning about a metric once; after MAX_NAMES names, log nothing."""
        if name not in self._names and len(self._names) < MAX_NAMES:
            self._names.add(name)
            log.warning("metric %r: %s", name, text)


def read_metrics(metrics: Mapping[str, object], warn: Warn) -> dict[str, float]:
    """Return the metrics that are numbers or numbers as text; warn about others, and drop them."""
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        number = _number(value)
        if number is None:
            warn(name, f"expected a number, got {value!r:.100}; the client drops it")
        else:
            numbers[name] = number
    return numbers


def _number(value: object) -> float | None:
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or "_" in value:
        return None
    try:
        # An int keeps all digits of a hash, a float keeps 53 bits.
        return int(value) if INTEGER.fullmatch(value) else float(value)
    except ValueError:
        return None
