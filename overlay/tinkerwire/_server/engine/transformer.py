"""A pre-norm decoder over plain weight matrices: run_forward and exact backward.

It is independent of LoRA: adapters are merged into the matrices before a pass, and their gradients are computed from
the gradients of the merged matrices. Shapes: B sequences, T positions, C = d_model, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray
from tinkerwire._server.engine.config import ModelConfig

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


Weights = Mapping[str, FloatArray]

NORM_EPS = 1e-5


@attrs.frozen
class LayerTape:
    """Values that the gradient of a layer needs; arrays are (B, T, C) or (B, T, d_ff), scales (B, T, 1)."""

    attn_in: FloatArray
    attn_scale: FloatArray
    attention: AttentionTape
    mixed: FloatArray
    mlp_in: FloatArray
    mlp_scale: FloatArray
    gate: FloatArray
    activated: FloatArray


@attrs.frozen
class Tape:
    """Values that the gradient of a pass needs."""

    layers: list[LayerTape]
    hidden: FloatArray
    scale: FloatArray
    angles: FloatArray


def _normalise(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x divided by its root mean square over the last axis, and the factor."""
    scale = 1.0 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + NORM_EPS)
    return x * scale, scale


def _normalise_backward(d_y: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
    d_x: FloatArray = d_y - y * (d_y * y).mean(axis=-1, keepdims=True)
    d_x *= scale
    return d_x


def _multiply(x: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return x @ matrix, computed as one product; numpy would compute one per sequence."""
    product: FloatArray = x.reshape(-1, x.shape[-1]) @ matrix
    return product.reshape(*x.shape[:-1], -1)


def _split_heads(x: FloatArray, n_heads: int) -> FloatArray:
    """Reshape (B, T, C) to (B, T, H, D) without a copy."""
    return x.reshape(*x.shape[:2], n_heads, -1)


def _join_heads(x: FloatArray) -> FloatArray:
    """Reshape (B, H, T, D) to (B, T, C)."""
    moved = x.swapaxes(1, 2)
    joined: FloatArray = moved.reshape(*moved.shape[:2], -1)
    return joined


def run_forward(
    config: ModelConfig,
    weights: Weights,
    tokens: IntArray,
    cache: KeyValueCache | None = None,
    *,
    keep: bool = False,
) -> tuple[FloatArray, Tape]:
    """Return the normalised last hidden state (B, T, C), and the tape for `backward`.

    Args:
        config: config of the base model.
        weights: merged weights.
        tokens: token ids, (B, T).
        cache: earlier positions of these sequences; the new positions are appended.
        keep: record the layers on the tape, as `backward` requires.
    """
    start = cache.length if cache else 0
    x = weights["embedding"][tokens]
    angles = rotary_angles(start, start + tokens.shape[1], config.d_head, x.dtype)
    tapes = []
    for layer in range(config.n_layers):
        x, tape = _layer_forward(config, weights, layer, x, angles, cache)
        if keep:
            tapes.append(tape)
    if cache is not None:
        cache.advance(tokens.shape[1])
    hidden, scale = _normalise(x)
    return hidden, Tape(tapes, hidden, scale, angles)


def _layer_forward(
    config: ModelConfig,
    weights: Weights,
    layer: int,
    x: FloatArray,
    angles: FloatArray,
    cache: KeyValueCache | None,
) -> tuple[FloatArray, LayerTape]:
    at = f"layers.{layer}."
    attn_in, attn_scale = _normalise(x)
    q, k, v = (_split_heads(_multiply(attn_in, weights[f"{at}attn.{part}"]), config.n_heads) for part in "qkv")
    q, k, v = rotate(q, angles).swapaxes(1, 2), rotate(k, angles).swapaxes(1, 2), v.swapaxes(1, 2)
    if cache is not None:
        k, v = cache.extend(layer, k, v)
    mixed_heads, attention = attend(q, k, v)
    mixed = _join_heads(mixed_heads)
    x = x + _multiply(mixed, weights[f"{at}attn.o"])
    mlp_in, mlp_scale = _normalise(x)
    gate = np.maximum(_multiply(mlp_in, weights[f"{at}mlp.up"]), 0)
    activated = gate * gate
    x = x + _multiply(activated, weights[f"{at}mlp.down"])
    return x, LayerTape(attn_in, attn_scale, attention, mixed, mlp_in, mlp_scale, gate, activated)


def backward(
    config: ModelConfig, weights: Weights, tape: Tape, d_hidden: FloatArray, trained: Collection[str]
) -> dict[str, FloatArray]:
    """Return gradients of layer matrices from the gradient of the hidden state (B, T, C).

    The unembedding is not part of this pass, and the embedding is never trained.

    Args:
        config: config of the base model.
        weights: merged weights.
        tape: tape of `run_forward`.
        d_hidden: gradient of the hidden state.
        trained: names of the matrices to compute gradients of.
    """
    grads: dict[str, FloatArray] = {}
    if not any(name.startswith("layers.") for name in trained):
        return grads
    d_x = _normalise_backward(d_hidden, tape.hidden, tape.scale)
    for layer in reversed(range(config.n_layers)):
        d_x = _mlp_backward(weights, layer, tape.layers[layer], d_x, grads, trained)
        d_x = _attention_backward(weights, layer, tape, d_x, grads, trained)
    return grads


def _matrix_backward(
    name: str,
    weights: Weights,
    x: FloatArray,
    d_y: FloatArray,
    grads: dict[str, FloatArray],
    trained: Collection[str],
) -> FloatArray:
    """Return the gradient of x for y = x @ weights[name]; add that of the matrix to grads if it is trained."""
    if name in trained:
        grads[name] = x.reshape(-1, x.shape[-1]).T @ d_y.reshape(-1, d_y.shape[-1])
    return _multiply(d_y, weights[name].T)


def _mlp_backward(
    weights: Weights,
    layer: int,
    tape: LayerTape,
    d_x: FloatArray,
    grads: dict[str, FloatArray],
    trained: Collection[str],
) -> FloatArray:
    at = f"layers.{layer}.mlp."
    d_gate = _matrix_backward(f"{at}down", weights, tape.activated, d_x, grads, trained)
    d_gate *= tape.gate
    d_gate *= 2.0
    d_in = _matrix_backward(f"{at}up", weights, tape.mlp_in, d_gate, grads, trained)
    return d_x + _normalise_backward(d_in, tape.mlp_in, tape.mlp_scale)


def _attention_backward(
    weights: Weights,
    layer: int,
    tape: Tape,
    d_x: FloatArray,
    grads: dict[str, FloatArray],
    trained: Collection[str],
) -> FloatArray:
    at, layer_tape = f"layers.{layer}.attn.", tape.layers[layer]
    d_mixed = _matrix_backward(f"{at}o", weights, layer_tape.mixed, d_x, grads, trained)
    d_heads = d_mixed.reshape(*d_mixed.shape[:2], layer_tape.attention.q.shape[1], -1).swapaxes(1, 2)
    d_q, d_k, d_v = attend_backward(layer_tape.attention, d_heads)
    d_parts = {
        "q": rotate(d_q.swapaxes(1, 2), tape.angles, back=True),
        "k": rotate(d_k.swapaxes(1, 2), tape.angles, back=True),
        "v": d_v.swapaxes(1, 2),
    }
    d_in = np.zeros_like(layer_tape.attn_in)
    for part, d_part in d_parts.items():
        flat = d_part.reshape(d_x.shape)
        d_in += _matrix_backward(at + part, weights, layer_tape.attn_in, flat, grads, trained)
    return d_x + _normalise_backward(d_in, layer_tape.attn_in, layer_tape.attn_scale)
