"""Tests of ``tinkerwire demo``: its success, its failures, and its parts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tinkerwire._cli.entry import main
from tinkerwire._demo.corpus import Corpus, load_corpus
from tinkerwire._demo.reinforcement import ReinforcementRecipe
from tinkerwire._demo.run import DemoFailed, Plan, run_demo
from tinkerwire._demo.supervised import SupervisedRecipe, learning_rate_at

NANO = "tinkerwire/byte-nano"


def make_small_plan(steps: int, rounds: int = 10) -> Plan:
    """Return a plan that takes seconds: the smallest model and few steps."""
    supervised = SupervisedRecipe(steps=steps, batch=8, window=64, learning_rate=1e-2, held_out_windows=16)
    return Plan(
        base_model=NANO,
        rank=16,
        learn=supervised,
        go_on=SupervisedRecipe(steps=2, batch=8, window=64, learning_rate=1e-3, warmup=1, held_out_windows=16),
        reinforce=ReinforcementRecipe(rounds=rounds, prompts=8, group=16, sampled_bytes=16, learning_rate=5e-3),
    )


def test_demo_trains_saves_and_reinforces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Training, sampling, checkpoints and reinforcement succeed on the smallest model; a PNG has the loss curve."""
    run_demo(None, tmp_path, make_small_plan(steps=150))
    output = capsys.readouterr().out
    assert "below the unigram entropy" in output
    assert "/weights/demo" in output
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"


def test_demo_fails_if_the_model_learned_nothing(tmp_path: Path) -> None:
    """After two steps, the loss exceeds the unigram entropy, and the demo raises DemoFailed."""
    with pytest.raises(DemoFailed, match="unigram entropy"):
        run_demo(None, tmp_path, make_small_plan(steps=2))


def test_failed_demo_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the text is too short, standard error has one line with the file and its size."""
    (tmp_path / "short.txt").write_text("too short")
    assert main(["demo", "--text", str(tmp_path / "short.txt"), "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "short.txt: 9 bytes are too few" in error
    assert error.count("\n") == 1


def test_unigram_entropy_of_two_equally_frequent_bytes_is_ln_2() -> None:
    """Two equally frequent bytes have an entropy of ln 2 nats."""
    held_out = np.array([0, 1] * 50)
    assert Corpus("two", held_out, held_out).unigram_entropy == pytest.approx(math.log(2))


def test_training_windows_exclude_held_out_text() -> None:
    """Every window is from the training part; a tenth of the text is held out."""
    corpus = load_corpus(None, 128)
    total = len(corpus.train) + len(corpus.held_out)
    assert len(corpus.held_out) == pytest.approx(total / 10, abs=1)
    windows = corpus.windows(100, 128, np.random.default_rng(0))
    train_text = bytes(corpus.train.tolist())
    assert all(bytes(window.tolist()) in train_text for window in windows)


def test_learning_rate_warms_up_and_decays() -> None:
    """The learning rate peaks at the end of the warm-up and ends at a tenth of the peak."""
    recipe = SupervisedRecipe(steps=100, batch=1, window=1, learning_rate=1.0, warmup=10)
    rates = [learning_rate_at(step, recipe) for step in range(1, 101)]
    assert max(rates) == rates[9]
    assert rates[-1] == pytest.approx(0.1)
