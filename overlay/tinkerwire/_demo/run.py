"""The demo from start to end, and the checks that decide whether it succeeded."""

from __future__ import annotations

import time
from pathlib import Path

import attrs
from rich.console import Console

from .._sampling.client import SamplingClient
from .._service import ServiceClient
from .._training.client import TrainingClient
from ..types import ModelInput, SamplingParams
from . import display, reinforcement
from .corpus import Corpus, load_corpus
from .supervised import Curve, SupervisedRecipe, held_out_loss, train

MARGIN = 0.3
"""Required distance of the final held-out loss below the unigram entropy, in nats per byte."""

LEARN = SupervisedRecipe(steps=500, batch=8, window=128, learning_rate=3e-3)
GO_ON = SupervisedRecipe(steps=10, batch=8, window=128, learning_rate=3e-4, warmup=1)
REINFORCE = reinforcement.ReinforcementRecipe()


class DemoFailed(Exception):
    """The demo ran but missed one of its targets."""


@attrs.frozen(kw_only=True)
class Plan:
    """Settings of all parts of the demo."""

    base_url: str = "local"
    base_model: str = "tinkerwire/byte-small"
    rank: int = 32
    seed: int = 0
    learn: SupervisedRecipe = LEARN
    go_on: SupervisedRecipe = GO_ON
    reinforce: reinforcement.ReinforcementRecipe = REINFORCE


def run_demo(text: Path | None, out: Path, plan: Plan) -> None:
    """Train, sample, save, load, resume and reinforce.

    Args:
        text: file to learn; None for the text that CPython ships.
        out: folder for the loss curve.
        plan: settings of all parts.

    Raises:
        DemoFailed: a check failed; the text names it.
        ValueError: the text is too short.
    """
    started = time.monotonic()
    corpus = load_corpus(text, plan.learn.window)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print(f"Learning [bold]{corpus.name}[/]: {len(corpus.train):,} bytes, {len(corpus.held_out):,} held out")
    with ServiceClient(base_url=plan.base_url) as service:
        client = service.create_lora_training_client(plan.base_model, rank=plan.rank, seed=plan.seed)
        demo = Demo(console, corpus, plan, service, client)
        demo.show_sample("before training")
        curve = demo.learn()
        demo.draw(curve, out / "loss.png")
        demo.show_sample("after training")
        demo.check_loss(curve)
        demo.save_load_resume()
        demo.reinforce()
    console.print(f"Done in {time.monotonic() - started:.0f} s.")


@attrs.frozen
class Demo:
    """Steps of the demo on one model."""

    console: Console
    corpus: Corpus
    plan: Plan
    service: ServiceClient
    client: TrainingClient

    def learn(self) -> Curve:
        """Train with supervision, with a progress bar."""
        recipe = self.plan.learn
        with display.progress_bar(self.console) as progress:
            task = progress.add_task("training", total=recipe.steps, figures="")

            def on_step(curve: Curve) -> None:
                figures = f"loss {curve.train[-1][1]:.3f}  held out {curve.held_out[-1][1]:.3f}"
                progress.update(task, completed=curve.train[-1][0], figures=figures)

            return train(self.client, self.corpus, recipe, self.plan.seed, on_step)

    def check_loss(self, curve: Curve) -> None:
        """Check that the model has learned more than byte frequencies."""
        final, entropy = curve.held_out[-1][1], self.corpus.unigram_entropy
        self.console.print(f"held-out loss {final:.3f} nats per byte, {entropy - final:.3f} below the unigram entropy")
        if not final <= entropy - MARGIN:
            raise DemoFailed(f"held-out loss {final:.3f} is not {MARGIN} below the unigram entropy {entropy:.3f}")

    def save_load_resume(self) -> None:
        """Save, list, load into a new client, and check that it resumes exactly at the same state."""
        path = self.client.save_state("demo").result().path
        listed = self.service.create_rest_client().list_checkpoints(self.client.model_id).result().checkpoints
        for checkpoint in listed:
            size = (checkpoint.size_bytes or 0) / 1024
            self.console.print(f"checkpoint {checkpoint.tinker_path}  {size:.0f} KiB", soft_wrap=True)
        if path not in [checkpoint.tinker_path for checkpoint in listed]:
            raise DemoFailed(f"{path} was saved but is not listed")
        recipe = self.plan.go_on
        saved = held_out_loss(self.client, self.corpus, recipe)
        resumed = self.service.create_training_client_from_state_with_optimizer(path)
        curve = train(resumed, self.corpus, recipe, self.plan.seed + 1, lambda _: None)
        loaded, final = curve.held_out[0][1], curve.held_out[-1][1]
        if abs(loaded - saved) > 1e-6:
            raise DemoFailed(f"held-out loss {loaded:.6f} after loading differs from {saved:.6f} before saving")
        self.console.print(f"loaded, continued {recipe.steps} steps: held-out loss {loaded:.3f} -> {final:.3f}")

    def reinforce(self) -> None:
        """Train with reinforcement learning, with a progress bar; the reward must rise."""
        recipe = self.plan.reinforce
        self.console.print(f"Reinforcing: the reward is the {reinforcement.REWARD}")
        with display.progress_bar(self.console) as progress:
            task = progress.add_task("reinforcing", total=recipe.rounds, figures="")

            def on_round(rewards: list[float]) -> None:
                progress.update(task, completed=len(rewards), figures=f"reward {rewards[-1]:.3f}")

            rewards = reinforcement.reinforce(self.client, self.corpus, recipe, self.plan.seed, on_round)
        self.console.print("reward by round: " + " ".join(f"{reward:.3f}" for reward in rewards))
        third = max(1, len(rewards) // 3)
        early, late = sum(rewards[:third]) / third, sum(rewards[-third:]) / third
        if not late > early:
            raise DemoFailed(f"the reward did not rise: {early:.3f} in the first third, {late:.3f} in the last")

    def draw(self, curve: Curve, file: Path) -> None:
        """Draw the loss curve in the terminal and as a PNG."""
        display.draw_in_terminal(self.console, curve, self.corpus.unigram_entropy)
        display.draw_png(file, curve, self.corpus.unigram_entropy, self.corpus.name)
        self.console.print(f"The curve as a picture: {file}")

    def show_sample(self, title: str) -> None:
        """Print the model's continuation of a held-out sentence."""
        sampler: SamplingClient = self.client.save_weights_and_get_sampling_client()
        prompt = self.corpus.prompt(40)
        params = SamplingParams(max_tokens=160, temperature=0.7, seed=self.plan.seed + 1)
        response = sampler.sample(ModelInput.from_ints(list(prompt)), 1, params).result()
        display.show_sample(self.console, title, prompt, bytes(token % 256 for token in response.sequences[0].tokens))
