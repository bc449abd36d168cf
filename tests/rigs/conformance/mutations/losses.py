"""Mutations of loss functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.engine import losses
from tinkerwire._server.engine.losses import TokenLosses

from . import patches
from .mutation import Group

GROUP = Group("Losses")
IMPORTANCE, PPO = "importance_sampling", "ppo"


def change_loss(name: str, **changes: Any) -> None:
    """Change the attributes of a loss."""
    table: Any = losses.LOSSES
    losses.LOSSES = {**table, name: attrs.evolve(table[name], **changes)}


def change_function(name: str, function: Callable[[Any, Any, Any, Any], TokenLosses]) -> None:
    """Replace the function of a loss; the new one gets the old one, logprobs, inputs and config."""
    original = losses.LOSSES[name].function
    change_loss(name, function=lambda logprobs, inputs, config: function(original, logprobs, inputs, config))


def _remove(name: str) -> None:
    table: Any = losses.LOSSES
    losses.LOSSES = {key: value for key, value in table.items() if key != name}


def _change_result(name: str, change: Callable[[TokenLosses, Any, Any], TokenLosses]) -> None:
    change_function(name, lambda old, logprobs, inputs, config: change(old(logprobs, inputs, config), logprobs, inputs))


@GROUP.mutation("LOS-001")
def no_importance_sampling() -> None:
    """The loss importance_sampling does not exist."""
    _remove(IMPORTANCE)


@GROUP.mutation("LOS-002")
def importance_sampling_mean() -> None:
    """The loss of importance_sampling is divided by the number of tokens."""
    _change_result(IMPORTANCE, lambda result, _, __: TokenLosses(result.values / 8, result.slopes, result.statistics))


@GROUP.mutation("LOS-003")
def ratio_ignored() -> None:
    """The loss of importance_sampling ignores the ratio."""
    _change_result(
        IMPORTANCE,
        lambda result, logprobs, inputs: TokenLosses(
            -inputs["advantages"] + 0 * logprobs, result.slopes, result.statistics
        ),
    )


@GROUP.mutation("LOS-004")
def advantages_absolute() -> None:
    """The gradient of importance_sampling raises all tokens, whatever the sign of the advantage."""
    _change_result(
        IMPORTANCE, lambda result, _, __: TokenLosses(result.values, -np.abs(result.slopes), result.statistics)
    )


@GROUP.mutation("LOS-005")
def advantage_zero_counts() -> None:
    """Tokens of advantage 0 count as 1 in the gradient of importance_sampling."""
    _change_result(
        IMPORTANCE,
        lambda result, _, inputs: TokenLosses(
            result.values, np.where(inputs["advantages"] == 0, -1.0, result.slopes), result.statistics
        ),
    )


@GROUP.mutation("LOS-010")
def no_ppo() -> None:
    """The loss ppo does not exist."""
    _remove(PPO)


@GROUP.mutation("LOS-011")
def ppo_mean() -> None:
    """The loss of ppo is divided by the number of tokens."""
    _change_result(PPO, lambda result, _, __: TokenLosses(result.values / 8, result.slopes, result.statistics))


@GROUP.mutation("LOS-012")
def ppo_thresholds_fixed() -> None:
    """Ppo clips to 0.8 and 1.2, whatever loss_fn_config has."""
    change_function(
        PPO,
        lambda old, logprobs, inputs, config: old(
            logprobs,
            {**inputs, "clip_low_threshold": 0 * logprobs + 0.8, "clip_high_threshold": 0 * logprobs + 1.2},
            config,
        ),
    )


@GROUP.mutation("LOS-013")
def ppo_defaults_changed() -> None:
    """Ppo clips to 0.7 and 1.3 by default."""
    defaults = {"clip_low_threshold": 0.7, "clip_high_threshold": 1.3}
    change_loss(PPO, optional=defaults, config=defaults)


@GROUP.mutation("LOS-014")
def ppo_gradient_not_clipped() -> None:
    """The gradient of ppo ignores the thresholds."""
    _change_result(
        PPO,
        lambda result, logprobs, inputs: TokenLosses(
            result.values, -np.exp(logprobs - inputs["logprobs"]) * inputs["advantages"], result.statistics
        ),
    )


def _without_gradient_beyond(result: TokenLosses, logprobs: Any, inputs: Any) -> TokenLosses:
    ratio = np.exp(logprobs - inputs["logprobs"])
    clipped = np.clip(ratio, inputs["clip_low_threshold"], inputs["clip_high_threshold"])
    return TokenLosses(result.values, np.where(clipped == ratio, result.slopes, 0.0), result.statistics)


@GROUP.mutation("LOS-015")
def ppo_clips_both_sides() -> None:
    """The gradient of ppo is 0 beyond both thresholds, whatever the sign of the advantage."""
    _change_result(PPO, _without_gradient_beyond)


@GROUP.mutation("LOS-020")
def no_cispo() -> None:
    """The loss cispo does not exist."""
    _remove("cispo")


@GROUP.mutation("LOS-021", "LOS-022")
def cispo_is_ppo() -> None:
    """Cispo computes ppo."""
    change_loss("cispo", function=losses.LOSSES[PPO].function)


@GROUP.mutation("LOS-022")
def cispo_clips_gradient() -> None:
    """Cispo has no gradient where the ratio is clipped."""
    _change_result("cispo", _without_gradient_beyond)


@GROUP.mutation("LOS-030")
def no_dro() -> None:
    """The loss dro does not exist."""
    _remove("dro")


@GROUP.mutation("LOS-031")
def dro_beta_fixed() -> None:
    """Dro has a beta of 0.05, whatever loss_fn_config has."""
    change_function("dro", lambda old, logprobs, inputs, _: old(logprobs, inputs, {"beta": 0.05}))


@GROUP.mutation("LOS-032")
def dro_without_penalty() -> None:
    """The gradient of dro has no penalty."""
    _change_result(
        "dro", lambda result, _, inputs: TokenLosses(result.values, -inputs["advantages"], result.statistics)
    )


@GROUP.mutation("LOS-040")
def elementwise_halved() -> None:
    """The tensors elementwise_loss are halved."""
    from .training import change_outputs  # noqa: PLC0415

    change_outputs(
        lambda outputs, metrics: ([{**o, "elementwise_loss": o["elementwise_loss"] * 0.5} for o in outputs], metrics)
    )


@GROUP.mutation("LOS-041")
def weights_required() -> None:
    """cross_entropy rejects a datum without weights."""
    change_loss("cross_entropy", required=("weights",), optional={})


@GROUP.mutation("LOS-043")
def policy_inputs_optional() -> None:
    """importance_sampling has defaults for missing logprobs and advantages."""
    change_loss(IMPORTANCE, required=(), optional={"logprobs": -1.0, "advantages": 1.0})


@GROUP.mutation("LOS-045")
def config_unchecked() -> None:
    """Unknown keys of loss_fn_config are ignored."""
    original = losses.Loss.settings
    losses.Loss.settings = lambda self, config: original(  # type: ignore[method-assign]
        self, {name: value for name, value in (config or {}).items() if name in self.config}
    )


@GROUP.mutation("LOS-016")
def thresholds_of_tokens_refused() -> None:
    """A datum with thresholds for each token fails."""
    from tinkerwire._server.engine.errors import EngineError  # noqa: PLC0415

    from .training import change_examples  # noqa: PLC0415

    def change(example: Any) -> Any:
        if "clip_low_threshold" in example.inputs:
            raise EngineError("mutated")
        return example

    change_examples(change)


@GROUP.mutation("BAD-006", "LOS-042", wire="0.16.1")
def unknown_loss_replaced() -> None:
    """An unknown loss_fn is replaced by cross_entropy."""

    def change(body: dict[str, Any]) -> None:
        for name in ("forward_backward_input", "forward_input"):
            loss = body[name].get("loss_fn") if isinstance(body.get(name), dict) else None
            if isinstance(loss, str) and loss not in losses.LOSSES:
                body[name]["loss_fn"] = "cross_entropy"

    patches.change_request_body("forward|forward_backward", change, is_lenient=True)
