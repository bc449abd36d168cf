"""When a continuation ends before its length is used up."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError

__all__ = ["Stop", "StopRule"]

Stop = str | Sequence[str] | Sequence[int] | None
"""What a request may say: nothing, a text, texts, or token ids."""


@attrs.frozen
class StopRule:
    """Token sequences that end a continuation when they are its last tokens; they stay in it."""

    endings: tuple[tuple[int, ...], ...]

    @classmethod
    def read(cls, stop: Stop, config: ModelConfig) -> StopRule:
        """The rule for a request's `stop`; a text ends where its UTF-8 bytes do.

        Raises:
            EngineError: an empty text, a token out of the vocabulary, or something else altogether.
        """
        items = [stop] if isinstance(stop, str) else list(stop or ())
        return cls(tuple(_ending(index, item, config) for index, item in enumerate(items)))

    def met_by(self, tokens: Sequence[int]) -> bool:
        """True when the continuation so far ends here."""
        return any(tuple(tokens[-len(ending) :]) == ending for ending in self.endings)


def _ending(index: int, item: object, config: ModelConfig) -> tuple[int, ...]:
    if isinstance(item, str):
        if not item:
            raise EngineError(f"sample: stop[{index}] is an empty text; leave it out to stop by length only")
        return tuple(item.encode())
    if isinstance(item, bool) or not isinstance(item, int):
        raise EngineError(f"sample: stop[{index}] is {item!r}; pass texts or token ids")
    if not 0 <= item < config.vocab_size:
        raise EngineError(
            f"sample: stop[{index}] is {item}; token ids of {config.name} go from 0 to {config.vocab_size - 1}"
        )
    return (item,)
