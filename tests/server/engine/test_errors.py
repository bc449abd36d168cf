"""Requests that cannot be computed: each error names its place, the fact and the way out."""

import numpy as np
import pytest

from tinkerwire._server.engine import EngineError, Example, Sampler, base_model

NANO = "tinkerwire/byte-nano"


def _policy(**changes: object) -> Example:
    inputs = {"target_tokens": [1, 2, 3], "logprobs": [-1.0, -2.0, -3.0], "advantages": [1.0, 0.0, -1.0]}
    tokens = changes.pop("tokens", [4, 5, 6])
    return Example(tokens, {key: value for key, value in {**inputs, **changes}.items() if value is not None})


BAD_EXAMPLES = [
    ({"advantages": None}, r"'advantages' is missing; loss ppo needs target_tokens, logprobs, advantages"),
    ({"target_tokens": None}, r"'target_tokens' is missing"),
    ({"mask": [1.0, 1.0, 1.0]}, r"'mask' is unknown; loss ppo reads .*leave the rest out"),
    ({"weights": [1.0, 1.0, 1.0]}, r"'weights' is unknown"),
    ({"logprobs": [-1.0, -2.0]}, r"logprobs has shape \(2,\) beside 3 tokens; pass shape \(3,\)"),
    ({"advantages": [[1.0, 0.0, 1.0]]}, r"advantages has shape \(1, 3\) beside 3 tokens"),
    ({"clip_low_threshold": 0.8}, r"clip_low_threshold has shape \(\) beside 3 tokens"),
    ({"logprobs": [-1.0, np.nan, -1.0]}, r"logprobs\[1\] is nan; pass finite numbers"),
    ({"advantages": [0.0, 1.0, np.inf]}, r"advantages\[2\] is inf"),
    ({"advantages": ["a", "b", "c"]}, r"advantages has dtype <U1; pass numbers"),
    ({"target_tokens": [1, 2]}, r"target_tokens has 2 entries beside 3 tokens; pass one target a token"),
    ({"target_tokens": [1, 257, 3]}, r"target_tokens\[1\] is 257; token ids of .* from 0 to 256"),
    ({"target_tokens": [1, 2.5, 3]}, r"target_tokens\[1\] is 2.5; token ids .* whole numbers"),
    ({"target_tokens": [1, np.nan, 3]}, r"target_tokens\[1\] is nan"),
    ({"tokens": [4, -1, 6]}, r"tokens\[1\] is -1; token ids"),
    ({"tokens": []}, r"tokens is empty; pass at least one token"),
    ({"tokens": [[1, 2], [3, 4]]}, r"tokens has shape \(2, 2\); pass one dimension"),
    ({"tokens": ["a", "b", "c"]}, r"tokens has dtype <U1; pass integers"),
    ({"tokens": np.zeros(2049, int)}, r"tokens has 2049 tokens but tinkerwire/byte-nano reads at most 2048"),
    ({"logprobs": [-1.0, -2000.0, -3.0], "advantages": [1.0, -1.0, 1.0]}, r"loss at position 1 is inf"),
]


@pytest.mark.parametrize(("changes", "text"), BAD_EXAMPLES, ids=[text[:24] for _, text in BAD_EXAMPLES])
def test_a_bad_example_is_named_by_datum_key_and_position(changes, text, make_model):
    """The text starts with call and datum, names key, position and value, and gathered gradients stay."""
    model = make_model(dtype=np.float32)
    model.forward_backward([_policy()], "ppo")
    before = {name: value.copy() for name, value in model.grads.items()}
    with pytest.raises(EngineError, match=f"^forward_backward: datum 1: .*{text}"):
        model.forward_backward([_policy(), _policy(**changes)], "ppo")
    for name, value in model.grads.items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize(
    ("loss_fn", "config", "text"),
    [
        ("mse", None, "loss 'mse' is unknown; choose one of cross_entropy, importance_sampling, ppo"),
        ("ppo", {"beta": 0.1}, "loss ppo: config key 'beta' is unknown; its config keys are: clip_low_thr"),
        ("importance_sampling", {"beta": 0.1}, "its config keys are: none"),
        ("dro", {"beta": float("nan")}, "loss dro: config 'beta' is nan; pass a finite number"),
        ("dro", {"beta": "much"}, "config 'beta' is 'much'"),
        ("dro", {"beta": True}, "config 'beta' is True"),
    ],
)
def test_bad_losses_and_configs_are_named(loss_fn, config, text, make_model):
    """The text names the loss, the key and the value, and lists what exists."""
    with pytest.raises(EngineError, match=text):
        make_model().forward([_policy()], loss_fn, config)


def test_no_example_is_an_error(make_model):
    """An empty batch is named as such."""
    with pytest.raises(EngineError, match=r"^forward: there is no datum; pass at least one"):
        make_model().forward([], "cross_entropy")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.bool_])
def test_any_numeric_dtype_is_read(dtype, make_model):
    """Inputs of other numeric dtypes give the result of the usual ones."""
    tokens = np.array([1, 0, 1])
    plain = Example(tokens, {"target_tokens": tokens, "weights": tokens.astype(float)})
    kind = np.uint8 if dtype is np.bool_ else dtype
    other = Example(tokens.astype(kind), {"target_tokens": tokens.astype(kind), "weights": tokens.astype(dtype)})
    model = make_model()
    expected = model.forward([plain], "cross_entropy").metrics
    assert model.forward([other], "cross_entropy").metrics == expected


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"prompt": []}, "sample: prompt is empty"),
        ({"prompt": [65, 300]}, r"sample: prompt\[1\] is 300; token ids of tinkerwire/byte-nano"),
        ({"prompt": [65] * 2049}, "sample: prompt has 2049 tokens but tinkerwire/byte-nano reads at most 2048"),
        ({"num_samples": 0}, "num_samples is 0; pass 1 or more"),
        ({"max_tokens": -1}, "max_tokens is -1; pass 0 or more, or None"),
        ({"temperature": -0.1}, "temperature is -0.1; pass a finite number of 0 or more, 0 for greedy"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0; pass 1 or more, or -1 for no limit"),
        ({"top_k": -2}, "top_k is -2"),
        ({"top_p": 0.0}, "top_p is 0.0; pass a number above 0 up to 1"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"topk_prompt_logprobs": -1}, "topk_prompt_logprobs is -1"),
        ({"stop": ""}, r"stop\[0\] is an empty text"),
        ({"stop": ["a", ""]}, r"stop\[1\] is an empty text"),
        ({"stop": [5, 257]}, r"stop\[1\] is 257; token ids of .* go from 0 to 256"),
        ({"stop": [1.5]}, r"stop\[0\] is 1.5; pass texts or token ids"),
    ],
)
def test_bad_sampling_requests_are_named(arguments, text):
    """The text names the argument, its value and the range."""
    with pytest.raises(EngineError, match=text):
        Sampler(base_model(NANO)).sample(**{"prompt": [65], **arguments})


def test_an_adapter_of_another_base_is_named(make_model):
    """A sampler refuses an adapter that was trained on another base."""
    snapshot = make_model().adapter_snapshot()
    with pytest.raises(EngineError, match=r"adapter is for tinkerwire/byte-nano but the base is .*byte-small"):
        Sampler(base_model("tinkerwire/byte-small"), snapshot)
