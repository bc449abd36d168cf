"""Tests of several targets a position, as distillation uses them: the sum of weighted cross-entropies."""

import numpy as np
import pytest

from tinkerwire._server.engine import EngineError, Example

TOKENS = np.array([5, 6, 7, 8])
FIRST = Example(TOKENS, {"target_tokens": np.array([6, 7, 8, 9]), "weights": np.array([0.5, 1.0, -2.0, 0.0])})
SECOND = Example(TOKENS, {"target_tokens": np.array([1, 7, 3, 4]), "weights": np.array([1.0, 0.25, 0.0, 3.0])})
TWO_TARGETS = Example(
    TOKENS,
    {key: np.stack([FIRST.inputs[key], SECOND.inputs[key]], axis=1) for key in ("target_tokens", "weights")},
)


def _compute_grads(model, *examples):
    result = model.forward_backward(list(examples), "cross_entropy")
    return result, dict(model.grads)


def test_losses_and_gradients_of_two_targets_add_up(make_model):
    """This also holds where a token is a target twice; the logprobs form one column a target."""
    combined, combined_grads = _compute_grads(make_model(), TWO_TARGETS)
    first, second = _compute_grads(make_model(), FIRST)[0], _compute_grads(make_model(), SECOND)[0]
    assert combined.outputs[0]["logprobs"].shape == (4, 2)
    for column, single in enumerate((first, second)):
        for key in ("logprobs", "elementwise_loss"):
            np.testing.assert_allclose(combined.outputs[0][key][:, column], single.outputs[0][key], rtol=1e-5)
    assert combined.metrics["loss:sum"] == pytest.approx(first.metrics["loss:sum"] + second.metrics["loss:sum"])
    assert combined.metrics["tokens:sum"] == 4
    separate_grads = _compute_grads(make_model(), FIRST, SECOND)[1]
    for name, value in separate_grads.items():
        np.testing.assert_allclose(combined_grads[name], value, rtol=1e-7, atol=1e-12)


def test_batch_may_mix_target_shapes(make_model):
    """Examples with one, two or no target columns give the same results as alone, in their own shapes."""
    single = Example(TOKENS[:2], {"target_tokens": np.array([[6], [7]])})
    mixed = make_model().forward([FIRST, TWO_TARGETS, single], "cross_entropy").outputs
    for mixed_output, example in zip(mixed, (FIRST, TWO_TARGETS, single), strict=True):
        assert mixed_output["logprobs"].shape == example.inputs["target_tokens"].shape
        (output,) = make_model().forward([example], "cross_entropy").outputs
        np.testing.assert_allclose(mixed_output["logprobs"], output["logprobs"], rtol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "loss_fn", "text"),
    [
        ({"target_tokens": np.ones((3, 2))}, "cross_entropy", r"one row per token \(4\), got shape \(3, 2\)"),
        ({"target_tokens": np.ones((4, 0))}, "cross_entropy", r"one row per token \(4\), got shape \(4, 0\)"),
        (
            {"target_tokens": np.ones((4, 258))},
            "cross_entropy",
            "at most 257 targets per token, got 258",
        ),
        ({"target_tokens": np.full((4, 2), 300)}, "cross_entropy", r"target_tokens\[0\] must be a token id .* got 300"),
        (
            {"target_tokens": np.ones((4, 2)), "weights": np.ones(4)},
            "cross_entropy",
            r"weights must have shape \(4, 2\), .*got shape \(4,\)",
        ),
        (
            {"target_tokens": np.ones((4, 2)), "logprobs": np.ones((4, 2)), "advantages": np.ones((4, 2))},
            "ppo",
            r"target_tokens must have one dimension, got shape \(4, 2\)",
        ),
    ],
)
def test_mismatching_targets_are_named_by_datum_key_and_shape(make_model, inputs, loss_fn, text):
    """Losses other than cross-entropy accept one target a position only."""
    with pytest.raises(EngineError, match=f"datum 0: .*{text}"):
        make_model().forward([Example(TOKENS, inputs)], loss_fn)
