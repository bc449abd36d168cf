"""The mark of the pytest plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def read_settings(marks: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the arguments of LocalServer that marks of a test set; of several marks, the closest one wins.

    Args:
        marks: positional and keyword arguments of each ``pytest.mark.tinker``, closest first.

    Raises:
        ValueError: a mark has a positional or an unknown argument.
    """
    settings: dict[str, Any] = {}
    for positional, named in marks:
        unknown = sorted(named.keys() - {"wire", "quirks", "models", "seed"})
        if positional or unknown:
            shown = ", ".join([*map(repr, positional), *unknown])
            raise ValueError(f"pytest.mark.tinker: expected wire=, quirks=, models= and seed=, got {shown}")
        settings = {**named, **settings}
    return settings
