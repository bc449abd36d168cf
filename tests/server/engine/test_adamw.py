"""Tests of the optimizer against a second, simple implementation of AdamW, and of its edge cases."""

import math

import numpy as np
import pytest

from tinkerwire._server.engine import EngineError
from tinkerwire._server.engine.adamw import AdamW, AdamWSettings


def _scalar_adamw(value, grads, lr, beta1, beta2, eps, decay):
    """Run the textbook's loop for one number in Python floats."""
    m = v = 0.0
    for t, grad in enumerate(grads, start=1):
        m = beta1 * m + (1 - beta1) * grad
        v = beta2 * v + (1 - beta2) * grad**2
        value -= lr * decay * value + lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
    return value


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_equal_textbook_adamw(decay):
    """Five steps of four numbers equal the textbook's loop for each of them."""
    rng = np.random.default_rng(0)
    start, grads = rng.standard_normal(4), rng.standard_normal((5, 4))
    params = {"w": start.copy()}
    optimizer = AdamW.zeros(params)
    settings = AdamWSettings(learning_rate=0.01, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=decay)
    for grad in grads:
        optimizer.update(params, {"w": grad}, settings)
    expected = [_scalar_adamw(start[i], grads[:, i], 0.01, 0.8, 0.9, 1e-3, decay) for i in range(4)]
    np.testing.assert_allclose(params["w"], expected, rtol=1e-12)


def test_clipping_scales_the_whole_gradient():
    """Above the norm the gradient is scaled to the norm; below the norm, and at 0, nothing is scaled."""
    grads = {"a": np.array([3.0]), "b": np.array([4.0])}

    def second_moment(clip: float, scale: float = 1.0) -> list[float]:
        params = {"a": np.zeros(1), "b": np.zeros(1)}
        optimizer = AdamW.zeros(params)
        scaled = {name: value * scale for name, value in grads.items()}
        metrics = optimizer.update(params, scaled, AdamWSettings(grad_clip_norm=clip))
        assert metrics["grad_norm:mean"] == pytest.approx(5.0 * scale)
        return [float(value[0]) for value in optimizer.second.values()]

    assert second_moment(clip=1.0) == pytest.approx(second_moment(clip=0.0, scale=0.2))
    assert second_moment(clip=0.0) == second_moment(clip=5.1)
    assert second_moment(clip=1.0) != second_moment(clip=0.0)


def test_step_without_gradients_applies_weight_decay_only(make_model):
    """A first step without gradients increments the step count and applies weight decay only."""
    model = make_model()
    before = {name: value.copy() for name, value in model.params.items()}
    model.optim_step(0.1)
    assert model.step == 1
    for name, value in model.params.items():
        np.testing.assert_array_equal(value, before[name])
    model.optim_step(0.1, weight_decay=0.5)
    for name, value in model.params.items():
        np.testing.assert_allclose(value, before[name] * 0.95)


def test_metric_names_end_in_a_reduction(make_model, make_examples):
    """Every metric's name ends in a known reduction and every value is a float."""
    model = make_model()
    model.forward_backward(make_examples("ppo"), "ppo")
    for key, value in model.optim_step(1e-3).items():
        assert key.rsplit(":")[-1] in {"mean", "sum", "min", "max"}
        assert type(value) is float


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", -1.0),
        ("learning_rate", math.nan),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("eps", 0.0),
        ("weight_decay", math.inf),
        ("grad_clip_norm", -1.0),
    ],
)
def test_out_of_range_argument_is_named_in_the_error(name, value, make_model, make_examples):
    """The error names the argument and its value; weights and accumulated gradients stay unchanged."""
    model = make_model()
    model.forward_backward(make_examples("cross_entropy"), "cross_entropy")
    with pytest.raises(EngineError, match=f"{name} must be .*, got {value}"):
        model.optim_step(**{"learning_rate": 1e-3, name: value})
    assert model.step == 0
    assert model.grads


def test_infinite_gradient_is_an_error_that_changes_nothing():
    """Parameters, moments and step count stay unchanged."""
    params = {"w": np.ones(2)}
    optimizer = AdamW.zeros(params)
    with pytest.raises(EngineError, match="must be finite, got inf"):
        optimizer.update(params, {"w": np.array([1.0, np.inf])}, AdamWSettings())
    assert optimizer.step == 0
    assert params["w"].tolist() == [1.0, 1.0]
    assert not optimizer.first["w"].any()
