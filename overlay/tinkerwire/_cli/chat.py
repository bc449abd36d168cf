"""The command ``tinkerwire chat``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import attrs
import click

from .client import open_service_client
from .framework import SharedOptions, command, pass_options
from .output import print_text, report
from .text_model import TextModel, open_text_model, sampling_options

if TYPE_CHECKING:
    from tinkerwire_generated import models

Message = dict[str, str]
COMMANDS_TEXT = "/reset forgets the conversation, /exit or Ctrl-D ends the chat."


@command("chat")
@click.option("--system", help="System message.")
@sampling_options
@pass_options
def cli(options: SharedOptions, system: str | None, model: str, params: models.SamplingParams) -> None:
    """Chat with a model in the terminal.

    The messages are rendered with the chat template of the tokenizer; without one, as lines "role: text". The
    messages can also come from a pipe, one a line.
    """
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    messages = list(start)
    with open_service_client(options, "chat") as service:
        source = open_text_model(service, model)
        report(options, f"Chat with {model}. {COMMANDS_TEXT}")
        while (line := _read_line()) is not None:
            if line in ("/exit", "/quit"):
                break
            if line == "/reset":
                messages = list(start)
                report(options, "The conversation is empty.")
                continue
            if not line:
                continue
            messages.append({"role": "user", "content": line})
            answer = _answer(source, messages, params)
            messages.append({"role": "assistant", "content": answer})
            if options.as_json:
                click.echo(json.dumps(messages[-1], ensure_ascii=False))
            else:
                print_text(answer)


def _read_line() -> str | None:
    """Return the next message; None at the end of the input."""
    if sys.stdin is None:
        return None
    if sys.stdin.isatty():
        click.echo("> ", err=True, nl=False)
    line = sys.stdin.readline()
    return line.strip() if line else None


def _answer(source: TextModel, messages: list[Message], params: models.SamplingParams) -> str:
    tokens, stop = render_messages(source.tokenizer, messages)
    if params.stop is None and stop:
        params = attrs.evolve(params, stop=[stop])
    text = source.decode(source.sample_tokens(tokens, params).result().sequences[0].tokens)
    return text.partition(stop)[0].strip() if stop else text.strip()


def render_messages(tokenizer: Any, messages: list[Message]) -> tuple[list[int], str | None]:
    """Return the tokens of a conversation, and the text that ends the answer if the template does not have an end."""
    if getattr(tokenizer, "chat_template", None):
        return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)), None
    lines = [f"{message['role']}: {message['content']}\n" for message in messages]
    return list(tokenizer.encode("".join(lines) + "assistant:")), "\nuser:"
