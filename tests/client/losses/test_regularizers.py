"""Tests of regularizers in numpy: gradients by finite differences, and values by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.loss_terms import TERMS, make_batch, make_logprobs
from tinkerwire.training import (
    LossTerm,
    consistency,
    elastic_net_penalty,
    entropy,
    gradient_penalty,
    kl_penalty,
    l1_penalty,
    l2_penalty,
)

STEP = 1e-5
DATA = make_batch()


def differentiate(term: LossTerm, logprobs: list[Any]) -> list[Any]:
    """Return the gradients of a term by central differences."""
    gradients = [np.zeros(array.shape) for array in logprobs]
    for number, array in enumerate(logprobs):
        for place in np.ndindex(array.shape):
            values = []
            for sign in (1, -1):
                moved = [other.copy() for other in logprobs]
                moved[number][place] += sign * STEP
                values.append(term.evaluate(DATA, moved).value)
            gradients[number][place] = (values[0] - values[1]) / (2 * STEP)
    return gradients


@pytest.mark.parametrize("name", TERMS)
def test_gradients_equal_finite_differences(name: str) -> None:
    term, logprobs = TERMS[name](), make_logprobs()
    _, _, gradients = term(DATA, logprobs)
    for gradient, expected in zip(gradients, differentiate(term, logprobs), strict=True):
        np.testing.assert_allclose(gradient, expected, atol=1e-8, rtol=1e-6)
    assert any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("name", [name for name in TERMS if "gradient penalty" not in name])
def test_second_derivatives_equal_finite_differences(name: str) -> None:
    term, logprobs = TERMS[name](), make_logprobs()
    rng = np.random.default_rng(3)
    vectors = [rng.normal(size=array.shape) for array in logprobs]
    curvature = term.evaluate(DATA, logprobs).curvature
    assert curvature is not None
    moved = [
        term.evaluate(DATA, [a + sign * STEP * v for a, v in zip(logprobs, vectors, strict=True)]).gradients
        for sign in (1, -1)
    ]
    for product, after, before in zip(curvature(vectors), *moved, strict=True):
        np.testing.assert_allclose(product, (after - before) / (2 * STEP), atol=1e-8, rtol=1e-6)


def value_of(term: LossTerm, logprobs: list[float], **inputs: Any) -> float:
    """Return the value of a term for one datum of two positions."""
    targets = {"target_tokens": [1, 1], **{name: np.float32(value) for name, value in inputs.items()}}
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1, 1]), loss_fn_inputs=targets)
    return float(term([datum], [np.array(logprobs)])[0])


def test_values_follow_their_definitions() -> None:
    """With differences of 1 and -0.5."""
    given: dict[str, Any] = {"logprobs": [-1.0, -2.0], "reference_logprobs": [-2.0, -1.5]}
    k3 = (math.exp(-1) - 1 + 1) + (math.exp(0.5) - 1 - 0.5)
    assert value_of(kl_penalty(estimator="k1"), **given) == pytest.approx(0.5)
    assert value_of(kl_penalty(estimator="k1", direction="forward"), **given) == pytest.approx(-0.5)
    assert value_of(kl_penalty(), **given) == pytest.approx((1 + 0.25) / 2)
    assert value_of(kl_penalty(estimator="k3"), **given) == pytest.approx(k3)
    assert value_of(kl_penalty(estimator="k3", reduction="mean"), **given) == pytest.approx(k3 / 2)
    assert value_of(l1_penalty(), **given) == pytest.approx(1.5)
    assert value_of(l2_penalty(), **given) == pytest.approx(1.25)
    assert value_of(elastic_net_penalty(l1_ratio=0.2), **given) == pytest.approx(0.2 * 1.5 + 0.8 * 1.25)
    assert value_of(entropy("k1"), **given) == pytest.approx(3.0)
    assert value_of(entropy("plogp"), **given) == pytest.approx(math.exp(-1) + 2 * math.exp(-2))
    assert value_of(gradient_penalty(l2_penalty()), **given) == pytest.approx(4 + 1)
    assert value_of(gradient_penalty(l2_penalty(), target=1.0), **given) == pytest.approx((math.sqrt(5) - 1) ** 2)


def test_estimates_approach_the_divergences_and_the_entropy() -> None:
    """On samples of the model or of the reference, the means converge to the exact values."""
    rng = np.random.default_rng(0)
    model, reference = np.log([0.5, 0.3, 0.2]), np.log([0.4, 0.4, 0.2])
    for direction, sampled, other in (("reverse", model, reference), ("forward", reference, model)):
        tokens = rng.choice(3, size=100_000, p=np.exp(sampled))
        inputs = {"target_tokens": np.ones(len(tokens), np.int64), "reference_logprobs": np.float32(reference[tokens])}
        datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs=inputs)
        exact = float((np.exp(sampled) * (sampled - other)).sum())
        for estimator in ("k1", "k3"):
            term = kl_penalty(direction=direction, estimator=estimator, reduction="mean")  # type: ignore[arg-type]
            assert term([datum], [model[tokens]])[0] == pytest.approx(exact, abs=3e-3)


def test_documented_gradients_are_those_of_divergence_and_entropy() -> None:
    """Weighted by the probabilities of the model, the gradients by its logits equal the exact ones."""
    rng = np.random.default_rng(4)
    logits, reference = rng.normal(size=5), np.log(rng.dirichlet(np.ones(5)))

    def log_softmax(values: Any) -> Any:
        return values - np.log(np.exp(values).sum())

    def exact_gradient(function: Any) -> Any:
        steps = np.eye(5) * STEP
        return np.array([(function(logits + s) - function(logits - s)) / (2 * STEP) for s in steps])

    def expected_gradient(term: LossTerm) -> Any:
        logprobs = log_softmax(logits)
        probabilities = np.exp(logprobs)
        inputs = {"target_tokens": np.arange(5), "reference_logprobs": np.float32(reference)}
        datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs=inputs)
        slopes = term([datum], [logprobs])[2][0]
        # The derivative of a log probability by the logits is the unit vector minus the probabilities.
        return (probabilities * slopes) @ (np.eye(5) - probabilities)

    def reverse(values: Any) -> float:
        logprobs = log_softmax(values)
        return float((np.exp(logprobs) * (logprobs - reference)).sum())

    def forward(values: Any) -> float:
        return float((np.exp(reference) * (reference - log_softmax(values))).sum())

    def exact_entropy(values: Any) -> float:
        return float(-(np.exp(log_softmax(values)) * log_softmax(values)).sum())

    for term, function in (
        (kl_penalty(estimator="k2"), reverse),
        (kl_penalty(estimator="k3"), forward),
        (entropy("k2"), exact_entropy),
    ):
        np.testing.assert_allclose(expected_gradient(term), exact_gradient(function), atol=1e-6)
    for term in (kl_penalty(estimator="k1"), entropy("k1")):
        np.testing.assert_allclose(expected_gradient(term), 0, atol=1e-12)


def test_metrics_have_the_value_of_each_term_without_its_factor() -> None:
    logprobs = make_logprobs()
    first, second = kl_penalty(), l2_penalty(reduction="mean", name="drift")
    loss, metrics, _ = (0.5 * first - 2 * second)(DATA, logprobs)
    assert set(metrics) == {"kl_reverse_k2:sum", "drift:mean"}
    assert metrics["drift:mean"] == second(DATA, logprobs)[0]
    assert loss == pytest.approx(0.5 * metrics["kl_reverse_k2:sum"] - 2 * metrics["drift:mean"])


def own_loss(data: list[tw.Datum], logprobs: list[Any]) -> tuple[float, dict[str, float], list[Any]]:
    """Return the negative log likelihood."""
    return -sum(float(array.sum()) for array in logprobs), {"own": 1.0}, [-np.ones(array.shape) for array in logprobs]


def test_functions_and_terms_can_be_combined() -> None:
    """A function may stand on either side, and sum() works."""
    logprobs = make_logprobs()
    value, metrics, gradients = own_loss(DATA, logprobs)
    penalty = l2_penalty()
    penalty_value, _, penalty_gradients = penalty(DATA, logprobs)
    total, all_metrics, all_gradients = (own_loss + 0.5 * penalty)(DATA, logprobs)
    assert total == pytest.approx(value + 0.5 * penalty_value, rel=1e-6)
    assert all_metrics == {**metrics, "l2:sum": penalty_value}
    for found, own, other in zip(all_gradients, gradients, penalty_gradients, strict=True):
        np.testing.assert_allclose(found, own + 0.5 * other)
    both = sum([penalty, entropy()])
    assert isinstance(both, LossTerm)
    assert both(DATA, logprobs)[0] == (penalty + entropy())(DATA, logprobs)[0]
    assert (penalty + own_loss)(DATA, logprobs)[0] == (own_loss + penalty)(DATA, logprobs)[0]
    assert (penalty / 4)(DATA, logprobs)[0] == (0.25 * penalty)(DATA, logprobs)[0]
    assert (own_loss - penalty)(DATA, logprobs)[0] == pytest.approx(value - penalty_value, rel=1e-6)
    assert (-penalty)(DATA, logprobs)[0] == -penalty_value


def test_batch_without_a_position_that_counts_has_no_penalty() -> None:
    empty = np.zeros(2)
    for term in (kl_penalty(), kl_penalty(reduction="mean"), entropy(reduction="mean")):
        assert value_of(term, [-1.0, -2.0], reference_logprobs=[-1.0, -1.0], mask=empty) == 0.0
    assert consistency(reduction="mean")([], []) == (0.0, {"consistency_l2:mean": 0.0}, [])


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: l2_penalty() + l2_penalty(), "two terms of a loss report the metric 'l2:sum'; pass name="),
        (lambda: l2_penalty() * math.nan, "factor of a loss must be finite, got nan"),
        (lambda: elastic_net_penalty(l1_ratio=1.5), "l1_ratio must be from 0 to 1, got 1.5"),
        (lambda: gradient_penalty(l2_penalty(), target=-1), "target must be at least 0, got -1"),
        (lambda: kl_penalty(direction="backward"), "direction"),  # type: ignore[arg-type]
        (lambda: kl_penalty(estimator="k4"), "estimator"),  # type: ignore[arg-type]
        (lambda: kl_penalty(""), "reference must name an input"),
        (lambda: entropy(reduction="max"), "reduction"),  # type: ignore[arg-type]
    ],
)
def test_wrong_settings_are_rejected(make: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: l2_penalty() * l1_penalty(), "multiplied by a number only"),  # type: ignore[arg-type]
        (lambda: l2_penalty() + 3, "expected a term or a function"),
        (lambda: "text" + l2_penalty(), "expected a term or a function"),
        (lambda: consistency([(0,)]), "pairs: expected positions of two datums"),  # type: ignore[list-item]
        (lambda: gradient_penalty(3), "loss: expected a term or a function"),
    ],
)
def test_wrong_types_are_rejected(make: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        make()


@pytest.mark.parametrize(
    ("term", "inputs", "problem"),
    [
        (kl_penalty(), {}, r"data\[0\]: no 'reference_logprobs' in loss_fn_inputs; kl_reverse_k2 needs"),
        (kl_penalty(), {"reference_logprobs": [-1.0]}, r"must have the shape of the logprobs, \[2\], got \[1\]"),
        (kl_penalty([[-1.0]]), {}, r"reference\[0\] must have the shape"),
        (kl_penalty([[-1.0], [-1.0]]), {}, "reference: expected 1 items, one per datum, got 2"),
        (kl_penalty([[-1.0, math.nan]]), {}, r"reference\[0\] must be finite, got nan at position 1"),
        (entropy(mask="gone"), {}, r"data\[0\]: no 'gone' in loss_fn_inputs; mask= names"),
        (entropy(), {"mask": [-1.0, 1.0]}, "must hold finite weights of at least 0, got -1.0 at 0"),
        (consistency(), {}, "expected an even number of datums, got 1; pass pairs="),
        (consistency([(0, 1)]), {}, "no datum 1 in a batch of 1"),
        (gradient_penalty(own_loss), {}, "second derivatives of the loss are unknown in numpy; use torch"),
        (gradient_penalty(gradient_penalty(l2_penalty([[-1.0, -1.0]]))), {}, "second derivatives"),
    ],
)
def test_batches_that_a_term_cannot_use_are_rejected(term: LossTerm, inputs: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        value_of(term, [-1.0, -2.0], **inputs)


def test_pairs_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"equally many positions that count, got 3 in data\[0\] and 4 in data\[3\]"):
        consistency([(0, 3)], mask="ones")(DATA, make_logprobs())


def test_function_without_gradients_is_rejected_in_numpy() -> None:
    def forgetful(data: list[tw.Datum], logprobs: list[Any]) -> tuple[float, dict[str, float]]:
        return 0.0, {}

    with pytest.raises(TypeError, match=r"forgetful must return \(loss, metrics, gradients\) for numpy arrays"):
        (forgetful + entropy())(DATA, make_logprobs())


def test_same_metric_of_a_function_and_a_term_is_rejected() -> None:
    def named(data: list[tw.Datum], logprobs: list[Any]) -> tuple[float, dict[str, float], list[Any]]:
        return 0.0, {"entropy_k2:sum": 1.0}, logprobs

    with pytest.raises(ValueError, match="two terms of a loss report the metric 'entropy_k2:sum'"):
        (named + entropy())(DATA, make_logprobs())


def test_reference_result_of_forward_trains_against_itself() -> None:
    """On the embedded server, the penalty by the model's own output is 0 at first, and rises with a step."""
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=1)
        inputs: dict[str, Any] = {"target_tokens": [101, 108, 108, 111], "weights": [0.0, 1.0, 1.0, 1.0]}
        data = [tw.Datum(model_input=tw.ModelInput.from_ints([72, 101, 108, 108]), loss_fn_inputs=inputs)]
        reference = training.forward(data, "cross_entropy").result()
        loss = own_loss + 0.1 * kl_penalty(reference, estimator="k3") + 0.1 * entropy("k1")
        metrics = []
        for _ in range(2):
            metrics.append(training.forward_backward_custom(data, loss, arrays="numpy").result().metrics)
            training.optim_step(tw.AdamParams(learning_rate=1e-2)).result()
        assert metrics[0]["kl_reverse_k3:sum"] == pytest.approx(0, abs=1e-9)
        assert metrics[1]["kl_reverse_k3:sum"] > 1e-4
        assert metrics[1]["loss:sum"] < metrics[0]["loss:sum"]
