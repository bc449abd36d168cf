"""Mixins of the chunks of a model input: text, images and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from typing_extensions import Self

from ..list_array import DualValue, stored_form
from ..packed_list import PackedList, pack_ints
from ..tensors import token_ids
from .dmel import container_length
from .normalize import copy_list, decode_bytes, set_field


class EncodedTextChunkMixin:
    """A run of tokens; ``tokens`` is a list, array or torch tensor of integers."""

    __slots__ = ()
    _converts = _dual_fields = _sent_as_stored = ("tokens",)
    if TYPE_CHECKING:
        _tokens: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        tokens = self._tokens
        packed = pack_ints(tokens) if type(tokens) is list else None
        if packed is not None:
            tokens = packed
        elif type(tokens) is not PackedList:
            tokens = copy_list(token_ids(f"{type(self).__name__}.tokens", tokens))
        set_field(self, "_tokens", tokens)

    @staticmethod
    def _unpack_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of a pickle; earlier ones hold the array of a list in a DualValue."""
        tokens = values[0]
        return (PackedList("int32", None, tokens.array), *values[1:]) if type(tokens) is DualValue else values

    @property
    def tokens(self) -> Any:
        """The token ids: a list, or the array that the chunk was given."""
        tokens = self._tokens
        if type(tokens) is PackedList:
            # From now on only the list counts, as callers may change it.
            tokens = tokens.to_list()
            set_field(self, "_tokens", tokens)
        return tokens

    @property
    def raw(self) -> Any:
        """The token ids in the form that takes the least time to encode: an array or a list."""
        return stored_form(self._tokens)

    @property
    def length(self) -> int:
        """The number of context tokens."""
        return len(self._tokens)

    def _list_tokens(self) -> list[int]:
        """Return the token ids as a list that must not be changed."""
        tokens = self._tokens
        if type(tokens) is PackedList:
            return tokens.read_values()
        found: list[int] = tokens if isinstance(tokens, list) else tokens.tolist()
        return found

    def packed(self) -> Self:
        """Return a chunk of the same token ids, as an array if possible, that no change of a list affects.

        Raises:
            TypeError, NumberRangeError: the list of this chunk was changed, and has a value that is not a token id.
        """
        tokens = self._tokens
        chunk: Self = attrs.evolve(  # type: ignore[misc]
            self, tokens=tokens.copy() if type(tokens) is PackedList else tokens
        )
        return chunk


class ImageAssetMixin:
    """A chunk whose length is the number of tokens that the caller expects the server to count."""

    __slots__ = ()
    if TYPE_CHECKING:
        expected_tokens: int | None
        tokens: int | None

    @property
    def length(self) -> int:
        """The number of context tokens. Raises ValueError if the chunk does not state it."""
        known = self.expected_tokens if self.expected_tokens is not None else self.tokens
        if known is None:
            raise ValueError(f"{type(self).__name__}: the length in tokens is unknown; set expected_tokens")
        return known


class ImageBytesMixin(ImageAssetMixin):
    """An inline image; ``data`` is bytes or base64 text."""

    __slots__ = ()
    _converts = ("data",)
    if TYPE_CHECKING:
        data: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        set_field(self, "data", decode_bytes(f"{type(self).__name__}.data", "an image file", self.data))


class DmelChunkMixin:
    """A chunk that holds a tensor in a container; ``dmel`` is bytes or base64 text."""

    __slots__ = ()
    _converts = ("dmel",)
    if TYPE_CHECKING:
        dmel: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        set_field(self, "dmel", decode_bytes(f"{type(self).__name__}.dmel", "a tensor container", self.dmel))

    @property
    def length(self) -> int:
        """The number of context tokens. Raises ValueError if the bytes are not a container."""
        return container_length(self.dmel)
