"""Parsers of the command line, of which some do not show in their errors what was given: it may be an API key."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

OF_ITS_OWN = "the following arguments are required"
"""How an error begins that names what the parser knows, and nothing that was given."""
WRONG_USAGE = 2
"""The exit code of wrong usage."""


class RedactingArgumentParser(argparse.ArgumentParser):
    """The usual one; ``is_discreet`` keeps what was given out of its errors, unknown arguments included."""

    def __init__(self, *args: Any, is_discreet: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_discreet = is_discreet

    def error(self, message: str) -> NoReturn:
        """Exit with code 2, after one line that names the flag."""
        if self._is_discreet and not message.startswith(OF_ITS_OWN):
            message = "these arguments do not fit; they are not shown, as one may be a key"
        self.exit(WRONG_USAGE, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """The options, and what is unknown."""
        found, unknown = super().parse_known_args(*args, **kwargs)
        # The parser above would show it.
        if unknown and self._is_discreet:
            self.error("unknown")
        return found, unknown
