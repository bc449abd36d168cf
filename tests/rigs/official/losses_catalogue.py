"""Losses for both clients to trace: every kind of node and argument, and losses that must be rejected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

CAPTURED = torch.ones(2)
MODULE = torch.nn.ReLU()
Loss = Callable[..., Any]
RANKS = {"logprobs": 1, "advantages": 1, "weights": 1, "old": 1, "beta": 0, "matrix": 2}


def negative_sum(logprobs: Any) -> Any:
    return -logprobs.sum(), {}


def policy(logprobs: Any, advantages: Any, old: Any) -> Any:
    ratio = torch.exp(logprobs - old)
    clipped = torch.clamp(ratio, 0.8, 1.2)
    loss = -torch.minimum(ratio * advantages, clipped * advantages).sum()
    return loss, {"custom/ratio:mean": ratio.mean(), "custom/clipped:sum": (ratio != clipped).float().sum()}


def slices(logprobs: Any, weights: Any) -> Any:
    parts = (logprobs[1:], logprobs[..., :-1], logprobs[None], logprobs[::2,], logprobs[weights > 0], logprobs[0])
    return sum(part.sum() for part in parts), {}


def slice_by_step(logprobs: Any) -> Any:
    middle = logprobs.size(0) // 2
    return logprobs[:middle].sum() + logprobs[middle:].exp().sum(), {}


def constants_of_torch(logprobs: Any) -> Any:
    wide = logprobs.to(torch.float64)
    like = torch.zeros_like(
        logprobs,
        dtype=torch.float32,
        device=torch.device("cpu"),
        layout=torch.strided,
        memory_format=torch.preserve_format,
    )
    return wide.sum() + like.sum() + logprobs.to(dtype=torch.bfloat16).float().sum(), {}


def python_numbers(logprobs: Any) -> Any:
    values = torch.clamp(logprobs, min=-math.inf, max=math.inf)
    values = torch.where(torch.isnan(values), float("nan"), values) * 2 + 1.5 - True
    return torch.nansum(values * math.sqrt(2.0) * torch.pi), {"custom/none:sum": logprobs.sum(dim=None)}


def lowest(logprobs: Any) -> Any:
    return logprobs.clamp(min=torch.finfo(torch.float32).min).sum(), {}


def tuples(logprobs: Any) -> Any:
    stacked = torch.stack((logprobs, logprobs), dim=0)
    total = stacked.max(0)[0].sum() + torch.sum(stacked, (0, 1)) + stacked.permute(1, 0).sum() + stacked.mean([0, 1])
    return total + torch.cat([logprobs, logprobs]).sum() + logprobs[(slice(0, 2),)].sum(), {}


def unpacked(logprobs: Any) -> Any:
    values, _ = logprobs.max(dim=0)
    return values, {}


def functional(logprobs: Any, advantages: Any) -> Any:
    total = F.logsigmoid(logprobs) + F.softplus(advantages) + F.relu(logprobs) + F.mse_loss(logprobs, advantages)
    total = total + F.smooth_l1_loss(logprobs, advantages, beta=0.5) + F.softmax(logprobs, dim=-1)
    total = total + torch.special.expit(logprobs) + F.kl_div(logprobs, advantages, reduction="sum")
    return total.sum() + torch.einsum("i,i->", logprobs, advantages), {}


def operators(logprobs: Any, advantages: Any) -> Any:
    total = abs(-logprobs + advantages**2 / 3 // 1 % 5) + (logprobs < advantages) + (logprobs >= 1)
    mask = (logprobs > 1) & (advantages < 2) | ~(logprobs == 0) ^ (logprobs != 3)
    total += 1
    return (2 / (1 - total + 10)) @ logprobs + mask.sum(), {}


def methods(logprobs: Any) -> Any:
    loss = logprobs.exp().clamp(min=0.1, max=2).mean(dim=-1, keepdim=True).squeeze()
    return loss, {"custom/a.b/c_d-1:mean": logprobs.detach().abs().mean()}


def scalar(logprobs: Any, beta: Any) -> Any:
    return (logprobs * beta).sum(), {"custom/beta:mean": beta}


def matrix(logprobs: Any, matrix: Any) -> Any:
    return logprobs.sum() + matrix.sum(), {}


def attributes(logprobs: Any, weights: Any) -> Any:
    return logprobs.to(weights.dtype).T.sum() / logprobs.shape[0], {}


def created_range(logprobs: Any) -> Any:
    return (torch.arange(logprobs.size(0)) * logprobs).sum(), {}


def nested(logprobs: Any) -> Any:
    def inner(value: Any) -> Any:
        return value.exp()

    values = logprobs
    for number in range(3):
        values = inner(values) - number
    return values.sum(), {}


def unused(logprobs: Any, weights: Any) -> Any:
    return logprobs.sum(), {}


def as_list(logprobs: Any) -> Any:
    return [logprobs.sum(), {}]


def of_math(logprobs: Any) -> Any:
    return logprobs.sum() * math.floor(logprobs.size(0)), {}


def longest_metric(logprobs: Any) -> Any:
    return logprobs.sum(), {"custom/" + "x" * 64 + ":sum": logprobs.sum()}


ACCEPTED: list[Loss] = [
    negative_sum, policy, slices, slice_by_step, constants_of_torch, python_numbers, lowest, tuples, unpacked,
    functional, operators, methods, scalar, matrix, attributes, created_range, nested, unused, as_list, of_math,
    longest_metric,
    lambda logprobs: (logprobs.mean(), {}),
]  # fmt: skip
"""Losses that both clients accept."""


def captures(logprobs: Any) -> Any:
    return (logprobs * CAPTURED).sum(), {}


def makes_a_tensor(logprobs: Any) -> Any:
    return (logprobs * torch.tensor(2.0)).sum(), {}


def leaves_torch(logprobs: Any) -> Any:
    return logprobs * logprobs.sum().item(), {}


def calls_a_module(logprobs: Any) -> Any:
    return MODULE(logprobs).sum(), {}


def branches(logprobs: Any) -> Any:
    return (logprobs.sum() if logprobs[0] > 0 else -logprobs.sum()), {}


def iterates(logprobs: Any) -> Any:
    return sum(logprob for logprob in logprobs), {}


def of_length(logprobs: Any) -> Any:
    return logprobs.sum() / len(logprobs), {}


def without_metrics(logprobs: Any) -> Any:
    return logprobs.sum()


def a_number(logprobs: Any) -> Any:
    return 1.0, {}


def metric_is_a_number(logprobs: Any) -> Any:
    return logprobs.sum(), {"custom/a:mean": 1.0}


def metric_of_others(logprobs: Any) -> Any:
    return logprobs.sum(), {"kl:mean": logprobs.sum()}


def metric_too_long(logprobs: Any) -> Any:
    return logprobs.sum(), {"custom/" + "x" * 65 + ":sum": logprobs.sum()}


def with_default(logprobs: Any, beta: Any = 0.5) -> Any:
    return logprobs.sum() * beta, {}


def by_name_only(logprobs: Any, *, beta: Any) -> Any:
    return logprobs.sum() * beta, {}


def not_first(beta: Any, logprobs: Any) -> Any:
    return logprobs.sum() * beta, {}


def is_complex(logprobs: Any) -> Any:
    return (logprobs * 1j).real.sum(), {}


def in_place(logprobs: Any) -> Any:
    copied = logprobs.clone()
    copied[0] = 2.0
    return copied.sum(), {}


REJECTED: list[Loss] = [
    captures, makes_a_tensor, leaves_torch, calls_a_module, branches, iterates, of_length, without_metrics, a_number,
    metric_is_a_number, metric_of_others, metric_too_long, with_default, by_name_only, not_first, is_complex, in_place,
]  # fmt: skip
"""Losses that both clients reject."""


def without_gradients(logprobs: Any) -> Any:
    with torch.no_grad():
        factor = logprobs.exp()
    return (factor * logprobs).sum(), {}


def beyond_64_bits(logprobs: Any) -> Any:
    return logprobs.sum() * 2**70, {}


REJECTED_HERE_ONLY: list[Loss] = [without_gradients, beyond_64_bits]
"""Losses that only tinkerwire rejects: they would compute wrong gradients, or integers that few JSON readers keep."""
