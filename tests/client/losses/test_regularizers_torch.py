"""Tests of regularizers in torch: value and gradients equal those in numpy; they need torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.loss_terms import TERMS, make_batch, make_logprobs
from tinkerwire.training import entropy, gradient_penalty, kl_penalty, l2_penalty

torch = pytest.importorskip("torch")
DATA = make_batch()


def make_leaves() -> list[Any]:
    """Return the log probabilities of the batch as tensors that record gradients."""
    return [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in make_logprobs()]


@pytest.mark.parametrize("name", TERMS)
def test_autograd_gives_the_gradients_of_numpy(name: str) -> None:
    term, leaves = TERMS[name](), make_leaves()
    value, metrics, gradients = term(DATA, make_logprobs())
    found, found_metrics = term(DATA, leaves)
    assert float(found.detach()) == pytest.approx(value)
    assert found_metrics == pytest.approx(metrics)
    found.backward()
    for leaf, gradient in zip(leaves, gradients, strict=True):
        got = np.zeros(gradient.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, gradient, atol=1e-9)


def ppo(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float]]:
    """Return a clipped loss of the ratios to the reference."""
    total = 0.0
    for datum, values in zip(data, logprobs, strict=True):
        ratio = (values - datum.loss_fn_inputs["reference_logprobs"].to_torch()).exp()
        total = total - torch.minimum(ratio, ratio.clamp(0.8, 1.2)).sum()
    return total, {"own": 2.0}


def test_loss_of_the_user_is_added() -> None:
    leaves = make_leaves()
    loss, metrics = (ppo + 0.1 * kl_penalty())(DATA, leaves)
    own = float(ppo(DATA, leaves)[0].detach())
    assert float(loss.detach()) == pytest.approx(own + 0.1 * metrics["kl_reverse_k2:sum"])
    assert metrics["own"] == 2.0
    loss.backward()
    assert all(leaf.grad is not None for leaf in leaves)


def test_gradients_that_a_function_returns_are_used() -> None:
    def own(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float], list[Any]]:
        return 5.0, {}, [torch.full_like(values, 3.0) for values in logprobs]

    leaves = make_leaves()
    loss, _ = (own + 0.0 * entropy())(DATA, leaves)
    assert float(loss.detach()) == 5.0
    loss.backward()
    assert all((leaf.grad == 3.0).all() for leaf in leaves)
    with pytest.raises(ValueError, match="own returns its own gradients, which torch cannot differentiate"):
        gradient_penalty(own + l2_penalty())(DATA, make_leaves())


def test_gradient_penalty_of_a_function_equals_finite_differences() -> None:
    def quartic(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float]]:
        return sum((values**4).sum() for values in logprobs), {}

    term = gradient_penalty(quartic, target=2.0)
    leaves = make_leaves()
    assert torch.autograd.gradcheck(lambda *values: term(DATA, list(values))[0], leaves)


def test_penalty_of_a_loss_without_a_gradient_is_the_square_of_the_target() -> None:
    leaves = make_leaves()
    loss, _ = gradient_penalty(0.0 * l2_penalty(), target=0.5)(DATA, leaves)
    assert float(loss.detach()) == pytest.approx(0.25 * len(DATA))
    loss.backward()
    assert all(torch.isfinite(leaf.grad).all() for leaf in leaves)


@pytest.mark.parametrize("name", TERMS)
def test_infinite_values_that_do_not_count_change_nothing(name: str) -> None:
    term, leaves = TERMS[name](), make_leaves()
    if name == "unmasked kl":
        pytest.skip("all positions count")
    expected = float(term(DATA, leaves)[0].detach())
    for leaf, datum in zip(leaves, DATA, strict=True):
        with torch.no_grad():
            leaf[datum.loss_fn_inputs["mask"].to_torch() == 0] = -torch.inf
    found, _ = term(DATA, leaves)
    assert float(found.detach()) == pytest.approx(expected)
    found.backward()
    assert all(leaf.grad is None or torch.isfinite(leaf.grad).all() for leaf in leaves)


def test_infinite_value_without_a_gradient_of_the_function_changes_nothing() -> None:
    def own(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float], list[Any]]:
        return 5.0, {}, [torch.isfinite(values).double() for values in logprobs]

    leaves = make_leaves()
    with torch.no_grad():
        leaves[0][0] = -torch.inf
    loss, _ = (own + 0.0 * entropy())(DATA, leaves)
    assert float(loss.detach()) == 5.0
    loss.backward()
    assert leaves[0].grad.tolist() == [0.0, 1.0, 1.0]


def test_float32_tensors_train() -> None:
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=1)
        inputs: dict[str, Any] = {"target_tokens": [101, 108, 108, 111], "reference_logprobs": np.full(4, -1.0)}
        data = [tw.Datum(model_input=tw.ModelInput.from_ints([72, 101, 108, 108]), loss_fn_inputs=inputs)]
        loss = ppo + 0.1 * kl_penalty(estimator="k3") - 0.01 * entropy() + 0.01 * gradient_penalty(ppo)
        result = training.forward_backward_custom(data, loss, arrays="torch").result()
        assert {"own", "kl_reverse_k3:sum", "entropy_k2:sum", "gradient_penalty:sum"} <= set(result.metrics)
