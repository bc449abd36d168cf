"""Entry point of the command line: answers ``--help`` and ``--version`` without loading anything else."""

import os
import sys

from .exit_codes import EXIT_INTERRUPTED, EXIT_WRONG_USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMPLETION_VARIABLE = "_TINKERWIRE_COMPLETE"
"""Variable in which the completion script of a shell asks for completions."""
_HELP_FLAGS = ("-h", "--help")


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for wrong usage, 130 for Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    try:
        if not given and COMPLETION_VARIABLE in os.environ:
            from .app import run  # noqa: PLC0415

            return run(given)
        if not given or (len(given) == 1 and given[0] in _HELP_FLAGS):
            with open(__file__.replace("entry.py", "help.txt"), encoding="utf-8") as file:  # noqa: PTH123
                text = file.read()
            (sys.stdout if given else sys.stderr).write(text)
            return 0 if given else EXIT_WRONG_USAGE
        if given == ["--version"]:
            from ..version import __version__  # noqa: PLC0415

            sys.stdout.write(f"tinkerwire {__version__}\n")
            return 0
        from .app import run  # noqa: PLC0415

        return run(given)
    except KeyboardInterrupt:
        sys.stderr.write("tinkerwire: interrupted\n")
        return EXIT_INTERRUPTED


def _open_closed_streams() -> None:
    """Discard the output of a stream that the caller has closed; Python sets such a stream to None."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
