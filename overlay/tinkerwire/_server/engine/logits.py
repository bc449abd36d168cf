"""Log probabilities from logits, for training and sampling."""

from __future__ import annotations

import numpy as np

from tinkerwire._server.engine.arrays import FloatArray


def log_softmax(logits: FloatArray) -> FloatArray:
    """Return log probabilities (nats) over the last axis; overwrites its argument."""
    logits -= logits.max(axis=-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logits
