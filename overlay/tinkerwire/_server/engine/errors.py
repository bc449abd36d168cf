"""The one exception of the engine."""

from __future__ import annotations

__all__ = ["EngineError"]


class EngineError(ValueError):
    """A request the engine cannot compute; the text names the place, the fact and the way out.

    It always means that the caller can fix the request: a server reports it with category ``user``.
    """
