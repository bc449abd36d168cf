"""Base of all commands: shared options, subcommands that load on demand, and errors that name their command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from .commands import COMMANDS
from .errors import CommandFailed, MissingCommand, describe_error, is_expected

F = TypeVar("F", bound=Callable[..., Any])

HELP_WIDTH = 80
HELP_FLAGS = ["-h", "--help"]
WRITABLE = click.Path(dir_okay=False, path_type=Path)
"""Type of an option for a file that a command writes."""
CONTEXT = {"help_option_names": HELP_FLAGS, "max_content_width": HELP_WIDTH}


class SharedOptions:
    """Options that all commands share."""

    def __init__(self) -> None:
        self.base_url: str | None = None
        """The server; None for that of TINKER_BASE_URL."""
        self.as_json = False
        """True if the output is JSON."""


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        # The option may stand before the command, after the command, or both; the last value counts.
        if value is not None and value is not False:
            setattr(ctx.ensure_object(SharedOptions), name, value)

    return store


def _make_shared_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--base-url"],
            metavar="URL",
            expose_value=False,
            callback=_store("base_url"),
            help="URL of the server, or local for the embedded server; by default TINKER_BASE_URL.",
        ),
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_store("as_json"), help="Print JSON, not a table."
        ),
    ]


@contextmanager
def _name_in_errors(ctx: click.Context) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class Command(click.Command):
    """Command with the shared options, whose errors are one line with its name.

    Args:
        hide_values: keep the user's values out of usage errors, because one may be a key.
        shared_options: False for a command that neither contacts a server nor prints results.
    """

    def __init__(self, *args: Any, hide_values: bool = False, shared_options: bool = True, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.hide_values = hide_values
        if shared_options:
            self.params += _make_shared_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an error names the command."""
        with _name_in_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; raise CommandFailed for errors that a user can act on."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except Exception as error:
            if not is_expected(error):
                raise
            raise CommandFailed(describe_error(error), ctx.command_path) from error


class Group(click.Group):
    """Group of commands; a missing subcommand is a usage error of one line."""

    command_class = Command

    def __init__(self, *args: Any, hide_values: bool = False, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(*args, **kwargs)
        self.hide_values = hide_values

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        # click 8.2 renamed the attribute with the name of the subcommand.
        protected = vars(ctx).get("_protected_args") or vars(ctx).get("protected_args") or []
        if not protected and not ctx.args:
            names = ", ".join(self.list_commands(ctx))
            raise MissingCommand(f"the argument COMMAND is missing; give one of {names}", ctx)
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an error names the group."""
        with _name_in_errors(ctx):
            return super().parse_args(ctx, args)


class LazyGroup(Group):
    """The root group, which loads the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load and return a command; None for an unknown name."""
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        command: click.Command = import_module(f".{row.module}", __package__).cli
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without loading its module."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name].summary) for name in names] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in COMMANDS.items()])


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command, as click.command does."""
    return click.command(name, cls=Command, **settings)


def group(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Group]:
    """Return a decorator that makes a group of commands, as click.group does."""
    return click.group(name, cls=Group, **settings)


pass_options = click.make_pass_decorator(SharedOptions, ensure=True)
"""Decorator that gives a command the SharedOptions as its first argument."""
