"""Many values of a hypothesis strategy at once, for a judge that takes them in one batch."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


def examples(strategy: st.SearchStrategy[Any], number: int) -> list[Any]:
    """Values that hypothesis draws, the same on every run; it stops early where there are no more."""
    found: list[Any] = []

    @settings(
        max_examples=number,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found
