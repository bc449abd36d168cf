"""Mixin of ModelInput: construction from tokens, and its length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ..lazy_numpy import Array
from ..reflection import sibling, slot_setters
from .chunks import EncodedTextChunkMixin
from .normalize import copy_list, set_field


class ModelInputMixin:
    """A prompt or training input: chunks of text tokens and images."""

    __slots__ = ()
    if TYPE_CHECKING:
        chunks: Any

    @classmethod
    def _make_chunk(cls, tokens: Any) -> Any:
        return sibling(cls, "EncodedTextChunk")(tokens=tokens)

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        set_field(self, "chunks", copy_list(self.chunks))

    @classmethod
    def from_ints(cls, tokens: Sequence[int] | Array) -> Self:
        """Make an input of one text chunk with these token ids."""
        chunks = [cls._make_chunk(tokens)]
        if cls is not sibling(cls, "ModelInput"):
            return cls(chunks=chunks)  # type: ignore[call-arg]
        # The constructor would check the chunk, which has just been made, against all kinds of chunks.
        model_input = object.__new__(cls)
        slot_setters(cls)[0]["chunks"](model_input, chunks)
        return model_input

    @classmethod
    def empty(cls) -> Self:
        """Make an input without chunks."""
        return cls(chunks=[])  # type: ignore[call-arg]

    def append(self, chunk: Any) -> Self:
        """Return a new input with ``chunk`` at its end."""
        return type(self)(chunks=[*self.chunks, chunk])  # type: ignore[call-arg]

    def append_int(self, token: int) -> Self:
        """Return a new input with one more token."""
        return self.append(self._make_chunk([token]))

    @property
    def length(self) -> int:
        """The number of context tokens."""
        return sum(chunk.length for chunk in self.chunks)

    def to_ints(self) -> list[int]:
        """Return all token ids.

        Raises:
            ValueError: a chunk is not text.
        """
        tokens: list[int] = []
        for position, chunk in enumerate(self.chunks):
            if not isinstance(chunk, EncodedTextChunkMixin):
                raise ValueError(f"chunks[{position}]: {type(chunk).__name__} has no token ids; pass text chunks")
            # The chunk has checked that its tokens are integers.
            tokens += chunk._list_tokens()
        return tokens
