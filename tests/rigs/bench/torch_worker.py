"""The embedded server's base model in torch: `python torch_worker.py MODEL WORK`, both JSON lists of numbers.

MODEL is the width, layers, heads, inner width and vocabulary; WORK the rows and positions of a training batch, and the
sequences, prompt tokens and new tokens of sampling. Prints tokens per second of a training pass (gradients of all
matrices) and of sampling (all sequences at once, with cached keys and values) as one JSON object.
"""

import json
import sys
import time

import torch
from torch.nn import functional

D_MODEL, LAYERS, HEADS, D_FF, VOCABULARY = json.loads(sys.argv[1])
ROWS, POSITIONS, SEQUENCES, PROMPT_TOKENS, NEW_TOKENS = json.loads(sys.argv[2])
PASSES, ROUNDS = 20, 5
D_HEAD = D_MODEL // HEADS


def create_weights():
    """Return random matrices by name."""
    shapes = {"embedding": (VOCABULARY, D_MODEL), "unembedding": (D_MODEL, VOCABULARY)}
    for layer in range(LAYERS):
        shapes |= {f"{layer}.{part}": (D_MODEL, D_MODEL) for part in "qkvo"}
        shapes |= {f"{layer}.up": (D_MODEL, D_FF), f"{layer}.down": (D_FF, D_MODEL)}
    return {name: (torch.randn(shape) * 0.05).requires_grad_() for name, shape in shapes.items()}


def rotate(x, start):
    """Rotate pairs of x, (B, H, T, D), by the angles of their positions."""
    frequencies = 10_000.0 ** (-torch.arange(0, D_HEAD, 2) / D_HEAD)
    angles = torch.arange(start, start + x.shape[2])[:, None] * frequencies
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def normalise(x):
    """Return x divided by its root mean square."""
    return functional.rms_norm(x, (D_MODEL,), eps=1e-5)


def compute_logits(weights, tokens, cache=None):
    """Return the logits of tokens, (B, T); `cache` has the keys and values of earlier positions by layer."""
    x, start = weights["embedding"][tokens], 0 if not cache else cache[0][0].shape[2]
    for layer in range(LAYERS):
        hidden = normalise(x)
        q, k, v = (
            (hidden @ weights[f"{layer}.{part}"]).unflatten(-1, (HEADS, D_HEAD)).transpose(1, 2) for part in "qkv"
        )
        q, k = rotate(q, start), rotate(k, start)
        if cache is not None:
            if start:
                k, v = torch.cat([cache[layer][0], k], dim=2), torch.cat([cache[layer][1], v], dim=2)
            cache[layer] = k, v
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=tokens.shape[1] > 1)
        x = x + mixed.transpose(1, 2).flatten(2) @ weights[f"{layer}.o"]
        x = x + functional.relu(normalise(x) @ weights[f"{layer}.up"]).square() @ weights[f"{layer}.down"]
    return normalise(x) @ weights["unembedding"]


def train(weights):
    """Return tokens per second of forward and backward passes."""
    tokens = torch.randint(0, VOCABULARY, (ROWS, POSITIONS + 1))

    def run():
        logits = compute_logits(weights, tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum").backward()

    run()
    started = time.perf_counter()
    for _ in range(PASSES):
        run()
    return PASSES * ROWS * POSITIONS / (time.perf_counter() - started)


@torch.no_grad()
def sample(weights):
    """Return tokens per second of sampling."""

    def run():
        cache = {}
        tokens = torch.randint(0, VOCABULARY, (SEQUENCES, PROMPT_TOKENS))
        for _ in range(NEW_TOKENS):
            probabilities = compute_logits(weights, tokens, cache)[:, -1].softmax(-1)
            tokens = torch.multinomial(probabilities, 1)

    run()
    started = time.perf_counter()
    for _ in range(ROUNDS):
        run()
    return ROUNDS * SEQUENCES * NEW_TOKENS / (time.perf_counter() - started)


if __name__ == "__main__":
    matrices = create_weights()
    sys.stdout.write(json.dumps({"train": train(matrices), "sample": sample(matrices), "version": torch.__version__}))
