"""Models and examples that the engine's tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tinkerwire._server.engine import Example, LoraModel, LoraSettings, base_model

NANO = "tinkerwire/byte-nano"

MakeExamples = Callable[..., list[Example]]
MakeModel = Callable[..., LoraModel]

COLUMNS = {
    "cross_entropy": ("weights",),
    "importance_sampling": ("logprobs", "advantages"),
    "ppo": ("logprobs", "advantages", "clip_low_threshold", "clip_high_threshold"),
    "cispo": ("logprobs", "advantages", "clip_low_threshold", "clip_high_threshold"),
    "dro": ("logprobs", "advantages"),
}


@pytest.fixture
def make_model() -> MakeModel:
    """Create a nano model whose adapter is away from zero, so that every gradient is nonzero."""

    def make(*, dtype: type = np.float64, seed: int = 7, moved: bool = True, **settings: object) -> LoraModel:
        model = LoraModel(base_model(NANO, dtype), LoraSettings(**{"rank": 3, "seed": seed, **settings}))
        if moved:
            rng = np.random.default_rng(seed)
            arrays = model.state_arrays()
            for name in model.params:
                arrays[name] = (arrays[name] + 0.05 * rng.standard_normal(arrays[name].shape)).astype(dtype)
            model.load_arrays(arrays, optimizer=False)
        return model

    return make


@pytest.fixture
def make_examples() -> MakeExamples:
    """Create random examples of the given lengths with the inputs of the loss."""

    def make(loss_fn: str, lengths: Sequence[int] = (5, 2, 9), seed: int = 3) -> list[Example]:
        rng = np.random.default_rng(seed)
        return [_make_example(rng, COLUMNS[loss_fn], length) for length in lengths]

    return make


def _make_example(rng: np.random.Generator, columns: Sequence[str], length: int) -> Example:
    draws = {
        "weights": rng.uniform(0, 2, length),
        "logprobs": rng.normal(-5.5, 0.5, length),
        "advantages": rng.standard_normal(length),
        "clip_low_threshold": rng.uniform(0.2, 0.9, length),
        "clip_high_threshold": rng.uniform(1.1, 1.8, length),
    }
    inputs = {"target_tokens": rng.integers(0, 257, length), **{key: draws[key] for key in columns}}
    return Example(rng.integers(0, 257, length), inputs)
