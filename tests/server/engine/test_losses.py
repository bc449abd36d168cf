"""Tests of the losses against a second implementation of their public definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire._server.engine import LOSSES, Example, LoraModel, LoraSettings, base_model


def _compute_expected(loss_fn: str, p: np.ndarray, inputs: dict[str, np.ndarray], low: float, high: float) -> float:
    """Compute the documented sums, position by position."""
    total = 0.0
    for t, logprob in enumerate(p):
        if loss_fn == "cross_entropy":
            total -= logprob * inputs["weights"][t]
            continue
        q, advantage = inputs["logprobs"][t], inputs["advantages"][t]
        ratio = np.exp(logprob - q)
        clipped = min(max(ratio, low), high)
        total -= {
            "importance_sampling": ratio * advantage,
            "ppo": min(ratio * advantage, clipped * advantage),
            "cispo": clipped * logprob * advantage,
            "dro": logprob * advantage - 0.5 * 0.05 * (logprob - q) ** 2,
        }[loss_fn]
    return total


@pytest.mark.parametrize("loss_fn", LOSSES)
def test_loss_equals_the_documented_sum(loss_fn, make_model, make_examples):
    """With default thresholds and beta, the loss equals the documented sum over all positions."""
    model, examples = make_model(), make_examples(loss_fn)
    for example in examples:
        example.inputs.pop("clip_low_threshold", None)
        example.inputs.pop("clip_high_threshold", None)
    result = model.forward(examples, loss_fn)
    rows = zip(examples, result.outputs, strict=True)
    expected = [_compute_expected(loss_fn, output["logprobs"], example.inputs, 0.8, 1.2) for example, output in rows]
    assert result.metrics["loss:sum"] == pytest.approx(sum(expected), rel=1e-5)
    losses = [float(output["elementwise_loss"].sum()) for output in result.outputs]
    assert losses == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("loss_fn", ["ppo", "cispo"])
def test_thresholds_per_token_override_the_config(loss_fn, make_model, make_examples):
    """A threshold in the config acts like the same number at every token."""
    model, (example,) = make_model(), make_examples(loss_fn, lengths=(40,))
    unclipped = {key: value for key, value in example.inputs.items() if not key.startswith("clip")}
    by_token = {**unclipped, "clip_low_threshold": np.full(40, 0.95), "clip_high_threshold": np.full(40, 1.05)}
    config = {"clip_low_threshold": 0.95, "clip_high_threshold": 1.05}
    unclipped_example, clipped_example = Example(example.tokens, unclipped), Example(example.tokens, by_token)
    expected = model.forward([clipped_example], loss_fn).metrics
    assert model.forward([unclipped_example], loss_fn, config).metrics == expected
    assert model.forward([clipped_example], loss_fn, {"clip_low_threshold": 0.0}).metrics == expected
    assert model.forward([unclipped_example], loss_fn).metrics != expected


def test_beta_scales_the_quadratic_term_of_dro(make_model, make_examples):
    """With beta 0 dro is the basic policy gradient objective, and beta adds its term linearly."""
    model, examples = make_model(), make_examples("dro")
    loss = [model.forward(examples, "dro", {"beta": beta}).metrics["loss:sum"] for beta in (0.0, 1.0, 2.0)]
    assert loss[2] - loss[1] == pytest.approx(loss[1] - loss[0])
    assert loss[1] > loss[0]


def test_weights_default_to_one(make_model, make_examples):
    """Without weights cross_entropy counts every token once."""
    model, (example,) = make_model(), make_examples("cross_entropy", lengths=(6,))
    unweighted = Example(example.tokens, {"target_tokens": example.inputs["target_tokens"]})
    result = model.forward([unweighted], "cross_entropy")
    assert result.metrics["loss:sum"] == pytest.approx(-result.outputs[0]["logprobs"].sum(), rel=1e-6)
    assert result.metrics["weights:sum"] == result.metrics["tokens:sum"] == 6


@pytest.mark.parametrize("loss_fn", ["cross_entropy", "importance_sampling", "ppo", "cispo"])
def test_zero_weight_or_advantage_has_zero_loss_and_gradient(loss_fn, make_model, make_examples):
    """An example of zero weight or advantage contributes nothing."""
    model, (example,) = make_model(), make_examples(loss_fn, lengths=(8,))
    key = "weights" if loss_fn == "cross_entropy" else "advantages"
    example.inputs[key] = np.zeros(8)
    assert model.forward_backward([example], loss_fn).metrics["loss:sum"] == 0.0
    assert all(not value.any() for value in model.grads.values())


@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 30), min_size=2, max_size=12), cut=st.integers(1, 11))
def test_metrics_of_halves_combine_to_those_of_the_batch(make_examples_once, make_model_once, lengths, cut):
    """Sums add, and means weighted by examples average, to the metrics of the uncut batch."""
    examples = make_examples_once("ppo", lengths=lengths)
    halves = [half_batch for half_batch in (examples[:cut], examples[cut:]) if half_batch]
    batch_metrics = make_model_once.forward(examples, "ppo").metrics
    parts = [(len(half_batch), make_model_once.forward(half_batch, "ppo").metrics) for half_batch in halves]
    for key, value in batch_metrics.items():
        total = sum(count * part[key] if key.endswith(":mean") else part[key] for count, part in parts)
        combined = total / len(examples) if key.endswith(":mean") else total
        assert combined == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.fixture(scope="module")
def make_model_once():
    """Create a model for hypothesis, which keeps its fixtures over all examples of a test."""
    return LoraModel(base_model("tinkerwire/byte-nano", np.float64), LoraSettings(rank=2, seed=1))


@pytest.fixture(scope="module")
def make_examples_once():
    """Create random ppo examples, as make_examples does."""

    def make(loss_fn: str, lengths: list[int]) -> list[Example]:
        rng = np.random.default_rng(len(lengths))
        rows = []
        for n in lengths:
            inputs = {
                "target_tokens": rng.integers(0, 257, n),
                "logprobs": rng.normal(-5.5, 0.5, n),
                "advantages": rng.integers(-1, 2, n).astype(float),
            }
            rows.append(Example(rng.integers(0, 257, n), inputs))
        return rows

    return make
