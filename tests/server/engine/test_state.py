"""Tests of seeds, flags, saving and resuming."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tinkerwire._server.engine import EngineError, LoraModel, LoraSettings, base_model

NANO = "tinkerwire/byte-nano"


def _train(model: LoraModel, examples, steps: range) -> None:
    for step in steps:
        model.forward_backward(examples[step % 2 :], "cross_entropy")
        model.optim_step(1e-2, weight_decay=0.01)


def _assert_same(model: LoraModel, expected: LoraModel) -> None:
    arrays = expected.state_arrays()
    for name, value in model.state_arrays().items():
        np.testing.assert_array_equal(value, arrays[name], err_msg=name)


def test_equal_seeds_give_equal_models_to_the_bit(make_model, make_examples):
    """The bits are equal before and after training; another seed gives other bits."""
    examples = make_examples("cross_entropy", lengths=(60, 40, 33, 5) * 12)
    first, second = (make_model(dtype=np.float32, moved=False, seed=5) for _ in range(2))
    different = make_model(dtype=np.float32, moved=False, seed=6)
    _assert_same(first, second)
    for model in (first, second, different):
        _train(model, examples, range(4))
    _assert_same(first, second)
    assert any((first.params[name] != different.params[name]).any() for name in first.params)


def test_equal_seeds_give_equal_bits_in_another_process():
    """A checksum of trained weights is the same in two processes with different hash seeds."""
    code = (
        "import hashlib, numpy as np\n"
        "from tinkerwire._server.engine import Example, LoraModel, LoraSettings, base_model\n"
        f"model = LoraModel(base_model({NANO!r}), LoraSettings(rank=4, seed=3))\n"
        "tokens = np.arange(90) % 50\n"
        "for _ in range(3):\n"
        "    model.forward_backward([Example(tokens, {'target_tokens': tokens + 1})] * 9, 'cross_entropy')\n"
        "    model.optim_step(1e-2)\n"
        "print(hashlib.sha256(b''.join(v.tobytes() for v in model.state_arrays().values())).hexdigest())\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    ]
    assert runs[0] == runs[1]


def test_without_a_seed_models_differ():
    """Two models with seed None start from different adapters."""
    first, second = (LoraModel(base_model(NANO), LoraSettings(rank=2, seed=None)) for _ in range(2))
    assert any((first.params[name] != second.params[name]).any() for name in first.params)


def test_new_adapter_does_not_change_logprobs(make_model, make_examples):
    """Before training, two seeds give the log probabilities of the base."""
    examples = make_examples("cross_entropy")
    results = [make_model(moved=False, seed=seed).forward(examples, "cross_entropy") for seed in (1, 2)]
    for first, second in zip(results[0].outputs, results[1].outputs, strict=True):
        np.testing.assert_array_equal(first["logprobs"], second["logprobs"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_resumed_training_equals_uninterrupted_training(dtype, make_model, make_examples):
    """Loaded with the optimizer, the next steps give the same bits; without the optimizer, they do not."""
    examples = make_examples("cross_entropy", lengths=(30, 20, 7))
    uninterrupted = make_model(dtype=dtype)
    _train(uninterrupted, examples, range(3))
    saved = uninterrupted.state_arrays()
    _train(uninterrupted, examples, range(3, 6))
    for optimizer in (True, False):
        resumed = make_model(dtype=dtype, seed=99)
        resumed.load_arrays(saved, optimizer=optimizer)
        assert resumed.step == (3 if optimizer else 0)
        _train(resumed, examples, range(3, 6))
        is_equal = all((resumed.params[name] == uninterrupted.params[name]).all() for name in uninterrupted.params)
        assert is_equal is optimizer


def test_saved_arrays_are_copies(make_model, make_examples):
    """Training after saving changes neither the saved arrays nor a snapshot."""
    model = make_model()
    saved, snapshot = model.state_arrays(), model.adapter_snapshot()
    _train(model, make_examples("cross_entropy"), range(2))
    for name, value in model.params.items():
        np.testing.assert_array_equal(saved[name], snapshot.params[name])
        assert (value != saved[name]).any()
    with pytest.raises(ValueError, match="read-only"):
        next(iter(snapshot.params.values()))[0] = 1.0


def test_loading_clears_accumulated_gradients(make_model, make_examples):
    """Gradients of the replaced weights do not affect the next step."""
    model = make_model()
    saved = model.state_arrays()
    model.forward_backward(make_examples("cross_entropy"), "cross_entropy")
    model.load_arrays(saved, optimizer=True)
    assert not model.grads


@pytest.mark.parametrize("trained", ["attn", "mlp", "unembed"])
def test_flags_choose_what_trains(trained, make_model, make_examples):
    """With one flag set only its group has parameters, and all of them move."""
    flags = {f"train_{part}": part == trained for part in ("attn", "mlp", "unembed")}
    model = make_model(moved=True, **flags)
    place = {"attn": ".attn.", "mlp": ".mlp.", "unembed": "unembedding"}[trained]
    counts = {"attn": 2 * 4 * 2, "mlp": 2 * 2 * 2, "unembed": 2}
    assert all(place in name for name in model.params)
    assert len(model.params) == counts[trained]
    before = model.state_arrays()
    _train(model, make_examples("cross_entropy"), range(1))
    assert all((value != before[name]).any() for name, value in model.params.items())


@pytest.mark.parametrize("rank", [1, 5, 32])
def test_rank_is_the_inner_width(rank, make_model):
    """Every A ends and every B starts with the rank."""
    for name, value in make_model(rank=rank).params.items():
        assert value.shape[1 if name.endswith(".A") else 0] == rank


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"rank": 0}, "rank must be 1 to 32 for tinkerwire/byte-nano, got 0"),
        ({"rank": 33}, "rank must be .* got 33"),
        ({"seed": -1}, "seed must be at least 0, .* got -1"),
        (
            {"train_attn": False, "train_mlp": False, "train_unembed": False},
            "at least one of train_attn, train_mlp and train_unembed",
        ),
    ],
)
def test_invalid_setting_is_named_in_the_error(settings, text):
    """The error names the setting, its value and the range."""
    with pytest.raises(EngineError, match=text):
        LoraModel(base_model(NANO), LoraSettings(**{"rank": 2, "seed": 0, **settings}))


def _remove(arrays, name):
    return {key: value for key, value in arrays.items() if key != name}


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda a: _remove(a, "lora.unembedding.A"), "'lora.unembedding.A' is missing"),
        (
            lambda a: _remove(a, "adam.step"),
            "'adam.step' is missing; load a training state, or load without the optimizer",
        ),
        (lambda a: _remove(a, "adam.first.lora.unembedding.B"), "'adam.first.lora.unembedding.B' is missing"),
        (lambda a: a | {"lora.unembedding.A": np.zeros((32, 9))}, r"must have shape \(32, 3\), got \(32, 9\)"),
        (lambda a: a | {"lora.unembedding.A": np.full((32, 3), np.nan)}, "must only have finite floats"),
        (
            lambda a: a | {"lora.layers.9.attn.q.A": np.zeros((32, 3))},
            "this model does not have 'lora.layers.9.attn.q.A'",
        ),
    ],
)
def test_mismatching_state_is_rejected_and_changes_nothing(spoil, text, make_model):
    """The error names the array, and the model stays unchanged."""
    model = make_model()
    before = model.state_arrays()
    with pytest.raises(EngineError, match=text):
        model.load_arrays(spoil(make_model(seed=1).state_arrays()), optimizer=True)
    for name, value in model.state_arrays().items():
        np.testing.assert_array_equal(value, before[name])


def test_unknown_base_model_error_lists_the_valid_names():
    """The error lists the base models, and the dtypes."""
    with pytest.raises(EngineError, match=r"unknown base model 'gpt-9'; choose one of tinkerwire/byte-nano"):
        base_model("gpt-9")
    with pytest.raises(EngineError, match="dtype must be float32 or float64, got float16"):
        base_model(NANO, np.float16)


def test_base_weights_are_shared_and_read_only():
    """A base is created once, its float64 copy has the same numbers, and its arrays are read-only."""
    base, wider_base = base_model(NANO), base_model(NANO, np.float64)
    assert base_model(NANO) is base
    for name, value in base.weights.items():
        np.testing.assert_array_equal(value, wider_base.weights[name])
        assert not value.flags.writeable
