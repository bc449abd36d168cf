"""The key-value cache: decoding computes each position once."""

from __future__ import annotations

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

    def advance(self, positions: int) -> None:
        """Increase the length by positions that every layer has added."""
        self.length += positions

    def select(self, rows: IntArray) -> KeyValueCache:
        """Return a cache with the given rows of this one; rows may repeat."""
        return KeyValueCache(self.length, [buffer[:, rows] for buffer in self._layers])

    def _grow(self, buffer: FloatArray, capacity: int) -> FloatArray:
        grown = np.empty((*buffer.shape[:3], capacity, buffer.shape[4]), buffer.dtype)
        grown[:, :, :, : self.length] = buffer[:, :, :, : self.length]
        return grown
