"""Tools of training loops: the gap between sampling and training, and regularizers of custom losses."""

from __future__ import annotations

from ._losses.comparison import LogprobComparison, compare_logprobs
from ._losses.consistency import consistency
from ._losses.gradient_penalty import gradient_penalty
from ._losses.regularizers import elastic_net_penalty, entropy, kl_penalty, l1_penalty, l2_penalty
from ._losses.term import LossTerm

__all__ = [
    "LogprobComparison",
    "LossTerm",
    "compare_logprobs",
    "consistency",
    "elastic_net_penalty",
    "entropy",
    "gradient_penalty",
    "kl_penalty",
    "l1_penalty",
    "l2_penalty",
]
