"""Tests of compare_logprobs, on values by hand and on a real training step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from tinkerwire.training import LogprobComparison, compare_logprobs


def make_datum(**inputs: Any) -> tw.Datum:
    """Return a datum of four positions."""
    return tw.Datum(
        model_input=tw.ModelInput.from_ints([1, 2, 3, 4]), loss_fn_inputs={"target_tokens": [2, 3, 4, 5], **inputs}
    )


def make_output(*logprobs: list[float]) -> tw.ForwardBackwardOutput:
    """Return the result of a forward_backward."""
    outputs = [{"logprobs": tw.TensorData.from_numpy(np.array(values, np.float32))} for values in logprobs]
    return tw.ForwardBackwardOutput(loss_fn_output_type="x", loss_fn_outputs=outputs, metrics={})


def test_estimates_follow_their_definitions() -> None:
    """The three estimates are the means of the formulas in their descriptions."""
    before, after = np.array([-1.0, -0.5, -3.0]), np.array([-1.2, -0.4, -2.0])
    ratio = np.exp(after - before)
    gap = compare_logprobs([before], [after])
    assert gap.k1 == pytest.approx(np.mean(-np.log(ratio)))
    assert gap.k2 == pytest.approx(np.mean(np.log(ratio) ** 2 / 2))
    assert gap.k3 == pytest.approx(np.mean(ratio - 1 - np.log(ratio)))
    assert (gap.largest_ratio, gap.smallest_ratio) == pytest.approx((ratio.max(), ratio.min()))
    assert (gap.count, gap.worst) == (3, (0, 2))


def test_unbiased_estimates_approach_the_divergence() -> None:
    """On samples of one distribution, k1 and k3 converge to the divergence from the other."""
    rng = np.random.default_rng(0)
    sampling, training = np.log([0.5, 0.3, 0.2]), np.log([0.4, 0.4, 0.2])
    tokens = rng.choice(3, size=200_000, p=np.exp(sampling))
    exact = float((np.exp(sampling) * (sampling - training)).sum())
    gap = compare_logprobs([sampling[tokens]], [training[tokens]])
    assert gap.k1 == pytest.approx(exact, abs=2e-3)
    assert gap.k3 == pytest.approx(exact, abs=2e-3)


def test_equal_logprobs_have_no_gap() -> None:
    gap = compare_logprobs([[-1.0, -2.0]], make_output([-1.0, -2.0]))
    assert gap == LogprobComparison(
        k1=0.0, k2=0.0, k3=0.0, largest_ratio=1.0, smallest_ratio=1.0, worst=(0, 0), count=2
    )


@pytest.mark.parametrize("form", [list, np.asarray, lambda values: tw.TensorData.from_numpy(np.float32(values))])
def test_lists_arrays_and_tensors_give_the_same(form: Any) -> None:
    gap = compare_logprobs([form([-1.0, -2.0])], [form([-1.5, -2.0])])
    assert gap.k1 == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("inputs", "count"),
    [
        ({"mask": np.float32([0, 0, 1, 1])}, 2),
        ({"weights": [0.0, 0.0, 0.0, 0.5]}, 1),
        ({"mask": np.float32([0, 1, 0, 0]), "weights": [1.0, 1.0, 1.0, 1.0]}, 1),
        ({}, 3),
        ({"advantages": [0.0, 1.0, 1.0, 1.0]}, 3),
        ({"advantages": [0.1, 1.0, 1.0, 1.0]}, 4),
    ],
    ids=["mask", "weights", "mask before weights", "neither", "advantages", "a sure token with an advantage"],
)
def test_inputs_of_a_datum_select_the_positions(inputs: dict[str, Any], count: int) -> None:
    datum = make_datum(logprobs=[0.0, -1.0, -1.0, -1.0], **inputs)
    assert compare_logprobs([datum], make_output([-5.0, -1.0, -1.0, -1.0])).count == count


def test_masks_override_the_inputs_of_a_datum() -> None:
    datum = make_datum(logprobs=[0.0, -1.0, -1.0, -1.0], mask=np.ones(4, np.float32))
    gap = compare_logprobs([datum], make_output([-5.0, -1.0, -1.0, -2.0]), masks=[[False, True, True, False]])
    assert (gap.count, gap.k1) == (2, 0.0)


def test_positions_that_do_not_count_may_hold_anything() -> None:
    gap = compare_logprobs([[math.nan, -1.0]], [[-1.0, -1.0]], masks=[[0, 1]])
    assert gap.k1 == 0.0
    assert compare_logprobs([[math.nan]], [[math.nan]], masks=[[0]]).count == 0
    assert compare_logprobs([], []).worst is None


def test_token_that_training_excludes_has_an_infinite_divergence() -> None:
    gap = compare_logprobs([[-1.0]], [[-math.inf]])
    assert (gap.k1, gap.k2, gap.k3, gap.smallest_ratio) == (math.inf, math.inf, math.inf, 0.0)


def test_huge_ratio_is_infinite_without_a_warning() -> None:
    assert compare_logprobs([[-2000.0]], [[-1.0]]).largest_ratio == math.inf


@pytest.mark.parametrize(
    ("sampled", "trained", "masks", "problem"),
    [
        ([[-1.0]], [[-1.0], [-1.0]], None, "trained: expected 1 items, as in sampled, got 2"),
        ([[-1.0]], [[-1.0]], [], "masks: expected 1 items, as in sampled, got 0"),
        ([[-1.0, -2.0]], [[-1.0]], None, r"sampled\[0\] must have the shape of the logprobs, \[1\], got \[2\]"),
        ([[-1.0, math.nan]], [[-1.0, -1.0]], None, r"sampled\[0\]: the logprob at position 1 must be finite, got nan"),
        ([[-math.inf]], [[-1.0]], None, r"sampled\[0\]: the logprob at position 0 must be finite, got -inf"),
        ([[-1.0]], [[math.nan]], None, r"trained\[0\]: the logprob at position 0 must be finite, or minus infinity"),
        ([[-1.0]], [[-1.0]], [[math.nan]], r"masks\[0\] must hold finite weights"),
        ([[-1.0]], [[-1.0]], [[1, 1]], r"masks\[0\] must have the shape"),
        ([make_datum()], make_output([-1.0] * 4), None, r"sampled\[0\]: no 'logprobs' in loss_fn_inputs"),
        ([make_datum(logprobs=[-1.0] * 4)], [[-1.0] * 3], None, r"got \[4\]"),
        ([tw.SampledSequence(stop_reason="stop", tokens=[1])], [[-1.0]], None, "the sample has no logprobs"),
    ],
)
def test_wrong_values_are_rejected_by_place(sampled: Any, trained: Any, masks: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        compare_logprobs(sampled, trained, masks=masks)


@pytest.mark.parametrize(
    ("sampled", "trained", "problem"),
    [
        ("text", [[-1.0]], "sampled: expected a list"),
        ([[-1.0]], 3, "trained: expected a ForwardBackwardOutput"),
        ([[None]], [[-1.0]], r"sampled\[0\]: expected numbers"),
        ([["a"]], [[-1.0]], r"sampled\[0\]: expected numbers"),
    ],
)
def test_wrong_types_are_rejected_by_name(sampled: Any, trained: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        compare_logprobs(sampled, trained)


def test_output_without_logprobs_is_rejected() -> None:
    tensors = {"loss": tw.TensorData.from_numpy(np.zeros(1, np.float32))}
    output = tw.ForwardBackwardOutput(loss_fn_output_type="x", loss_fn_outputs=[tensors], metrics={})
    with pytest.raises(ValueError, match="output 0 has no logprobs, only loss"):
        compare_logprobs([[-1.0]], output)


def test_samples_are_compared_with_the_end_of_their_datums() -> None:
    """On the embedded server, sampling and training agree; after a step they do not."""
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=1)
        prompt = [72, 101, 108]
        params = tw.SamplingParams(max_tokens=6, seed=3)
        sampling = training.save_weights_and_get_sampling_client()
        sequences = sampling.sample(tw.ModelInput.from_ints(prompt), 2, params).result().sequences
        data = []
        for sequence in sequences:
            tokens = [*prompt, *sequence.tokens]
            padding = [0.0] * (len(prompt) - 1)
            inputs = {
                "target_tokens": tokens[1:],
                "logprobs": [*padding, *(sequence.logprobs or [])],
                "advantages": [*padding, *[1.0] * len(sequence.tokens)],
            }
            data.append(tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs))
        first = training.forward_backward(data, "importance_sampling")
        training.optim_step(tw.AdamParams(learning_rate=1e-2))
        second = training.forward(data, "importance_sampling").result()
        gap = compare_logprobs(data, first.result())
        assert gap == compare_logprobs(sequences, first.result())
        assert gap.count == sum(len(sequence.tokens) for sequence in sequences)
        assert gap.k3 < 1e-6
        assert compare_logprobs(data, second).k3 > 1e-4
        assert set(gap.metrics("x/")) == {
            f"x/{name}" for name in ("k1", "k2", "k3", "largest_ratio", "smallest_ratio", "count")
        }
