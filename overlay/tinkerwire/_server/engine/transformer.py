"""A pre-norm decoder over plain weight matrices: run_forward and exact backward.

It is independent of LoRA: adapters are merged into the matrices before a pass, and their gradients are computed from
the gradients of the merged matrices. Shapes: B sequences, T positions, C = d_model, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray
from tinkerwire._server.engine.attention import (
    AttentionTape,
    KeyValueCache,
    attend,
    attend_backward,
    rotary_angles,
    rotate,
)
from tinkerwire._server.engine.config import ModelConfig

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


Multiply = Callable[[FloatArray, FloatArray], FloatArray]
"""A function that returns x @ matrix."""
Mix = Callable[[int, FloatArray, FloatArray, FloatArray], tuple[FloatArray, AttentionTape]]
"""A function that returns the attention of a layer; see `attend`."""


def multiply_blocks(sizes: Sequence[int], x: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return x @ matrix, computed as one product for each block of rows.

    The last bits of a row depend on the number of rows of its product, but not on other products.

    Args:
        sizes: number of rows of each block.
        x: an array whose first axis holds the rows, and whose last one has the inputs of the matrix.
        matrix: the matrix.
    """
    if len(sizes) == 1:
        return _multiply(x, matrix)
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty((len(rows), matrix.shape[1]), x.dtype)
    start = 0
    for size, blocks in groupby(sizes):
        stop = start + size * len(list(blocks))
        # numpy computes one product for each block of this stack.
        stack = rows[start:stop].reshape(-1, size, rows.shape[1])
        np.matmul(stack, matrix, out=out[start:stop].reshape(-1, size, matrix.shape[1]))
        start = stop
    return out.reshape(*x.shape[:-1], -1)


def _split_heads(x: FloatArray, n_heads: int) -> FloatArray:
    """Reshape (B, T, C) to (B, T, H, D) without a copy."""
    return x.reshape(*x.shape[:2], n_heads, -1)


def _join_heads(x: FloatArray) -> FloatArray:
    """Reshape (B, H, T, D) to (B, T, C)."""
    moved = x.swapaxes(1, 2)
    joined: FloatArray = moved.reshape(*moved.shape[:2], -1)
    return joined


def _embed(weights: Weights, tokens: IntArray, patches: FloatArray | None) -> FloatArray:
    if patches is None or not len(patches):
        return weights["embedding"][tokens]
    is_patch = tokens < 0
    x = weights["embedding"][np.where(is_patch, 0, tokens)]
    # The constant keeps a grey patch, whose values are all 0, from being nothing.
    values = np.pad(patches, ((0, 0), (0, 1)), constant_values=1.0).astype(x.dtype)
    x[is_patch] = (values @ weights["patch_embedding"])[-1 - tokens[is_patch]]
    return x


def run_forward(
    config: ModelConfig,
    weights: Weights,
    tokens: IntArray,
    cache: KeyValueCache | None = None,
    *,
    patches: FloatArray | None = None,
    keep: bool = False,
) -> tuple[FloatArray, Tape]:
    """Return the normalised last hidden state (B, T, C), and the tape for `backward`.

    Args:
        config: config of the base model.
        weights: merged weights.
        tokens: token ids, (B, T); the value -1 - i is patch i.
        cache: earlier positions of these sequences; the new positions are appended.
        patches: patches of images, (any number, PATCH_VALUES).
        keep: record the layers on the tape, as `backward` requires.
    """
    start = cache.length if cache else 0
    x = _embed(weights, tokens, patches)
    angles = rotary_angles(start, start + tokens.shape[1], config.d_head, x.dtype)
    tapes = []
    mix = partial(_mix, cache)
    for layer in range(config.n_layers):
        x, tape = _layer_forward(config, weights, layer, x, angles, _multiply, mix)
        if keep:
            tapes.append(tape)
    if cache is not None:
        cache.advance(tokens.shape[1])
    hidden, scale = _normalise(x)
    return hidden, Tape(tapes, hidden, scale, angles)


def run_step(
    config: ModelConfig,
    weights: Weights,
    tokens: IntArray,
    caches: Sequence[KeyValueCache],
    sizes: Sequence[int],
) -> FloatArray:
    """Return the normalised last hidden state (B, C) of one further token of each sequence.

    The result for a block of sequences is that of :func:`run_forward` for these sequences alone, to the bit.

    Args:
        config: config of the base model.
        weights: merged weights.
        tokens: the token of each sequence, (B,).
        caches: earlier positions of the sequences, in their order; the new position is appended.
        sizes: number of sequences of each block.
    """
    x = weights["embedding"][tokens[:, None]]
    steps = [_step_angles(cache.length, config.d_head, x.dtype) for cache in caches]
    angles = steps[0]
    if len(caches) > 1:
        angles = np.repeat(np.stack(steps, axis=1), [cache.rows for cache in caches], axis=1)
    multiply, mix = partial(multiply_blocks, sizes), partial(_mix_caches, caches)
    for layer in range(config.n_layers):
        x, _ = _layer_forward(config, weights, layer, x, angles, multiply, mix)
    for cache in caches:
        cache.advance(1)
    return _normalise(x)[0][:, 0]


@lru_cache(maxsize=4096)
def _step_angles(position: int, d_head: int, dtype: np.dtype[np.floating]) -> FloatArray:
    return rotary_angles(position, position + 1, d_head, dtype)


def _mix(
    cache: KeyValueCache | None, layer: int, q: FloatArray, k: FloatArray, v: FloatArray
) -> tuple[FloatArray, AttentionTape]:
    return attend(q, k, v) if cache is None else attend(q, *cache.extend(layer, k, v))


def _mix_caches(
    caches: Sequence[KeyValueCache], layer: int, q: FloatArray, k: FloatArray, v: FloatArray
) -> tuple[FloatArray, AttentionTape]:
    if len(caches) == 1:
        return _mix(caches[0], layer, q, k, v)
    start, results = 0, []
    for cache in caches:
        rows = slice(start, start + cache.rows)
        results.append(_mix(cache, layer, q[rows], k[rows], v[rows]))
        start = rows.stop
    # A step does not use the tape.
    return np.concatenate([mixed for mixed, _ in results]), results[-1][1]


def _layer_forward(
    config: ModelConfig,
    weights: Weights,
    layer: int,
    x: FloatArray,
    angles: FloatArray,
    multiply: Multiply,
    mix: Mix,
) -> tuple[FloatArray, LayerTape]:
    at = f"layers.{layer}."
    attn_in, attn_scale = _normalise(x)
    q, k, v = (_split_heads(multiply(attn_in, weights[f"{at}attn.{part}"]), config.n_heads) for part in "qkv")
    q, k, v = rotate(q, angles).swapaxes(1, 2), rotate(k, angles).swapaxes(1, 2), v.swapaxes(1, 2)
    mixed_heads, attention = mix(layer, q, k, v)
    mixed = _join_heads(mixed_heads)
    x = x + multiply(mixed, weights[f"{at}attn.o"])
    mlp_in, mlp_scale = _normalise(x)
    gate = np.maximum(multiply(mlp_in, weights[f"{at}mlp.up"]), 0)
    activated = gate * gate
    x = x + multiply(activated, weights[f"{at}mlp.down"])
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
