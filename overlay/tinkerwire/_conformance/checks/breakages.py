"""Breakages of the official SDK that requirements of several areas cause."""

from __future__ import annotations

from ..requirement import Breakage, Feature

WRONG_NUMBERS = Breakage("0.3.0", None, Feature.TRAIN, "trains with wrong numbers, without an error")
WRONG_SAMPLES = Breakage("0.3.0", None, Feature.SAMPLE, "gets samples of another distribution, without an error")
UNREJECTED_BATCH = Breakage(
    "0.3.0", None, Feature.TRAIN, "trains with wrong numbers, or repeats a bad batch for minutes, in place of an error"
)


def cannot_manage(effect: str, oldest: str = "0.3.0", newest: str | None = None) -> Breakage:
    """Return the breakage of a list or description, or of a change of checkpoints."""
    return Breakage(oldest, newest, Feature.MANAGE, effect)
