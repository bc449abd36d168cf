"""The command ``tinkerwire sample``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .client import open_service_client
from .errors import CommandFailed
from .framework import SharedOptions, command, pass_options
from .output import print_json, print_text
from .text_model import open_text_model, sampling_options

if TYPE_CHECKING:
    from tinkerwire_generated import models

STDIN = "-"


@command("sample")
@click.argument("prompt", required=False)
@click.option(
    "--file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Read the prompt from a file."
)
@click.option("--samples", "-n", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of samples.")
@sampling_options
@pass_options
def cli(
    options: SharedOptions,
    prompt: str | None,
    file: Path | None,
    samples: int,
    model: str,
    params: models.SamplingParams,
) -> None:
    """Sample text from a model or a checkpoint.

    PROMPT is the text to continue; - and a missing PROMPT read standard input. Each sample is printed as it arrives,
    followed by a line break.
    """
    text = _read_prompt(prompt, file)
    with open_service_client(options, "sample") as service:
        source = open_text_model(service, model)
        futures = [source.sample(text, params, seed_offset=number) for number in range(samples)]
        results = []
        for future in futures:
            sequence = future.result().sequences[0]
            sampled = source.decode(sequence.tokens)
            results.append({"text": sampled, "stop_reason": str(sequence.stop_reason), "tokens": len(sequence.tokens)})
            if not options.as_json:
                print_text(sampled)
    if options.as_json:
        print_json({"model": model, "prompt": text, "samples": results})


def _read_prompt(prompt: str | None, file: Path | None) -> str:
    if file is not None:
        if prompt is not None:
            raise click.UsageError("give either PROMPT or --file")
        return file.read_text(encoding="utf-8")
    if prompt not in (None, STDIN):
        return str(prompt)
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("give PROMPT or --file, or pipe the prompt into standard input")
    text = sys.stdin.read()
    if not text:
        raise CommandFailed("the prompt from standard input is empty")
    return text
