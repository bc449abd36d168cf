"""Tests of help texts, of what a command loads, and of usage errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from support.clients import KEY
from tinkerwire._cli import help_page
from tinkerwire._cli.app import root
from tinkerwire._cli.commands import COMMANDS
from tinkerwire.version import __version__

OPAQUE_KEY = "Zx81Qj"


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "tinkerwire", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "TINKER_BASE_URL": "http://127.0.0.1:1", "TINKER_API_KEY": KEY},
    )


def list_modules(*arguments: str) -> set[str]:
    """Return the modules that a command loads, beyond those of a bare interpreter."""
    code = (
        "import sys; bare = set(sys.modules); from tinkerwire._cli.entry import main; main(sys.argv[1:]); "
        "sys.stderr.write(' '.join(set(sys.modules) - bare))"
    )
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


def test_help_text_is_that_of_click() -> None:
    """`make help-text` writes the stored text."""
    assert help_page.HELP_FILE.read_text(encoding="utf-8") == help_page.render()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_prints_the_stored_text(flag: str) -> None:
    run = run_command(flag)
    assert (run.returncode, run.stdout, run.stderr) == (0, help_page.render(), "")


def test_no_arguments_print_help_as_a_usage_error() -> None:
    run = run_command()
    assert (run.returncode, run.stdout, run.stderr) == (2, "", help_page.render())


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_version_is_printed(arguments: list[str]) -> None:
    run = run_command(*arguments)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"tinkerwire {__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_load_nothing_else(flag: str) -> None:
    """Their time is that of the interpreter: no module but those of the entry point is loaded."""
    own = {"tinkerwire", "tinkerwire.version", *(f"tinkerwire._cli{name}" for name in ("", ".entry", ".exit_codes"))}
    assert list_modules(flag) <= own


def test_command_loads_only_its_own_module() -> None:
    modules = list_modules("version", "--json")
    others = {f"tinkerwire._cli.{row.module}" for name, row in COMMANDS.items() if name != "version"}
    assert modules.isdisjoint(others)
    assert modules.isdisjoint({"attrs", "numpy", "asyncio", "tinkerwire._service"})


def list_commands() -> list[tuple[str, click.Command]]:
    """Return all commands with their full names."""
    found: list[tuple[str, click.Command]] = []
    pending: list[tuple[str, click.Command]] = [("tinkerwire", root)]
    while pending:
        path, command = pending.pop()
        found.append((path, command))
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                assert child.name == name
                pending.append((f"{path} {name}", child))
    return found


def test_reference_names_every_command() -> None:
    """`docs/cli.md` has each command in a table."""
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    names = [
        path.removeprefix("tinkerwire ") for path, command in list_commands() if not isinstance(command, click.Group)
    ]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize(("path", "command"), list_commands(), ids=[path for path, _ in list_commands()])
def test_help_of_every_command_fits_80_columns(path: str, command: click.Command) -> None:
    """Every command and option has a description."""
    context = click.Context(command, info_name=path, terminal_width=80)
    text = command.get_help(context)
    assert max(map(len, text.splitlines())) <= 80
    assert command.help
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.hidden or parameter.help, parameter.name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_completes_commands_and_options(shell: str) -> None:
    """The script asks the program, which answers also without arguments."""
    script = run_command("completion", shell)
    assert script.returncode == 0
    assert "_TINKERWIRE_COMPLETE" in script.stdout
    for words, incomplete, expected in (
        ("tinkerwire check", "check", "checkpoint"),
        ("tinkerwire checkpoint pu", "pu", "publish"),
        ("tinkerwire run list --col", "--col", "--columns"),
    ):
        variables = {
            "_TINKERWIRE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": incomplete if shell == "fish" else str(len(words.split()) - 1),
        }
        run = subprocess.run(
            [sys.executable, "-m", "tinkerwire"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **variables},
        )
        assert expected in run.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [KEY],
        [f"--{KEY}"],
        [f"--api-key={KEY}"],
        ["--format", KEY],
        ["version", KEY],
        ["version", OPAQUE_KEY],
        [OPAQUE_KEY],
        [f"--{OPAQUE_KEY}"],
        ["version", f"-{OPAQUE_KEY}"],
        ["serve", "--port", KEY],
        ["serve", "--api-key", OPAQUE_KEY, OPAQUE_KEY],
        ["demo", "--seed", KEY],
    ],
)
def test_usage_error_does_not_repeat_a_key(arguments: list[str]) -> None:
    """The error is one line that names the command; a value that may be a key is hidden."""
    run = run_command(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert KEY not in run.stderr
    assert OPAQUE_KEY not in run.stderr
    assert run.stderr.startswith("tinkerwire")
    assert run.stderr.count("\n") == 1
    assert run.stderr.endswith("--help`\n")
