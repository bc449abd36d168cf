"""Representations that fit into an error or a log line."""

from __future__ import annotations

import reprlib

__all__ = ["SECRET_FIELDS", "short_repr"]

SECRET_FIELDS = frozenset({"access_token", "api_key", "jwt", "weights_access_token"})
"""Fields whose values no text shows."""

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxtuple, _SHORT.maxdict = 8, 8, 8, 20
_SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 200, 2000, 40

short_repr = _SHORT.repr
"""Like ``repr``, but short for prompts, tensors and images of any size."""
