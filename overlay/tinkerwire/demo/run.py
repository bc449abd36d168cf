"""The demo from start to end, and the checks that decide whether it succeeded."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from ..sampling import SamplingClient
from ..service import ServiceClient
from ..training import TrainingClient
from ..types import ModelInput, SamplingParams
from . import display, reinforcement, supervised
from .corpus import Corpus, load_corpus

RECIPE = supervised.Recipe(steps=500, batch=8, window=128, learning_rate=3e-3)
RANK = 32
MARGIN = 0.3
"""How far below the unigram entropy the loss on held-out text has to end, in nats per byte."""
CONTINUED_STEPS = 10


class DemoFailed(Exception):
    """The demo ran, and did not reach what it promises."""


def run_demo(text: Path | None, out: Path, base_url: str, base_model: str, seed: int = 0) -> None:
    """Train, sample, reinforce, save, load and go on.

    Args:
        text: what to learn; None for the text that CPython ships.
        out: folder for the loss curve.
        base_url: the server; "local" is the embedded one.
        base_model: a model of that server whose tokens are bytes.

    Raises:
        DemoFailed: a check did not hold; the text says which.
        ValueError: a text that is too short.
    """
    console = Console()
    started = time.monotonic()
    corpus = load_corpus(text, RECIPE.window)
    out.mkdir(parents=True, exist_ok=True)
    console.print(f"Learning [bold]{corpus.name}[/]: {len(corpus.train):,} bytes, {len(corpus.held_out):,} held out")
    with ServiceClient(base_url=base_url) as service:
        client = service.create_lora_training_client(base_model, rank=RANK, seed=seed)
        _show(console, corpus, "before training", client.save_weights_and_get_sampling_client())
        curve = _supervised(console, client, corpus, seed)
        _draw(console, curve, corpus, out)
        _show(console, corpus, "after training", client.save_weights_and_get_sampling_client())
        _check_loss(console, curve, corpus)
        _checkpoint(console, service, client, corpus, seed)
        _reinforced(console, client, corpus, seed)
    console.print(f"Done in {time.monotonic() - started:.0f} s.")


def _supervised(console: Console, client: TrainingClient, corpus: Corpus, seed: int) -> supervised.Curve:
    with display.progress_bar(console) as progress:
        task = progress.add_task("training", total=RECIPE.steps, figures="")

        def on_step(curve: supervised.Curve) -> None:
            figures = f"loss {curve.train[-1][1]:.3f}  held out {curve.held_out[-1][1]:.3f}"
            progress.update(task, completed=curve.train[-1][0], figures=figures)

        return supervised.train(client, corpus, RECIPE, seed, on_step)


def _reinforced(console: Console, client: TrainingClient, corpus: Corpus, seed: int) -> None:
    recipe = reinforcement.Recipe()
    console.print(f"Reinforcing: the reward is the {reinforcement.REWARD}")
    with display.progress_bar(console) as progress:
        task = progress.add_task("reinforcing", total=recipe.rounds, figures="")

        def on_round(rewards: list[float]) -> None:
            progress.update(task, completed=len(rewards), figures=f"reward {rewards[-1]:.3f}")

        rewards = reinforcement.reinforce(client, corpus, recipe, seed, on_round)
    console.print("reward by round: " + " ".join(f"{reward:.3f}" for reward in rewards))
    early, late = sum(rewards[:2]) / 2, sum(rewards[-2:]) / 2
    if late <= early:
        raise DemoFailed(f"the reward did not rise: {early:.3f} in the first two rounds, {late:.3f} in the last two")


def _check_loss(console: Console, curve: supervised.Curve, corpus: Corpus) -> None:
    final, entropy = curve.held_out[-1][1], corpus.unigram_entropy
    console.print(f"held-out loss {final:.3f} nats per byte, {entropy - final:.3f} below the unigram entropy")
    if final > entropy - MARGIN:
        raise DemoFailed(f"held-out loss {final:.3f} is not {MARGIN} below the unigram entropy {entropy:.3f}")


def _checkpoint(console: Console, service: ServiceClient, client: TrainingClient, corpus: Corpus, seed: int) -> None:
    """Save, list, load into a new client, and check that it goes on exactly where the first one was."""
    path = client.save_state("demo").result().path
    listed = service.create_rest_client().list_checkpoints(client.model_id).result().checkpoints
    for checkpoint in listed:
        size = (checkpoint.size_bytes or 0) / 1024
        console.print(f"checkpoint {checkpoint.tinker_path}  {size:.0f} KiB", soft_wrap=True)
    if path not in [checkpoint.tinker_path for checkpoint in listed]:
        raise DemoFailed(f"{path} was saved but is not listed")
    saved = supervised.held_out_loss(client, corpus, RECIPE)
    resumed = service.create_training_client_from_state_with_optimizer(path)
    loaded = supervised.held_out_loss(resumed, corpus, RECIPE)
    if abs(loaded - saved) > 1e-6:
        raise DemoFailed(f"held-out loss {loaded:.6f} after loading differs from {saved:.6f} before saving")
    more = supervised.Recipe(
        steps=CONTINUED_STEPS,
        batch=RECIPE.batch,
        window=RECIPE.window,
        learning_rate=RECIPE.learning_rate / 10,
        warmup=1,
    )
    curve = supervised.train(resumed, corpus, more, seed + 1, lambda _: None)
    console.print(
        f"loaded, continued {CONTINUED_STEPS} steps: held-out loss {loaded:.3f} -> {curve.held_out[-1][1]:.3f}"
    )


def _draw(console: Console, curve: supervised.Curve, corpus: Corpus, out: Path) -> None:
    display.draw_in_terminal(console, curve, corpus.unigram_entropy)
    file = out / "loss.png"
    display.draw_png(file, curve, corpus.unigram_entropy, corpus.name)
    console.print(f"The curve as a picture: {file}")


def _show(console: Console, corpus: Corpus, title: str, sampler: SamplingClient) -> None:
    prompt = corpus.prompt(40)
    params = SamplingParams(max_tokens=160, temperature=0.7, seed=1)
    response = sampler.sample(ModelInput.from_ints(list(prompt)), 1, params).result()
    display.show_sample(console, title, prompt, bytes(token % 256 for token in response.sequences[0].tokens))
