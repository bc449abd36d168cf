"""Text in and out of a model: tokenizer, sampling parameters and chat template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from tinkerwire_generated import models

from .._checkpoints.paths import parse_checkpoint_kind

if TYPE_CHECKING:
    from .._futures.future import APIFuture
    from .._sampling.client import SamplingClient
    from .._service import ServiceClient

F = TypeVar("F", bound=Callable[..., Any])


@attrs.frozen
class TextModel:
    """A sampling client with its tokenizer."""

    name: str
    client: SamplingClient
    tokenizer: Any

    def sample(self, text: str, params: models.SamplingParams, *, seed_offset: int = 0) -> APIFuture[Any]:
        """Start one sample of a text; the seed of each further sample is one higher."""
        return self.sample_tokens(self.tokenizer.encode(text), params, seed_offset=seed_offset)

    def sample_tokens(
        self, tokens: Sequence[int], params: models.SamplingParams, *, seed_offset: int = 0
    ) -> APIFuture[Any]:
        """Start one sample of tokens."""
        if params.seed is not None and seed_offset:
            params = attrs.evolve(params, seed=params.seed + seed_offset)
        prompt = models.ModelInput.from_ints(list(tokens))
        return self.client.sample(prompt=prompt, num_samples=1, sampling_params=params)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of sampled tokens, without special tokens."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))


def open_text_model(service: ServiceClient, name: str) -> TextModel:
    """Return the model of a name: a base model, or a path of sampler or training weights.

    Raises:
        TinkerError: the server does not have the model.
        ImportError: the tokenizer needs a package that is missing.
    """
    if "://" not in name:
        client = service.create_sampling_client(base_model=name)
    elif parse_checkpoint_kind(name) == "training":
        training = service.create_training_client_from_state(name)
        client = training.save_weights_and_get_sampling_client()
    else:
        client = service.create_sampling_client(model_path=name)
    client.result()
    return TextModel(name, client, client.get_tokenizer())


def sampling_options(function: F) -> F:
    """Add the options of sampling to a command, which gets ``model`` and ``params``."""

    @wraps(function)
    def run(
        *args: Any,
        max_tokens: int,
        temperature: float,
        top_p: float,
        top_k: int,
        stop: tuple[str, ...],
        seed: int | None,
        **kwargs: Any,
    ) -> Any:
        params = models.SamplingParams(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            stop=list(stop) or None,
            seed=seed,
        )
        return function(*args, params=params, **kwargs)

    for option in reversed(
        [
            click.option(
                "--model", "-m", required=True, help="Base model, or path of a checkpoint such as tinker://..."
            ),
            click.option(
                "--max-tokens",
                type=click.IntRange(min=0),
                default=256,
                show_default=True,
                help="Maximum number of tokens.",
            ),
            click.option(
                "--temperature",
                type=click.FloatRange(min=0),
                default=1.0,
                show_default=True,
                help="0 is deterministic.",
            ),
            click.option(
                "--top-p",
                type=click.FloatRange(0, 1),
                default=1.0,
                show_default=True,
                help="Probability mass to draw from.",
            ),
            click.option(
                "--top-k",
                type=click.IntRange(min=-1),
                default=-1,
                show_default=True,
                help="Tokens to draw from; -1 for all.",
            ),
            click.option("--stop", multiple=True, help="Text that ends a sample; repeatable."),
            click.option("--seed", type=int, help="Seed that makes samples repeatable."),
        ]
    ):
        run = option(run)
    return run  # type: ignore[return-value]
