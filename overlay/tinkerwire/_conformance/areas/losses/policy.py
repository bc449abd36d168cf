"""Requirements on the losses of reinforcement learning."""

from __future__ import annotations

import attrs

from ...checks import loss_formulas
from ...checks.breakages import WRONG_NUMBERS
from ...checks.training_effect import expect_loss
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS, logprobs_of
from .area import AREA
from .policy_loss import (
    ADVANTAGES,
    GAPS,
    IMPORTANCE_SAMPLING,
    expect_formula,
    expect_loss_at_ratio_1,
    expect_step,
    floats,
    policy_datum,
    require_support,
    supported_model,
)

PPO, CISPO, DRO = "ppo", "cispo", "dro"
CLIP = {"clip_low_threshold": 0.6, "clip_high_threshold": 1.5}
BETA = 2.0
WRONG_NUMBERS_LATER = Breakage("0.6.0", None, Feature.TRAIN, "trains with wrong numbers, without an error")


@AREA.should(
    1,
    contract="ForwardBackwardInput.loss_fn",
    remedy="Support the loss importance_sampling, with the inputs target_tokens, logprobs and advantages.",
    needs=("TRN-006",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot train with reinforcement learning")],
)
async def importance_sampling_is_supported(server: Server) -> None:
    """The server computes the loss importance_sampling, and returns logprobs for each datum."""
    await require_support(server, IMPORTANCE_SAMPLING)


@AREA.must(
    2,
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardOutput.metrics"),
    remedy="Compute importance_sampling as minus the sum of exp(p - q) times advantage, without a mean.",
    needs=("LOS-001",),
    breaks=[WRONG_NUMBERS],
)
async def importance_sampling_at_ratio_1(server: Server) -> None:
    """At a ratio of 1, the loss of importance_sampling is minus the sum of the advantages."""
    await expect_loss_at_ratio_1(server, IMPORTANCE_SAMPLING)


@AREA.must(
    3,
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardOutput.metrics"),
    remedy="Take the ratio from the logprobs of the request: exp(p - q), without a limit.",
    needs=("LOS-002",),
    breaks=[WRONG_NUMBERS],
)
async def importance_sampling_uses_ratios(server: Server) -> None:
    """The loss of importance_sampling is minus the sum of ratios times advantages, over the whole batch."""
    await expect_formula(server, IMPORTANCE_SAMPLING, loss_formulas.importance_sampling, "-sum(exp(p - q) * a)")


@AREA.must(
    4,
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Multiply the gradient of each log probability by ratio and advantage, also by a negative one.",
    needs=("LOS-001", "TRN-021"),
    breaks=[WRONG_NUMBERS],
)
async def advantages_direct_importance_sampling(server: Server) -> None:
    """A step of importance_sampling lowers the probability of tokens with negative advantages."""
    await expect_step(server, IMPORTANCE_SAMPLING, advantage=-1.0, gap=0.0, direction=-1)


@AREA.must(
    5,
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Exclude tokens with advantage 0, which are those of the prompt, from the gradient.",
    needs=("LOS-001", "TRN-022"),
    breaks=[WRONG_NUMBERS],
)
async def zero_advantages_mask(server: Server) -> None:
    """Tokens with advantage 0 do not contribute to the gradient of importance_sampling."""
    await expect_step(server, IMPORTANCE_SAMPLING, advantage=0.0, gap=0.3, direction=0)


@AREA.should(
    10,
    contract="ForwardBackwardInput.loss_fn",
    remedy="Support the loss ppo, with the inputs target_tokens, logprobs and advantages.",
    needs=("TRN-006",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot train with PPO")],
)
async def ppo_is_supported(server: Server) -> None:
    """The server computes the loss ppo, and returns logprobs for each datum."""
    await require_support(server, PPO)


@AREA.must(
    11,
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardOutput.metrics"),
    remedy="Compute ppo as a sum over tokens, without a mean.",
    needs=("LOS-010",),
    breaks=[WRONG_NUMBERS],
)
async def ppo_at_ratio_1(server: Server) -> None:
    """At a ratio of 1, the loss of ppo is minus the sum of the advantages."""
    await expect_loss_at_ratio_1(server, PPO)


@AREA.must(
    12,
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardInput.loss_fn_config"),
    remedy="Clip the ratio to clip_low_threshold and clip_high_threshold of loss_fn_config, and take the smaller "
    "product with the advantage.",
    needs=("LOS-011",),
    breaks=[WRONG_NUMBERS],
)
async def ppo_clips_as_configured(server: Server) -> None:
    """The loss of ppo clips ratios to the thresholds in loss_fn_config, on the side that the advantage asks for."""

    def formula(p: list[float], q: list[float], a: list[float]) -> float:
        return loss_formulas.ppo(p, q, a, CLIP["clip_low_threshold"], CLIP["clip_high_threshold"])

    await expect_formula(server, PPO, formula, "-sum(min(r * a, clip(r, 0.6, 1.5) * a))", CLIP)


@AREA.should(
    13,
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardInput.loss_fn_config"),
    remedy="Use thresholds of 0.8 and 1.2 if loss_fn_config has none.",
    needs=("LOS-011",),
    breaks=[WRONG_NUMBERS],
)
async def ppo_clips_by_default(server: Server) -> None:
    """Without loss_fn_config, ppo clips ratios to 0.8 and 1.2."""
    await expect_formula(server, PPO, loss_formulas.ppo, "-sum(min(r * a, clip(r, 0.8, 1.2) * a))")


@AREA.must(
    14,
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Set the gradient of ppo to 0 where the clipped product is the smaller one.",
    needs=("LOS-010", "TRN-022"),
    breaks=[WRONG_NUMBERS],
)
async def clipped_ppo_has_no_gradient(server: Server) -> None:
    """A step of ppo changes nothing if all ratios are beyond the threshold that their advantages meet."""
    await expect_step(server, PPO, advantage=1.0, gap=1.0, direction=0, config=CLIP)


@AREA.must(
    15,
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Do not clip where the advantage pulls the ratio back: take the smaller product.",
    needs=("LOS-010", "TRN-021"),
    breaks=[WRONG_NUMBERS],
)
async def ppo_pulls_ratios_back(server: Server) -> None:
    """A step of ppo lowers the probability of tokens with a high ratio and a negative advantage."""
    await expect_step(server, PPO, advantage=-1.0, gap=1.0, direction=-1, config=CLIP)


@AREA.may(
    16,
    contract="Datum.loss_fn_inputs",
    remedy="Accept the inputs clip_low_threshold and clip_high_threshold, with a threshold for each token.",
    needs=("LOS-012",),
)
async def thresholds_may_differ_by_token(server: Server) -> None:
    """A datum of ppo may have thresholds for each token, which override those of loss_fn_config."""
    model = await supported_model(server, PPO)
    datum, q = await policy_datum(model, GAPS, ADVANTAGES)
    thresholds = {name: floats([value] * len(TOKENS)) for name, value in CLIP.items()}
    datum = attrs.evolve(datum, loss_fn_inputs={**datum.loss_fn_inputs, **thresholds})
    narrow = {"clip_low_threshold": 0.99, "clip_high_threshold": 1.01}
    output = await model.forward_backward([datum], PPO, narrow)
    expected = loss_formulas.ppo(logprobs_of(output)[0], q, ADVANTAGES, *CLIP.values())
    expect_loss(server, output, expected, "with the thresholds of the datum")


@AREA.may(
    20,
    since="0.6.0",
    contract="ForwardBackwardInput.loss_fn",
    remedy="Support the loss cispo, with the inputs target_tokens, logprobs and advantages.",
    needs=("TRN-006",),
    breaks=[Breakage("0.6.0", None, Feature.TRAIN, "cannot train with CISPO")],
)
async def cispo_is_supported(server: Server) -> None:
    """The server computes the loss cispo, and returns logprobs for each datum."""
    await require_support(server, CISPO)


@AREA.must(
    21,
    since="0.6.0",
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardInput.loss_fn_config"),
    remedy="Compute cispo as minus the sum of clipped ratio times advantage times log probability.",
    needs=("TRN-006",),
    breaks=[WRONG_NUMBERS_LATER],
)
async def cispo_clips_as_configured(server: Server) -> None:
    """The loss of cispo is minus the sum of clipped ratios times advantages times logprobs."""

    def formula(p: list[float], q: list[float], a: list[float]) -> float:
        return loss_formulas.cispo(p, q, a, CLIP["clip_low_threshold"], CLIP["clip_high_threshold"])

    await expect_formula(server, CISPO, formula, "-sum(clip(r, 0.6, 1.5) * a * p)", CLIP)


@AREA.must(
    22,
    since="0.6.0",
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Treat the clipped ratio of cispo as a constant, so that clipped tokens keep a gradient.",
    needs=("TRN-021",),
    breaks=[WRONG_NUMBERS_LATER],
)
async def clipped_cispo_keeps_gradient(server: Server) -> None:
    """A step of cispo raises the probability of tokens with a positive advantage, also if their ratio is clipped."""
    await expect_step(server, CISPO, advantage=1.0, gap=1.0, direction=1, config=CLIP)


@AREA.may(
    30,
    since="0.6.0",
    contract="ForwardBackwardInput.loss_fn",
    remedy="Support the loss dro, with the inputs target_tokens, logprobs and advantages.",
    needs=("TRN-006",),
    breaks=[Breakage("0.6.0", None, Feature.TRAIN, "cannot train with DRO")],
)
async def dro_is_supported(server: Server) -> None:
    """The server computes the loss dro, and returns logprobs for each datum."""
    await require_support(server, DRO, {"beta": BETA})


@AREA.must(
    31,
    since="0.6.0",
    contract=("ForwardBackwardInput.loss_fn", "ForwardBackwardInput.loss_fn_config"),
    remedy="Compute dro as minus the sum of p * a - beta / 2 * (p - q) ** 2, with beta of loss_fn_config.",
    needs=("TRN-006",),
    breaks=[WRONG_NUMBERS_LATER],
)
async def dro_penalizes_differences(server: Server) -> None:
    """The loss of dro is minus the sum of logprobs times advantages, plus beta / 2 times the squared differences."""

    def formula(p: list[float], q: list[float], a: list[float]) -> float:
        return loss_formulas.dro(p, q, a, BETA)

    await expect_formula(server, DRO, formula, "-sum(p * a - 1.0 * (p - q) ** 2)", {"beta": BETA})


@AREA.must(
    32,
    since="0.6.0",
    contract=("ForwardBackwardInput.loss_fn", "optim_step"),
    remedy="Include the penalty of dro in its gradient: -a + beta * (p - q).",
    needs=("TRN-021",),
    breaks=[WRONG_NUMBERS_LATER],
)
async def dro_returns_to_sampling_policy(server: Server) -> None:
    """A step of dro without advantages moves the probabilities towards those at sampling time."""
    await expect_step(server, DRO, advantage=0.0, gap=1.0, direction=-1, config={"beta": BETA})
