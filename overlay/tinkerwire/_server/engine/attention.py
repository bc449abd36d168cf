"""Attention with rotary positions, and the cache of keys and values.

Shapes: B sequences, T positions, H heads, D = d_head.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray

FIRST_CAPACITY = 64


@attrs.define
class KeyValueCache:
    """One buffer of shape (2, B, H, capacity, D) per layer; the first `length` positions are filled."""

    length: int = 0
    _layers: list[FloatArray] = attrs.field(factory=list)

    def extend(self, layer: int, k: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add new positions to a layer, (B, H, T, D) each, and return all its keys and values."""
        end = self.length + k.shape[2]
        if layer == len(self._layers):
            self._layers.append(np.empty((2, *k.shape[:2], max(FIRST_CAPACITY, end), k.shape[3]), k.dtype))
        if end > self._layers[layer].shape[3]:
            self._layers[layer] = self._grow(self._layers[layer], 2 * end)
        buffer = self._layers[layer]
        buffer[0, :, :, self.length : end] = k
        buffer[1, :, :, self.length : end] = v
        return buffer[0, :, :, :end], buffer[1, :, :, :end]

    @property
    def rows(self) -> int:
        """Number of sequences."""
        return len(self._layers[0][0])

    def advance(self, positions: int) -> None:
        """Increase the length by positions that every layer has added."""
        self.length += positions

    def select(self, rows: IntArray) -> KeyValueCache:
        """Return a cache with the given rows of this one; rows may repeat."""
        return KeyValueCache(self.length, [buffer[:, rows] for buffer in self._layers])

    @classmethod
    def join(cls, caches: Sequence[KeyValueCache]) -> KeyValueCache:
        """Return a cache with the rows of several caches of the same length."""
        if len(caches) == 1:
            return caches[0]
        buffers = zip(*(cache._layers for cache in caches), strict=True)
        return cls(caches[0].length, [np.concatenate(layer, axis=1) for layer in buffers])

    def _grow(self, buffer: FloatArray, capacity: int) -> FloatArray:
        grown = np.empty((*buffer.shape[:3], capacity, buffer.shape[4]), buffer.dtype)
        grown[:, :, :, : self.length] = buffer[:, :, :, : self.length]
        return grown


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
