"""Steps of programs with the official SDK, by the feature that they use."""

from __future__ import annotations

from ..requirement import Feature
from .management_steps import MANAGE_STEPS
from .sampling_steps import SAMPLE_STEPS
from .saving_steps import SAVE_STEPS
from .step import Step
from .training_steps import TRAIN_STEPS

STEPS: dict[Feature, tuple[Step, ...]] = {
    Feature.TRAIN: TRAIN_STEPS,
    Feature.SAMPLE: SAMPLE_STEPS,
    Feature.SAVE: SAVE_STEPS,
    Feature.MANAGE: MANAGE_STEPS,
}
"""Steps by feature, in the order of the test."""
