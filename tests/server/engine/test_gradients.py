"""Tests of gradients against central differences in float64, and of the sums over batches."""

import numpy as np
import pytest

from tinkerwire._server.engine import LOSSES, Example, LoraModel

# Small enough for the error of the difference, which is proportional to its square, to stay below the bound.
STEP = 1e-6

# Measured errors are 5e-8, and 2e-7 for cispo, because its fixed ratio is read back as float32.
BOUND = 5e-7


def _compute_loss(model: LoraModel, examples: list[Example], loss_fn: str) -> float:
    return model.forward(examples, loss_fn).metrics["loss:sum"]


def _make_surrogate(model: LoraModel, examples: list[Example], loss_fn: str):
    """Evaluate the function of the engine's gradient; cispo has its clipped ratio fixed."""
    if loss_fn != "cispo":
        return lambda: _compute_loss(model, examples, loss_fn)
    evaluated = []
    for example, output in zip(examples, model.forward(examples, loss_fn).outputs, strict=True):
        p, inputs = output["logprobs"].astype(np.float64), example.inputs
        ratio = np.exp(p - inputs["logprobs"])
        weights = np.clip(ratio, inputs["clip_low_threshold"], inputs["clip_high_threshold"])
        evaluated.append(
            Example(
                example.tokens,
                {
                    "target_tokens": inputs["target_tokens"],
                    "weights": weights * inputs["advantages"],
                },
            )
        )
    return lambda: _compute_loss(model, evaluated, "cross_entropy")


def _find_worst_relative_error(model: LoraModel, examples: list[Example], loss_fn: str) -> float:
    """Return the error along a random direction of each trained matrix and at three of its entries."""
    model.forward_backward(examples, loss_fn)
    grads = {name: value.copy() for name, value in model.grads.items()}
    value_of = _make_surrogate(model, examples, loss_fn)
    assert set(grads) == set(model.params)
    rng, worst = np.random.default_rng(0), 0.0
    for name, param in model.params.items():
        entries = [np.zeros(param.size) for _ in range(3)]
        for entry in entries:
            entry[rng.integers(param.size)] = 1.0
        for flat in (rng.standard_normal(param.size), *entries):
            direction = flat.reshape(param.shape)
            start = param.copy()
            np.copyto(param, start + STEP * direction)
            above = value_of()
            np.copyto(param, start - STEP * direction)
            below = value_of()
            np.copyto(param, start)
            measured = (above - below) / (2 * STEP)
            claimed = float((grads[name] * direction).sum())
            worst = max(worst, abs(measured - claimed) / (1.0 + abs(measured)))
    return worst


@pytest.mark.parametrize("loss_fn", LOSSES)
def test_every_gradient_of_every_loss_equals_central_differences(loss_fn, make_model, make_examples):
    """The batch has unequal lengths, and B is nonzero."""
    assert _find_worst_relative_error(make_model(), make_examples(loss_fn), loss_fn) < BOUND


@pytest.mark.parametrize("loss_fn", LOSSES)
def test_new_adapter_has_exact_gradients(loss_fn, make_model, make_examples):
    """While B is zero, A's gradient is zero and B's equals the measured one."""
    model = make_model(moved=False)
    assert _find_worst_relative_error(model, make_examples(loss_fn), loss_fn) < BOUND
    assert all(not value.any() for name, value in model.grads.items() if name.endswith(".A"))
    assert all(value.any() for name, value in model.grads.items() if name.endswith(".B"))


@pytest.mark.parametrize("loss_fn", LOSSES)
def test_batch_equals_the_sum_of_its_examples(loss_fn, make_model, make_examples):
    """Loss, logprobs and gradients of a batch equal those of its examples, computed singly."""
    batched, separate = make_model(), make_model()
    examples = make_examples(loss_fn, lengths=(4, 11, 1, 7, 7))
    batch_result = batched.forward_backward(examples, loss_fn)
    singles = [separate.forward_backward([example], loss_fn) for example in examples]
    assert batch_result.metrics["loss:sum"] == pytest.approx(sum(single.metrics["loss:sum"] for single in singles))
    for output, single in zip(batch_result.outputs, singles, strict=True):
        np.testing.assert_allclose(output["logprobs"], single.outputs[0]["logprobs"], rtol=1e-6)
    for name, value in batched.grads.items():
        np.testing.assert_allclose(value, separate.grads[name], rtol=1e-9, atol=1e-12)


def test_gradients_accumulate_until_optim_step(make_model, make_examples):
    """Two calls of one batch accumulate twice its gradient, and optim_step clears it."""
    model, examples = make_model(), make_examples("cross_entropy")
    model.forward_backward(examples, "cross_entropy")
    single_grads = {name: value.copy() for name, value in model.grads.items()}
    model.forward_backward(examples, "cross_entropy")
    for name, value in model.grads.items():
        np.testing.assert_allclose(value, 2 * single_grads[name])
    model.optim_step(1e-3)
    assert not model.grads


def test_padding_does_not_change_results(make_model, make_examples):
    """A short example has the same result alone and beside a long one that pads it, up to rounding."""
    model = make_model()
    short_example, long_example = make_examples("cross_entropy", lengths=(18, 20))
    alone_logprobs = model.forward([short_example], "cross_entropy").outputs[0]["logprobs"]
    batched_logprobs = model.forward([short_example, long_example], "cross_entropy").outputs[0]["logprobs"]
    np.testing.assert_allclose(batched_logprobs, alone_logprobs, rtol=1e-6)


def test_later_tokens_do_not_change_earlier_logprobs(make_model, make_examples):
    """A change of the last token leaves every earlier log probability unchanged."""
    model = make_model()
    (example,) = make_examples("cross_entropy", lengths=(12,))
    changed = Example(np.append(example.tokens[:-1], 99), example.inputs)
    before = model.forward([example], "cross_entropy").outputs[0]["logprobs"]
    after = model.forward([changed], "cross_entropy").outputs[0]["logprobs"]
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert before[-1] != after[-1]


def test_forward_accumulates_no_gradient(make_model, make_examples):
    """Forward returns the same result as forward_backward."""
    model, examples = make_model(), make_examples("ppo")
    evaluated = model.forward(examples, "ppo")
    assert not model.grads
    assert model.forward_backward(examples, "ppo").metrics == evaluated.metrics


def test_chunk_size_does_not_change_the_gradient(make_model, make_examples, monkeypatch):
    """A batch that is cut into many chunks has the gradient of the same batch in one chunk."""
    examples = make_examples("cross_entropy", lengths=range(1, 30))
    small_chunks, large_chunks = make_model(), make_model()
    monkeypatch.setattr("tinkerwire._server.engine.batch.PIECE_TOKENS", 16)
    small_chunks.forward_backward(examples, "cross_entropy")
    monkeypatch.setattr("tinkerwire._server.engine.batch.PIECE_TOKENS", 10_000)
    large_chunks.forward_backward(examples, "cross_entropy")
    for name, value in small_chunks.grads.items():
        np.testing.assert_allclose(value, large_chunks.grads[name], rtol=1e-9, atol=1e-12)
