"""Rules that choose tokens from log probabilities."""

from __future__ import annotations

import math

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray
from tinkerwire._server.engine.errors import EngineError


@attrs.frozen(kw_only=True)
class SamplingRule:
    """A rule that chooses tokens from log probabilities.

    Args:
        temperature: divisor of the logits; 0 chooses the likeliest token.
        top_k: number of likeliest tokens to draw from; -1 for all.
        top_p: draw from the smallest set of likeliest tokens with this total probability; 1 for all.
    """

    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0

    def check(self) -> None:
        """Check the range of all settings.

        Raises:
            EngineError: a setting is out of range.
        """
        if not 0.0 <= self.temperature < math.inf:
            raise EngineError(
                f"sample: temperature must be finite and at least 0 (0 for greedy sampling), got {self.temperature}"
            )
        if self.top_k != -1 and self.top_k < 1:
            raise EngineError(f"sample: top_k must be at least 1, or -1 for no limit, got {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise EngineError(f"sample: top_p must be above 0 and at most 1 (1 for no limit), got {self.top_p}")

    def choose(self, logprobs: FloatArray, draws: FloatArray) -> IntArray:
        """Choose one token per row.

        Args:
            logprobs: log probabilities of the model, (rows, vocabulary).
            draws: uniform numbers from [0, 1), (rows,).
        """
        if self.temperature == 0.0:
            best: IntArray = logprobs.argmax(axis=-1)
            return best
        order = np.argsort(-logprobs, axis=-1, kind="stable")
        ordered = np.take_along_axis(logprobs, order, axis=-1).astype(np.float64)
        # Relative to the likeliest, so that a small temperature cannot overflow.
        weights = np.exp((ordered - ordered[:, :1]) / self.temperature)
        if self.top_k != -1:
            weights[:, self.top_k :] = 0.0
        weights /= weights.sum(axis=-1, keepdims=True)
        if self.top_p < 1.0:
            weights[weights.cumsum(axis=-1) - weights >= self.top_p] = 0.0
        cumulative = weights.cumsum(axis=-1)
        rank = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=-1)
        rank = np.minimum(rank, (weights > 0.0).sum(axis=-1) - 1)
        tokens: IntArray = np.take_along_axis(order, rank[:, None], axis=-1)[:, 0]
        return tokens


def find_likeliest(logprobs: FloatArray, count: int) -> list[list[tuple[int, float]]]:
    """Return the likeliest (token, logprob) pairs of each row, best first."""
    order = np.argsort(-logprobs, axis=-1, kind="stable")[:, :count]
    best = np.take_along_axis(logprobs, order, axis=-1)
    rows = zip(order.tolist(), best.tolist(), strict=True)
    return [list(zip(ids, values, strict=True)) for ids, values in rows]
