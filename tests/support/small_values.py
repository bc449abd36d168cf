"""Small values of all kinds, to try schemas by brute force."""

from __future__ import annotations

import itertools
from typing import Any

NAMES = ("a", "b", "xc")
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 4, 6, -1, 1.5, "", "a", "b", "ab", "xa", "a1"]


def list_values() -> list[Any]:
    """List small values of all kinds, by brute force."""
    items = [None, 0, 1, 2, 1.5, "", "a", "xa", True]
    arrays: list[Any] = [[], *([item] for item in items), *map(list, itertools.product([0, 1, 2, "a", None], repeat=2))]
    arrays += [[0, 0, 0], [1, 2, 3], ["a", "b", "ab"], [[], []], [[0], ["a"]], [{}], [{"a": 0}], [{"a": "a"}, {}]]
    objects: list[Any] = [{}]
    for size in (1, 2, 3):
        for names in itertools.combinations((*NAMES, "d"), size):
            pool = items if size == 1 else [0, 1, 2, "a"] if size == 2 else [1, "a"]
            objects += [dict(zip(names, values, strict=True)) for values in itertools.product(pool, repeat=size)]
    nested = [
        {name: value} for name in ("a", "xc", "d") for value in [[], [0], [1, 1], ["a"], {}, {"a": 0}, {"b": "a"}]
    ]
    return [*SCALARS, *arrays, *objects, *nested]


VALUES = list_values()
