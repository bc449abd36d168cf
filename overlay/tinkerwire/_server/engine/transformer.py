"""A pre-norm decoder over plain weight matrices: forward and exact backward.

It knows nothing of LoRA: adapters are merged into the matrices before, and take their gradients from
the gradients of the merged matrices after. Shapes: B sequences, T positions, C = d_model, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray
from tinkerwire._server.engine.attention import AttentionTape, attend, attend_backward, rotary_angles, rotate
from tinkerwire._server.engine.cache import KeyValueCache
from tinkerwire._server.engine.config import ModelConfig

__all__ = ["Tape", "Weights", "backward", "forward"]

Weights = Mapping[str, FloatArray]

NORM_EPS = 1e-5


@attrs.frozen
class LayerTape:
    """What one layer's gradient needs; arrays are (B, T, C) or (B, T, d_ff), scales (B, T, 1)."""

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
    """What the gradient of a whole pass needs."""

    layers: list[LayerTape]
    hidden: FloatArray
    scale: FloatArray
    angles: FloatArray


def _normalise(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x divided by its root mean square over the last axis, and the factor used."""
    scale = 1.0 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + NORM_EPS)
    return x * scale, scale


def _normalise_backward(d_y: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
    d_x: FloatArray = d_y - y * (d_y * y).mean(axis=-1, keepdims=True)
    d_x *= scale
    return d_x


def _times(x: FloatArray, matrix: FloatArray) -> FloatArray:
    """x @ matrix as one product of two matrices, where numpy would do one a sequence."""
    product: FloatArray = x.reshape(-1, x.shape[-1]) @ matrix
    return product.reshape(*x.shape[:-1], -1)


def _split_heads(x: FloatArray, n_heads: int) -> FloatArray:
    """(B, T, C) to (B, T, H, D), without a copy."""
    return x.reshape(*x.shape[:2], n_heads, -1)


def _join_heads(x: FloatArray) -> FloatArray:
    """(B, H, T, D) to (B, T, C)."""
    moved = x.swapaxes(1, 2)
    joined: FloatArray = moved.reshape(*moved.shape[:2], -1)
    return joined


def forward(
    config: ModelConfig,
    weights: Weights,
    tokens: IntArray,
    cache: KeyValueCache | None = None,
    *,
    keep: bool = False,
) -> tuple[FloatArray, Tape]:
    """The normalised last hidden state (B, T, C) of tokens (B, T), and the tape for `backward`.

    Args:
        cache: the past of these sequences; the new positions are appended to it.
        keep: record the layers on the tape, which `backward` needs.
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
    q, k, v = (_split_heads(_times(attn_in, weights[f"{at}attn.{part}"]), config.n_heads) for part in "qkv")
    q, k, v = rotate(q, angles).swapaxes(1, 2), rotate(k, angles).swapaxes(1, 2), v.swapaxes(1, 2)
    if cache is not None:
        k, v = cache.extend(layer, k, v)
    mixed_heads, attention = attend(q, k, v)
    mixed = _join_heads(mixed_heads)
    x = x + _times(mixed, weights[f"{at}attn.o"])
    mlp_in, mlp_scale = _normalise(x)
    gate = np.maximum(_times(mlp_in, weights[f"{at}mlp.up"]), 0)
    activated = gate * gate
    x = x + _times(activated, weights[f"{at}mlp.down"])
    return x, LayerTape(attn_in, attn_scale, attention, mixed, mlp_in, mlp_scale, gate, activated)


def backward(
    config: ModelConfig, weights: Weights, tape: Tape, d_hidden: FloatArray, wanted: Collection[str]
) -> dict[str, FloatArray]:
    """Gradients of the wanted layer matrices from that of the hidden state (B, T, C).

    The unembedding is outside this pass, and the embedding is never trained.
    """
    grads: dict[str, FloatArray] = {}
    if not any(name.startswith("layers.") for name in wanted):
        return grads
    d_x = _normalise_backward(d_hidden, tape.hidden, tape.scale)
    for layer in reversed(range(config.n_layers)):
        d_x = _mlp_backward(weights, layer, tape.layers[layer], d_x, grads, wanted)
        d_x = _attention_backward(weights, layer, tape, d_x, grads, wanted)
    return grads


def _matrix_backward(
    name: str,
    weights: Weights,
    x: FloatArray,
    d_y: FloatArray,
    grads: dict[str, FloatArray],
    wanted: Collection[str],
) -> FloatArray:
    """Gradient of x where y = x @ weights[name]; that of the matrix goes to grads when wanted."""
    if name in wanted:
        grads[name] = x.reshape(-1, x.shape[-1]).T @ d_y.reshape(-1, d_y.shape[-1])
    return _times(d_y, weights[name].T)


def _mlp_backward(
    weights: Weights,
    layer: int,
    tape: LayerTape,
    d_x: FloatArray,
    grads: dict[str, FloatArray],
    wanted: Collection[str],
) -> FloatArray:
    at = f"layers.{layer}.mlp."
    d_gate = _matrix_backward(f"{at}down", weights, tape.activated, d_x, grads, wanted)
    d_gate *= tape.gate
    d_gate *= 2.0
    d_in = _matrix_backward(f"{at}up", weights, tape.mlp_in, d_gate, grads, wanted)
    return d_x + _normalise_backward(d_in, tape.mlp_in, tape.mlp_scale)


def _attention_backward(
    weights: Weights,
    layer: int,
    tape: Tape,
    d_x: FloatArray,
    grads: dict[str, FloatArray],
    wanted: Collection[str],
) -> FloatArray:
    at, own = f"layers.{layer}.attn.", tape.layers[layer]
    d_mixed = _matrix_backward(f"{at}o", weights, own.mixed, d_x, grads, wanted)
    d_heads = d_mixed.reshape(*d_mixed.shape[:2], own.attention.q.shape[1], -1).swapaxes(1, 2)
    d_q, d_k, d_v = attend_backward(own.attention, d_heads)
    d_parts = {
        "q": rotate(d_q.swapaxes(1, 2), tape.angles, back=True),
        "k": rotate(d_k.swapaxes(1, 2), tape.angles, back=True),
        "v": d_v.swapaxes(1, 2),
    }
    d_in = np.zeros_like(own.attn_in)
    for part, d_part in d_parts.items():
        flat = d_part.reshape(d_x.shape)
        d_in += _matrix_backward(at + part, weights, own.attn_in, flat, grads, wanted)
    return d_x + _normalise_backward(d_in, own.attn_in, own.attn_scale)
