"""The exception of the engine."""

from __future__ import annotations


class EngineError(ValueError):
    """An error that the caller can fix: invalid arguments or data.

    The server reports it with category ``user``.
    """
