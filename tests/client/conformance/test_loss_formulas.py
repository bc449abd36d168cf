"""Tests of the formulas of losses: they are those that the embedded server trains with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinkerwire._conformance.checks import loss_formulas
from tinkerwire._server.engine.losses import get_loss

P = np.array([-0.5, -1.5, -3.0, -0.1, -2.0, -2.5])
Q = np.array([-1.0, -1.2, -3.0, -0.9, -1.0, -2.4])
ADVANTAGES = np.array([1.0, -2.0, 0.5, -1.0, 2.0, 0.0])
LOW, HIGH, BETA = 0.7, 1.4, 0.3


def sum_of_server(name: str, p: np.ndarray, config: dict[str, float], **inputs: np.ndarray) -> float:
    """Return the loss that the embedded server computes."""
    columns = {key: value.reshape(-1, 1) for key, value in inputs.items()}
    columns |= {key: np.full((len(p), 1), value) for key, value in config.items()}
    return float(get_loss(name).function(p.reshape(-1, 1), columns, config).values.sum())


@pytest.mark.parametrize(
    ("name", "config", "formula"),
    [
        ("importance_sampling", {}, loss_formulas.importance_sampling),
        ("ppo", {"clip_low_threshold": LOW, "clip_high_threshold": HIGH}, loss_formulas.ppo),
        ("cispo", {"clip_low_threshold": LOW, "clip_high_threshold": HIGH}, loss_formulas.cispo),
        ("dro", {"beta": BETA}, loss_formulas.dro),
    ],
)
def test_policy_losses_equal_those_of_the_server(
    name: str, config: dict[str, float], formula: Callable[..., float]
) -> None:
    """Each loss of reinforcement learning has the value of the embedded server, with settings of its own."""
    expected = sum_of_server(name, P, config, logprobs=Q, advantages=ADVANTAGES)
    value = formula(P.tolist(), Q.tolist(), ADVANTAGES.tolist(), *config.values())
    assert value == pytest.approx(expected)


def test_cross_entropy_equals_that_of_the_server() -> None:
    """cross_entropy has the value of the embedded server."""
    weights = np.array([1.0, 0.0, 0.5, 2.0, -1.0, 3.0])
    expected = sum_of_server("cross_entropy", P, {}, weights=weights)
    assert loss_formulas.cross_entropy(P.tolist(), weights.tolist()) == pytest.approx(expected)


def test_default_thresholds_are_those_of_the_server() -> None:
    """The thresholds of ppo and cispo are 0.8 and 1.2 by default, as on the embedded server."""
    defaults = {
        "clip_low_threshold": loss_formulas.DEFAULT_CLIP_LOW,
        "clip_high_threshold": loss_formulas.DEFAULT_CLIP_HIGH,
    }
    assert get_loss("ppo").config == defaults == get_loss("cispo").config


def test_losses_differ_clearly_on_the_data_of_the_requirements() -> None:
    """The losses of the requirements' ratios and advantages differ by more than servers may round."""
    from tinkerwire._conformance.areas.losses.policy import BETA, CLIP  # noqa: PLC0415
    from tinkerwire._conformance.areas.losses.policy_loss import ADVANTAGES, GAPS  # noqa: PLC0415
    from tinkerwire._conformance.checks.training_effect import RELATIVE  # noqa: PLC0415

    p = [-5.0] * len(GAPS)
    q = [value - gap for value, gap in zip(p, GAPS, strict=True)]
    values = [
        loss_formulas.importance_sampling(p, q, ADVANTAGES),
        -sum(ADVANTAGES),
        loss_formulas.ppo(p, q, ADVANTAGES),
        loss_formulas.ppo(p, q, ADVANTAGES, *CLIP.values()),
        loss_formulas.cispo(p, q, ADVANTAGES),
        loss_formulas.cispo(p, q, ADVANTAGES, *CLIP.values()),
        loss_formulas.dro(p, q, ADVANTAGES, BETA),
        loss_formulas.dro(p, q, ADVANTAGES, 0.05),
    ]
    for index, value in enumerate(values):
        for other in values[index + 1 :]:
            assert abs(value - other) > 3 * RELATIVE * max(abs(value), abs(other), 1.0), values
