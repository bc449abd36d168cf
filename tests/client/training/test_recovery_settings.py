"""Tests of the settings of a recovery."""

from __future__ import annotations

from typing import Any

import pytest

import tinkerwire as tw


@pytest.mark.parametrize(
    ("settings", "error", "problem"),
    [
        ({"every": 0}, ValueError, "Recovery.every must be at least 1, got 0"),
        ({"keep": -1}, ValueError, "Recovery.keep must be at least 1, got -1"),
        ({"every": 1.5}, TypeError, "every"),
        ({"replay": 1}, TypeError, "replay"),
        ({"on_recovery": "x"}, TypeError, "on_recovery: expected a function of a RecoveryReport, got str"),
    ],
)
def test_wrong_settings_are_rejected(settings: dict[str, Any], error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        tw.Recovery(**settings)


def test_other_values_of_recover_are_rejected() -> None:
    with tw.ServiceClient(base_url="local") as service, pytest.raises(TypeError, match="recover: expected Recovery"):
        service.create_lora_training_client("tinkerwire/byte-nano", recover=True)  # type: ignore[arg-type]
