"""The server skyrl 0.4.0: protobuf for forward, forward_backward and sample results, JSON for the rest.

Its metadata requires Python 3.12, but its API and JAX engine need that for one line only: they pass a
typing.TypedDict to pydantic, which on Python 3.11 accepts only the one of typing_extensions. pip therefore ignores
the requirement, and the line is changed in the server's environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.rigs.third_party.server import ThirdPartyServer

THEIR_LINE = "from typing import Annotated, Any, Literal, TypedDict\n"
OUR_LINES = "from typing import Annotated, Any, Literal\nfrom typing_extensions import TypedDict\n"


def take_typed_dict_from_extensions(python: Path) -> None:
    """Change the line where needed; raise an error if the file does not have exactly this line."""
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


SKYRL = ThirdPartyServer(
    "skyrl",
    "0.4.0",
    module="skyrl.tinker.api",
    official="0.25.0",
    is_protobuf=True,
    pip_options=("--ignore-requires-python",),
    prepare=take_typed_dict_from_extensions,
)
