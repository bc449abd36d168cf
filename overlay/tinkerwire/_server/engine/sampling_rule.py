"""Which token comes next: temperature, top-k, top-p and a draw."""

from __future__ import annotations

import math

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray
from tinkerwire._server.engine.errors import EngineError

__all__ = ["SamplingRule"]


@attrs.frozen(kw_only=True)
class SamplingRule:
    """How to turn log probabilities into a token.

    Args:
        temperature: logits are divided by it; 0 takes the likeliest token.
        top_k: draw from that many likeliest tokens; -1: all.
        top_p: draw from the fewest likeliest tokens that hold this part of the probability; 1: all.
    """

    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0

    def check(self) -> None:
        """Raise EngineError unless all numbers are in range."""
        if not 0.0 <= self.temperature < math.inf:
            raise EngineError(
                f"sample: temperature is {self.temperature}; pass a finite number of 0 or more, 0 for greedy"
            )
        if self.top_k != -1 and self.top_k < 1:
            raise EngineError(f"sample: top_k is {self.top_k}; pass 1 or more, or -1 for no limit")
        if not 0.0 < self.top_p <= 1.0:
            raise EngineError(f"sample: top_p is {self.top_p}; pass a number above 0 up to 1, 1 for no limit")

    def choose(self, logprobs: FloatArray, draws: FloatArray) -> IntArray:
        """One token a row.

        Args:
            logprobs: (rows, vocabulary), of the plain model distribution.
            draws: (rows,) uniform numbers from 0 up to but not 1.
        """
        if self.temperature == 0.0:
            best: IntArray = logprobs.argmax(axis=-1)
            return best
        order = np.argsort(-logprobs, axis=-1, kind="stable")
        kept = np.take_along_axis(logprobs, order, axis=-1).astype(np.float64)
        # Relative to the best, so that a tiny temperature underflows the others and overflows nothing.
        weights = np.exp((kept - kept[:, :1]) / self.temperature)
        if self.top_k != -1:
            weights[:, self.top_k :] = 0.0
        weights /= weights.sum(axis=-1, keepdims=True)
        if self.top_p < 1.0:
            weights[weights.cumsum(axis=-1) - weights >= self.top_p] = 0.0
        reached = weights.cumsum(axis=-1)
        rank = (reached <= draws[:, None] * reached[:, -1:]).sum(axis=-1)
        rank = np.minimum(rank, (weights > 0.0).sum(axis=-1) - 1)
        tokens: IntArray = np.take_along_axis(order, rank[:, None], axis=-1)[:, 0]
        return tokens
