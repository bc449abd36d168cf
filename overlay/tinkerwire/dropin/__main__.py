"""``python -m tinkerwire.dropin SCRIPT [ARGS]`` or ``-m MODULE [ARGS]``: runs a program with tinkerwire as tinker.

``python -m tinkerwire.dropin stubs DIR`` writes stubs of tinker for type checkers.
"""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from .finder import install

USAGE = "usage: python -m tinkerwire.dropin SCRIPT [ARGS], or -m MODULE [ARGS], or stubs DIR"


def main(arguments: list[str]) -> int:
    """Run a script or a module as Python itself would, or write stubs; return 2 for wrong usage."""
    if arguments[:1] == ["stubs"] and not Path("stubs").is_file():
        return _stubs(arguments[1:])
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not program or program[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    # First of all, for the packages that a module is in are imported to find it.
    install(children=True)
    if not (_is_module(program[0]) if is_module else Path(program[0]).exists()):
        sys.stderr.write(f"{program[0]}: {'module' if is_module else 'script'} not found\n")
        return 2
    sys.argv = program
    if is_module:
        # The folder that one is in, as for python -m, is on the path already.
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        # With -P, Python has not put a folder on the path that could be replaced.
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")
    return 0


def _stubs(arguments: list[str]) -> int:
    from .stubs import write_stubs  # noqa: PLC0415  (it loads all models)

    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    folder = Path(arguments[0])
    try:
        written = write_stubs(folder)
    except OSError as error:
        sys.stderr.write(f"{folder}: the stubs cannot be written: {error.strerror}\n")
        return 1
    advice = "name the folder in stubPath (pyright) or MYPYPATH (mypy)"
    sys.stdout.write(f"{folder}: {len(written)} stubs of tinker; {advice}\n")
    return 0


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return False
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
