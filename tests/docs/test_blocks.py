"""Tests of the programs in the pages below docs/: every block of Python runs, and commands of the shell exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)
PAGES_WITH_TESTS = {"testing.md": "tests/pytest_plugin/test_plugin.py"}
"""Pages whose programs are several files, and the tests that run them."""
MAX_NOT_RUN = 3
BUILTINS = frozenset({".", "cd", "export", "until", "do", "done", "sleep"})


def list_blocks(text: str, *languages: str) -> list[tuple[str, str | None]]:
    """Return the blocks of some languages, and the reason why a block is not run."""
    blocks = []
    for match in FENCE.finditer(text):
        if match["language"] in languages:
            indent = len(match["indent"])
            lines = [line[indent:] for line in match["text"].splitlines()]
            blocks.append(("\n".join(lines) + "\n", match["reason"]))
    return blocks


def list_programs(page: str) -> list[str]:
    """Return the blocks of Python of a page that are run."""
    return [text for text, reason in list_blocks(PAGES[page], "python") if reason is None]


PROGRAMS = [page for page in PAGES if page not in PAGES_WITH_TESTS and list_programs(page)]
COMMANDS = [page for page in PAGES if list_blocks(PAGES[page], "sh", "bash", "console")]


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_of_the_page_run(page: str, tmp_path: Path) -> None:
    """The blocks run in order, in one process, against the embedded server; warnings are errors."""
    program = tmp_path / "page.py"
    program.write_text("\n".join(list_programs(page)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TINKER")}
    environment |= {"TINKER_BASE_URL": "local", "HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", program.name]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert run.returncode == 0, run.stderr


def test_few_blocks_are_not_run() -> None:
    """A block that is not run gives the reason, and they are few."""
    reasons = [reason for text in PAGES.values() for _, reason in list_blocks(text, "python") if reason is not None]
    assert all(len(reason.split()) >= 3 for reason in reasons)
    assert len(reasons) <= MAX_NOT_RUN


def test_pages_with_tests_of_their_own_have_them() -> None:
    """The named tests read the pages."""
    for page, test in PAGES_WITH_TESTS.items():
        if page in PAGES:
            assert Path(page).name in (ROOT / test).read_text()


def list_commands(page: str) -> list[list[str]]:
    """Return the words of each command of a page; the output in blocks of a console is not a command."""
    commands = []
    for language in ("sh", "bash", "console"):
        for text, _ in list_blocks(PAGES[page], language):
            joined = text.replace("\\\n", " ")
            lines = [line.strip() for line in joined.splitlines()]
            if language == "console":
                lines = [line[2:] for line in lines if line.startswith("$ ")]
            commands += [words for line in lines for words in split_commands(line)]
    return commands


def split_commands(line: str) -> list[list[str]]:
    """Return the words of the commands of a line, without the variables that are set for one command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";|&()"):
            commands.append([])
        elif commands[-1] or not re.fullmatch(r"\w+=.*", word):
            commands[-1].append(word)
    return [words for words in commands if words]


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_of_the_page_exist(page: str) -> None:
    """Programs, modules, targets, extras, subcommands and flags of the blocks exist."""
    problems = [shlex.join(words) for words in list_commands(page) if not does_exist(words)]
    assert not problems


def does_exist(words: list[str]) -> bool:
    """Return whether the command of some words exists."""
    name, arguments = words[0], words[1:]
    if name in BUILTINS:
        return True
    if name == "tinkerwire":
        return has_options("tinkerwire", arguments)
    if name == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        return all(word in targets for word in arguments if "=" not in word)
    if name in ("python", "python3"):
        if arguments[:1] == ["-m"]:
            module = arguments[1]
            return importlib.util.find_spec(module) is not None and has_options(f"-m {module}", arguments[2:])
        # A program of the reader, or one that the page shows.
        return arguments[0] == "-c" or arguments[0].endswith(".py")
    if name == "pip":
        extras = re.findall(r"\[([\w,]+)\]", " ".join(arguments))
        text = (ROOT / "pyproject.toml").read_text()
        return all(re.search(rf"^{extra} = \[", text, re.MULTILINE) for part in extras for extra in part.split(","))
    return shutil.which(name) is not None


OWN_MODULES = frozenset({"tinkerwire", "tinkerwire_codegen"})


def has_options(program: str, arguments: list[str]) -> bool:
    """Return whether the help of a command names the subcommands and flags among some arguments."""
    module = program.rpartition(" ")[2]
    if module not in OWN_MODULES:
        return True
    command: list[str] = []
    for word in arguments:
        if word.startswith("-") or not re.fullmatch(r"[a-z][a-z-]*", word) or not is_subcommand(module, command, word):
            break
        command.append(word)
    if not command and arguments and not arguments[0].startswith("-"):
        return False
    flags = {word.partition("=")[0] for word in arguments if word.startswith("--") and word != "--"}
    return all(flag in read_help(module, *command) for flag in flags)


def is_subcommand(module: str, command: list[str], word: str) -> bool:
    """Return whether a command has a subcommand."""
    usage = read_help(module, *command)
    listed = re.findall(r"\{([\w,-]+)\}", usage)
    return any(word in names.split(",") for names in listed) or bool(re.search(rf"^ +{word}\b", usage, re.MULTILINE))


@cache
def read_help(module: str, *command: str) -> str:
    """Return the help of a command."""
    words = [sys.executable, "-m", module, *command, "--help"]
    return subprocess.run(words, capture_output=True, text=True, timeout=110, check=True).stdout
