"""Stop rules: token sequences that end a continuation early."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError

Stop = str | Sequence[str] | Sequence[int] | None
"""The stop argument of a request: None, a text, texts or token ids."""


@attrs.frozen
class StopRule:
    """Token sequences that end a continuation; they remain in it."""

    endings: tuple[tuple[int, ...], ...]

    @classmethod
    def parse(cls, stop: Stop, config: ModelConfig) -> StopRule:
        """Parse the `stop` of a request; a text matches its UTF-8 bytes.

        Raises:
            EngineError: a text is empty, a token is not in the vocabulary, or the type is wrong.
        """
        items = [stop] if isinstance(stop, str) else list(stop or ())
        return cls(tuple(_ending(index, item, config) for index, item in enumerate(items)))

    def matches(self, tokens: Sequence[int]) -> bool:
        """Return whether a continuation ends here."""
        return any(tuple(tokens[-len(ending) :]) == ending for ending in self.endings)


def _ending(index: int, item: object, config: ModelConfig) -> tuple[int, ...]:
    if isinstance(item, str):
        if not item:
            raise EngineError(f"sample: stop[{index}] must not be empty; omit it to stop by length only")
        return tuple(item.encode())
    if isinstance(item, bool) or not isinstance(item, int):
        raise EngineError(f"sample: stop[{index}] must be a text or a token id, got {item!r}")
    if not 0 <= item < config.vocab_size:
        raise EngineError(
            f"sample: stop[{index}] must be a token id of {config.name} from 0 to {config.vocab_size - 1}, got {item}"
        )
    return (item,)
