"""The demo keeps its promises, and says so when it does not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tinkerwire._cli.main import main
from tinkerwire._demo.corpus import Corpus, load_corpus
from tinkerwire._demo.reinforcement import ReinforcementRecipe
from tinkerwire._demo.run import DemoFailed, Plan, run_demo
from tinkerwire._demo.supervised import SupervisedRecipe, learning_rate_at

NANO = "tinkerwire/byte-nano"


def small_plan(steps: int, rounds: int = 10) -> Plan:
    """The demo in seconds: the smallest model, and few steps."""
    learn = SupervisedRecipe(steps=steps, batch=8, window=64, learning_rate=1e-2, held_out_windows=16)
    return Plan(
        base_model=NANO,
        rank=16,
        learn=learn,
        go_on=SupervisedRecipe(steps=2, batch=8, window=64, learning_rate=1e-3, warmup=1, held_out_windows=16),
        reinforce=ReinforcementRecipe(rounds=rounds, prompts=8, group=16, sampled_bytes=16, learning_rate=5e-3),
    )


def test_the_whole_road_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Training, sampling, checkpoints and reinforcement succeed on the smallest model, and the curve is drawn."""
    run_demo(None, tmp_path, small_plan(steps=150))
    said = capsys.readouterr().out
    assert "below the unigram entropy" in said
    assert "/weights/demo" in said
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"


def test_a_model_that_learned_nothing_fails_the_demo(tmp_path: Path) -> None:
    """Two steps do not beat the unigram entropy, and the demo says so instead of claiming success."""
    with pytest.raises(DemoFailed, match="unigram entropy"):
        run_demo(None, tmp_path, small_plan(steps=2))


def test_a_failed_demo_has_a_failing_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A text that is too short ends the command with 1 and one line that says what is missing."""
    (tmp_path / "short.txt").write_text("too short")
    assert main(["demo", "--text", str(tmp_path / "short.txt"), "--out", str(tmp_path)]) == 1
    assert "short.txt: 9 bytes are too few" in capsys.readouterr().err


def test_unigram_entropy_is_that_of_the_held_out_bytes() -> None:
    """Two equally frequent bytes hold ln 2 nats each."""
    held_out = np.array([0, 1] * 50)
    assert Corpus("two", held_out, held_out).unigram_entropy == pytest.approx(math.log(2))


def test_nothing_held_out_is_trained_on() -> None:
    """The two parts of the text are disjoint and make up the whole."""
    corpus = load_corpus(None, 128)
    whole = np.concatenate([corpus.train, corpus.held_out])
    assert len(corpus.held_out) == pytest.approx(len(whole) / 10, abs=1)
    windows = corpus.windows(100, 128, np.random.default_rng(0))
    text = bytes(corpus.train.tolist())
    assert all(bytes(window.tolist()) in text for window in windows)


def test_the_learning_rate_rises_and_falls() -> None:
    """It starts near nothing, peaks at the end of the warm-up, and ends at a tenth."""
    recipe = SupervisedRecipe(steps=100, batch=1, window=1, learning_rate=1.0, warmup=10)
    rates = [learning_rate_at(step, recipe) for step in range(1, 101)]
    assert max(rates) == rates[9]
    assert rates[-1] == pytest.approx(0.1)
