"""Values of a hypothesis strategy in one batch, for an oracle that takes batches."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


def examples(strategy: st.SearchStrategy[Any], number: int) -> list[Any]:
    """Return values that hypothesis draws, the same in every run; fewer if the strategy has fewer."""
    values: list[Any] = []

    @settings(
        max_examples=number,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values
