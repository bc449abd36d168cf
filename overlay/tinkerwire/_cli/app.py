"""The root command: reads the shared options, runs a command and turns its errors into exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import click

from ..version import __version__
from .errors import CommandFailed, clean_line, describe_usage_error
from .exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WRONG_USAGE
from .framework import LazyGroup, SharedOptions, pass_options


@click.group(
    "tinkerwire",
    cls=LazyGroup,
    epilog="Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C. Results go to standard output; "
    "errors, questions and progress go to standard error.",
)
@click.option(
    "-f",
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    help="Format of the output; json equals --json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
@click.option(
    "--base-url",
    metavar="URL",
    help="URL of the server, or local for the embedded server; by default TINKER_BASE_URL, then the Tinker service.",
)
@click.version_option(__version__, message="tinkerwire %(version)s", help="Show the version and exit.")
@pass_options
def root(options: SharedOptions, output_format: str | None, as_json: bool, base_url: str | None) -> None:
    """Train and sample models with the Tinker API, manage runs and checkpoints, and serve the API on this machine."""
    options.as_json = as_json or output_format == "json"
    options.base_url = base_url


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    try:
        code = root.main(list(arguments), prog_name="tinkerwire", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        _write(describe_usage_error(error))
        return EXIT_WRONG_USAGE
    except CommandFailed as error:
        _write(f"{error.command_path}: {error.message}")
        return EXIT_FAILED
    except click.ClickException as error:
        _write(f"tinkerwire: {error.message}")
        return EXIT_FAILED
    except click.Abort as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            _write("tinkerwire: interrupted")
            return EXIT_INTERRUPTED
        _write("tinkerwire: standard input ended before an answer; --yes answers without a question")
        return EXIT_FAILED
    except BrokenPipeError:
        _drop_output()
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _write(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(clean_line(line) + "\n")


def _drop_output() -> None:
    """Discard what is still to be written: the reader of the pipe is gone."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
