"""Batches and terms of custom losses, for tests in numpy and in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tinkerwire as tw
from tinkerwire.training import (
    LossTerm,
    consistency,
    elastic_net_penalty,
    entropy,
    gradient_penalty,
    kl_penalty,
    l1_penalty,
    l2_penalty,
)

SHAPES = ((3,), (3,), (2, 2), (4,))
"""Shapes of the target tokens of the batch."""
REFERENCES = [np.random.default_rng(1).normal(-1.5, 0.5, shape) for shape in SHAPES]
TERMS: dict[str, Callable[[], LossTerm]] = {
    **{
        f"kl_{direction}_{estimator}": lambda direction=direction, estimator=estimator: kl_penalty(  # type: ignore[misc]
            direction=direction, estimator=estimator
        )
        for direction in ("forward", "reverse")
        for estimator in ("k1", "k2", "k3")
    },
    "kl of given logprobs": lambda: kl_penalty(REFERENCES, estimator="k3"),
    "mean kl": lambda: kl_penalty(estimator="k3", reduction="mean"),
    "unmasked kl": lambda: kl_penalty(estimator="k3", mask="ones"),
    "entropy k1": lambda: entropy("k1"),
    "entropy k2": lambda: entropy("k2"),
    "entropy plogp": lambda: entropy("plogp", reduction="mean"),
    "l1": l1_penalty,
    "l2": l2_penalty,
    "elastic net": lambda: elastic_net_penalty(l1_ratio=0.3, reduction="mean"),
    "consistency": lambda: consistency([(0, 1), (1, 3)]),
    "mean l1 consistency": lambda: consistency([(0, 1), (2, 3), (0, 3)], distance="l1", reduction="mean"),
    "gradient penalty": lambda: gradient_penalty(kl_penalty(estimator="k3")),
    "gradient penalty with target": lambda: gradient_penalty(entropy("plogp") + 0.5 * l2_penalty(), target=0.4),
    "gradient penalty of pairs": lambda: gradient_penalty(2 * consistency([(0, 1)]) - kl_penalty(), target=1.0),
    "sum": lambda: 0.5 * kl_penalty(estimator="k3") - 0.1 * entropy("k2") + l1_penalty() / 3,
}


def make_batch() -> list[tw.Datum]:
    """Return datums whose masks let two positions count in each, the last with half its weight."""
    data = []
    for shape, reference in zip(SHAPES, REFERENCES, strict=True):
        mask = np.zeros(shape, np.float32)
        mask.reshape(-1)[[-2, -1]] = [1.0, 0.5]
        inputs: dict[str, Any] = {
            "target_tokens": np.ones(shape, np.int64),
            "reference_logprobs": reference.astype(np.float32),
            "mask": mask,
            "ones": np.ones(shape, np.float32),
        }
        tokens = list(range(shape[0]))
        data.append(tw.Datum(model_input=tw.ModelInput.from_ints(tokens), loss_fn_inputs=inputs))
    return data


def make_logprobs() -> list[np.ndarray[Any, Any]]:
    """Return log probabilities for the batch."""
    rng = np.random.default_rng(2)
    return [rng.normal(-1.5, 0.5, shape) for shape in SHAPES]
