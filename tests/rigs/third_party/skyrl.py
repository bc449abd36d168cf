"""The server skyrl 0.4.0: binary forward, forward_backward and sample results, JSON for the rest.

Its metadata asks for Python 3.12, for the sake of one line as far as its API and its JAX engine go: they give a
typing.TypedDict to pydantic, which on Python 3.11 takes only that of typing_extensions. So pip is told to install it
all the same, and the line is changed in the server's own environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.rigs.third_party.peer import Peer

THEIR_LINE = "from typing import Annotated, Any, Literal, TypedDict\n"
OUR_LINES = "from typing import Annotated, Any, Literal\nfrom typing_extensions import TypedDict\n"


def take_typed_dict_from_extensions(python: Path) -> None:
    """Change the line, once, where it is needed; a file that does not have it just so is an error."""
    if sys.version_info >= (3, 12):
        return
    (file,) = python.parents[1].glob("lib/python3.*/site-packages/skyrl/tinker/types.py")
    text = file.read_text()
    if OUR_LINES in text:
        return
    if text.count(THEIR_LINE) != 1:
        raise SystemExit(f"{file}: {THEIR_LINE.strip()!r} is not there once; is this another release of skyrl?")
    # A new file in place of the old one: neither half a file nor a change in an installer's cache, if it is a link.
    changed = file.with_suffix(".py.new")
    changed.write_text(text.replace(THEIR_LINE, OUR_LINES))
    changed.replace(file)


SKYRL = Peer(
    "skyrl",
    "0.4.0",
    module="skyrl.tinker.api",
    official="0.25.0",
    is_protobuf=True,
    pip_options=("--ignore-requires-python",),
    prepare=take_typed_dict_from_extensions,
)
