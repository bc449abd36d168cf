"""Tests of the engine's errors: each names the place, the problem and the remedy."""

import numpy as np
import pytest

from tinkerwire._server.engine import EngineError, Example, Sampler, base_model

NANO = "tinkerwire/byte-nano"


def _make_policy_inputs(**changes: object) -> Example:
    inputs = {"target_tokens": [1, 2, 3], "logprobs": [-1.0, -2.0, -3.0], "advantages": [1.0, 0.0, -1.0]}
    tokens = changes.pop("tokens", [4, 5, 6])
    return Example(tokens, {key: value for key, value in {**inputs, **changes}.items() if value is not None})


BAD_EXAMPLES = [
    ({"advantages": None}, r"'advantages' is missing; loss ppo requires target_tokens, logprobs, advantages"),
    ({"target_tokens": None}, r"'target_tokens' is missing"),
    ({"mask": [1.0, 1.0, 1.0]}, r"'mask' is unknown; loss ppo supports .*omit the rest"),
    ({"weights": [1.0, 1.0, 1.0]}, r"'weights' is unknown"),
    ({"logprobs": [-1.0, -2.0]}, r"logprobs must have shape \(3,\), one number per target, got shape \(2,\)"),
    ({"advantages": [[1.0, 0.0, 1.0]]}, r"advantages must have shape \(3,\), .*got shape \(1, 3\)"),
    ({"clip_low_threshold": 0.8}, r"clip_low_threshold must have shape \(3,\), .*got shape \(\)"),
    ({"logprobs": [-1.0, np.nan, -1.0]}, r"logprobs\[1\] must be finite, got nan"),
    ({"advantages": [0.0, 1.0, np.inf]}, r"advantages\[2\] must be finite, got inf"),
    ({"advantages": ["a", "b", "c"]}, r"advantages must have numbers, got dtype <U1"),
    ({"target_tokens": [1, 2]}, r"target_tokens must have one target per token \(3\), got 2"),
    ({"target_tokens": [1, 257, 3]}, r"target_tokens\[1\] must be a token id of .* from 0 to 256, got 257"),
    ({"target_tokens": [1, 2.5, 3]}, r"target_tokens\[1\] must be a token id .* got 2.5; use the tokenizer"),
    ({"target_tokens": [1, np.nan, 3]}, r"target_tokens\[1\] must be a token id .* got nan"),
    ({"tokens": [4, -1, 6]}, r"tokens\[1\] must be a token id .* got -1"),
    ({"tokens": []}, r"tokens must have at least one token"),
    ({"tokens": [[1, 2], [3, 4]]}, r"tokens must have one dimension, got shape \(2, 2\)"),
    ({"tokens": ["a", "b", "c"]}, r"tokens must have integers, got dtype <U1"),
    ({"tokens": np.zeros(2049, int)}, r"tokens must have at most 2048 tokens for tinkerwire/byte-nano, got 2049"),
    (
        {"logprobs": [-1.0, -2000.0, -3.0], "advantages": [1.0, -1.0, 1.0]},
        r"loss at position 1 must be in the range of float32, got inf",
    ),
]


@pytest.mark.parametrize(("changes", "text"), BAD_EXAMPLES, ids=[text[:24] for _, text in BAD_EXAMPLES])
def test_invalid_example_is_named_by_datum_key_and_position(changes, text, make_model):
    """The error names call, datum, key, position and value; accumulated gradients stay unchanged."""
    model = make_model(dtype=np.float32)
    model.forward_backward([_make_policy_inputs()], "ppo")
    before = {name: value.copy() for name, value in model.grads.items()}
    with pytest.raises(EngineError, match=f"^forward_backward: datum 1: .*{text}"):
        model.forward_backward([_make_policy_inputs(), _make_policy_inputs(**changes)], "ppo")
    for name, value in model.grads.items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize(
    ("loss_fn", "config", "text"),
    [
        ("mse", None, "unknown loss 'mse'; choose one of cross_entropy, importance_sampling, ppo"),
        ("ppo", {"beta": 0.1}, "loss ppo: unknown config key 'beta'; choose from: clip_low_thr"),
        ("importance_sampling", {"beta": 0.1}, "choose from: none"),
        ("dro", {"beta": float("nan")}, "loss dro: config 'beta' must be a finite number, got nan"),
        ("dro", {"beta": "much"}, "config 'beta' must be a finite number, got 'much'"),
        ("dro", {"beta": True}, "config 'beta' must be a finite number, got True"),
    ],
)
def test_invalid_loss_or_config_is_named(loss_fn, config, text, make_model):
    """The error names the loss, the key and the value, and lists the valid names."""
    with pytest.raises(EngineError, match=text):
        make_model().forward([_make_policy_inputs()], loss_fn, config)


def test_empty_batch_is_an_error(make_model):
    """The error names the empty batch."""
    with pytest.raises(EngineError, match=r"^forward: must have at least one datum"):
        make_model().forward([], "cross_entropy")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.bool_])
def test_any_numeric_dtype_is_accepted(dtype, make_model):
    """Inputs of other numeric dtypes give the result of the usual ones."""
    tokens = np.array([1, 0, 1])
    example = Example(tokens, {"target_tokens": tokens, "weights": tokens.astype(float)})
    kind = np.uint8 if dtype is np.bool_ else dtype
    converted = Example(tokens.astype(kind), {"target_tokens": tokens.astype(kind), "weights": tokens.astype(dtype)})
    model = make_model()
    expected = model.forward([example], "cross_entropy").metrics
    assert model.forward([converted], "cross_entropy").metrics == expected


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"prompt": []}, "sample: prompt must have at least one token"),
        (
            {"prompt": [65, 300]},
            r"sample: prompt\[1\] must be a token id of tinkerwire/byte-nano from 0 to 256, got 300",
        ),
        ({"prompt": [65] * 2049}, "sample: prompt must have at most 2048 tokens for tinkerwire/byte-nano, got 2049"),
        ({"num_samples": 0}, "num_samples must be at least 1, got 0"),
        ({"max_tokens": -1}, "max_tokens must be at least 0, or None .* got -1"),
        ({"temperature": -0.1}, "temperature must be finite and at least 0 .* got -0.1"),
        ({"temperature": float("nan")}, "temperature must be .* got nan"),
        ({"top_k": 0}, "top_k must be at least 1, or -1 for no limit, got 0"),
        ({"top_k": -2}, "top_k must be .* got -2"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1 .* got 0.0"),
        ({"top_p": 1.1}, "top_p must be .* got 1.1"),
        ({"topk_prompt_logprobs": -1}, "topk_prompt_logprobs must be at least 0, got -1"),
        ({"stop": ""}, r"stop\[0\] must not be empty"),
        ({"stop": ["a", ""]}, r"stop\[1\] must not be empty"),
        ({"stop": [5, 257]}, r"stop\[1\] must be a token id of .* from 0 to 256, got 257"),
        ({"stop": [1.5]}, r"stop\[0\] must be a text or a token id, got 1.5"),
    ],
)
def test_invalid_sampling_argument_is_named(arguments, text):
    """The error names the argument, its value and the range."""
    with pytest.raises(EngineError, match=text):
        Sampler(base_model(NANO)).start(**{"prompt": [65], **arguments})


def test_sampler_rejects_an_adapter_of_another_base(make_model):
    """The error names the base on which the adapter was trained."""
    snapshot = make_model().adapter_snapshot()
    with pytest.raises(EngineError, match=r"base must be tinkerwire/byte-nano for this adapter, got .*byte-small"):
        Sampler(base_model("tinkerwire/byte-small"), snapshot)
