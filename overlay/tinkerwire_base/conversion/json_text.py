"""Reading of JSON texts, with a limit of their depth."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from ..lazy_numpy import np

MAX_LEVELS = 128
"""Maximum nesting depth of a JSON text; no response of the contract comes near."""
LARGE_TEXT = 1 << 16
"""From this size on numpy finds the brackets faster."""
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STRING = re.compile(rb'"[^"]*"?')
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
"""All bytes but brackets and quotes."""


def parse_json(text: bytes) -> Any:
    """Return the value of a JSON text, which may contain Python's NaN and Infinity.

    Raises:
        ValueError: the text is not JSON, or its values are nested deeper than :data:`MAX_LEVELS`.
    """
    _refuse_deep(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text)
        except ValueError:
            pass
        raise


def _refuse_deep(text: bytes) -> None:
    # Code that formats, copies or redacts a value recurses into it, on top of the frames of the caller.
    if len(text) <= MAX_LEVELS:
        return
    if b"\\" in text:
        text = _ESCAPE.sub(b"", text)
    brackets = _STRING.sub(b"", _structure(text))
    # Each pass removes the innermost level, at the speed of C.
    for _ in range(MAX_LEVELS):
        shorter = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) == len(brackets):
            # No brackets remain, or they do not match, which the decoder reports.
            is_deep = len(brackets) > MAX_LEVELS
            break
        brackets = shorter
    else:
        is_deep = bool(brackets)
    if is_deep:
        raise ValueError(f"JSON text: values are nested deeper than {MAX_LEVELS} levels")


def _structure(text: bytes) -> bytes:
    """Return the brackets and quotes of a text."""
    if len(text) >= LARGE_TEXT:
        values = np.frombuffer(text, np.uint8)
        # In blocks that stay in the processor's cache. Numbers have no byte as high as the brackets.
        blocks = (values[start : start + LARGE_TEXT] for start in range(0, len(text), LARGE_TEXT))
        text = b"".join(block[np.flatnonzero((block >= ord("[")) | (block == ord('"')))].tobytes() for block in blocks)
    return text.translate(None, _NOT_STRUCTURE)
