"""Causal attention with rotary positions, and its exact gradient.

Shapes: B sequences, T positions, H heads, D dimensions per head; S keys, S > T with a cache of earlier positions.
"""

from __future__ import annotations

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray

ROTARY_BASE = 10_000.0


def rotary_angles(start: int, stop: int, d_head: int, dtype: np.dtype[np.floating]) -> FloatArray:
    """Return cosines and sines of positions start..stop-1, shape (2, T, 1, D/2)."""
    frequencies = ROTARY_BASE ** (-np.arange(0, d_head, 2) / d_head)
    angles = np.arange(start, stop)[:, None, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)]).astype(dtype)


def rotate(x: FloatArray, angles: FloatArray, *, back: bool = False) -> FloatArray:
    """Rotate each pair (i, i + D/2) of x, shape (B, T, H, D), by the angle of its position.

    The gradient of a rotation is the inverse rotation, so the backward pass uses this function as well.

    Args:
        x: the array.
        angles: result of `rotary_angles`.
        back: rotate in the opposite direction.
    """
    cos, sin = angles[0], -angles[1] if back else angles[1]
    half = x.shape[-1] // 2
    first_half, second_half = x[..., :half], x[..., half:]
    out = np.empty_like(x)
    np.multiply(first_half, cos, out=out[..., :half])
    out[..., :half] -= second_half * sin
    np.multiply(second_half, cos, out=out[..., half:])
    out[..., half:] += first_half * sin
    return out


@attrs.frozen
class AttentionTape:
    """Values that the gradient needs: q, k, v as (B, H, T, D) and the probabilities (B, H, T, T)."""

    q: FloatArray
    k: FloatArray
    v: FloatArray
    probs: FloatArray


def attend(q: FloatArray, k: FloatArray, v: FloatArray) -> tuple[FloatArray, AttentionTape]:
    """Mix values by softmax(q k / sqrt(D)); each query attends to keys up to its own position.

    q is (B, H, T, D); k and v are (B, H, S, D), and their last T positions are those of the queries.
    The result is (B, H, T, D).
    """
    t, s = q.shape[2], k.shape[2]
    scores = q @ k.swapaxes(2, 3)
    scores *= q.shape[3] ** -0.5
    if t > 1:
        future = np.triu(np.full((t, s), -np.inf, dtype=q.dtype), k=s - t + 1)
        scores += future
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ v, AttentionTape(q, k, v, scores)


def attend_backward(tape: AttentionTape, d_out: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the gradients of q, k and v from the gradient of the result; all shapes are (B, H, T, D)."""
    d_v = tape.probs.swapaxes(2, 3) @ d_out
    d_probs = d_out @ tape.v.swapaxes(2, 3)
    d_probs *= tape.probs
    d_scores = d_probs - tape.probs * d_probs.sum(axis=-1, keepdims=True)
    d_scores *= tape.q.shape[3] ** -0.5
    return d_scores @ tape.k, d_scores.swapaxes(2, 3) @ tape.q, d_v
