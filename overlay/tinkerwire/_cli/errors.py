"""Errors of the command line: one line on standard error, with the way out and without secrets."""

from __future__ import annotations

import os
import re

import click

from .._credentials.key_text import KEY_TEXT

HIDDEN = "***"
WORD = re.compile(r"-{0,2}[a-z]+(-[a-z]+)*")
"""Names of commands and options; other text may be a key, and is not repeated in an error."""
MAX_WORD_LENGTH = 30
SECRET_VARIABLES = ("TINKER_API_KEY", "TINKER_CREDENTIAL_CMD", "CLOUDFLARE_ACCESS_CLIENT_SECRET", "HF_TOKEN")
MIN_SECRET_LENGTH = 6


class CommandFailed(click.ClickException):
    """A failure that the user can act on.

    Args:
        message: one line: the thing, the value and the way out.
        command_path: the command, such as ``tinkerwire run info``; None for the current one.
    """

    def __init__(self, message: str, command_path: str | None = None) -> None:
        super().__init__(message)
        context = click.get_current_context(silent=True)
        self.command_path = command_path or (context.command_path if context else "tinkerwire")


class MissingCommand(click.UsageError):
    """The command to run is missing: one of a group, or the program to record."""


def is_expected(error: Exception) -> bool:
    """Return whether an error is one of the user's input, the network, the server or the file system."""
    if isinstance(error, click.ClickException | click.exceptions.Exit | click.Abort):
        return False
    if isinstance(error, OSError | ValueError):
        return True
    from tinkerwire_base.errors import TinkerError  # noqa: PLC0415

    from .._extras import MissingPackageError  # noqa: PLC0415

    return isinstance(error, TinkerError | MissingPackageError)


def describe_error(error: Exception) -> str:
    """Return the text of an error with the way out."""
    from tinkerwire_base.errors import APIConnectionError, AuthenticationError  # noqa: PLC0415

    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    hints = (
        (FileNotFoundError, "check the path, and that its folder exists"),
        (IsADirectoryError, "give the path of a file"),
        (NotADirectoryError, "give the path of a folder"),
        (PermissionError, "check the permissions of the file and its folder"),
        (AuthenticationError, "check TINKER_API_KEY, or run `tinkerwire auth login`"),
        (APIConnectionError, "`tinkerwire doctor` checks the connection"),
    )
    for kind, hint in hints:
        if isinstance(error, kind):
            return f"{text}; {hint}"
    return text


def describe_usage_error(error: click.UsageError) -> str:
    """Return the line of a usage error; values are hidden where one may be a key."""
    context = error.ctx
    hides_values = False
    path = context.command_path if context else "tinkerwire"
    while context is not None:
        hides_values |= getattr(context.command, "hide_values", False)
        context = context.parent
    return f"{path}: error: {_describe_usage(error, hides_values)}; see `{path} --help`"


def _describe_usage(error: click.UsageError, hides_values: bool) -> str:
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing"
    if isinstance(error, MissingCommand):
        return error.message
    if hides_values:
        return "invalid arguments; their values are hidden, because one may be a key"
    if isinstance(error, click.NoSuchOption):
        name = error.option_name if _is_word(error.option_name) else HIDDEN
        choices = f"; did you mean {' or '.join(sorted(error.possibilities))}?" if error.possibilities else ""
        return f"unknown option {name}{choices}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_name(error.param)}: {error.message.rstrip('.')}"
    if error.message.startswith("No such command"):
        name = error.message.partition("'")[2].partition("'")[0]
        return f"unknown COMMAND {name if _is_word(name) else HIDDEN}"
    if error.message.startswith("Got unexpected extra argument"):
        return "there are too many arguments; they are not shown, because one may be a key"
    return error.message.rstrip(".")


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return f"argument {max(parameter.opts, key=len)}"
    return f"argument {parameter.human_readable_name}"


def _is_word(text: str) -> bool:
    return len(text) <= MAX_WORD_LENGTH and WORD.fullmatch(text) is not None


def clean_line(text: str) -> str:
    """Return a text as one line without secrets and control characters."""
    for name in SECRET_VARIABLES:
        secret = os.environ.get(name, "")
        if len(secret) >= MIN_SECRET_LENGTH:
            text = text.replace(secret, HIDDEN)
    return escape(" ".join(KEY_TEXT.sub(HIDDEN, text).split()))


def escape(text: str, kept: str = "") -> str:
    """Replace control characters but those to keep, because a terminal would obey them: texts come from servers."""
    return "".join(character if character.isprintable() or character in kept else "?" for character in text)
