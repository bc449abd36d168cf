"""Mixins of the chunks of a model input: text, images and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tensors import text_length, token_ids
from .dmel import container_length
from .normalize import copy_list, decode_bytes, set_field


class EncodedTextChunkMixin:
    """A run of tokens; ``tokens`` is a list, array or torch tensor of integers."""

    __slots__ = ("_text_length",)
    _converts = ("tokens",)
    if TYPE_CHECKING:
        tokens: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        tokens = self.tokens
        # The check of a list makes its JSON text, whose length is needed again when a batch is split.
        length = text_length(tokens) if type(tokens) is list else None
        if length is None:
            tokens = token_ids(f"{type(self).__name__}.tokens", tokens)
        set_field(self, "tokens", copy_list(tokens))
        set_field(self, "_text_length", (len(tokens), length))

    @property
    def text_length(self) -> int | None:
        """The length of the tokens as JSON; None if unknown: for arrays, and after a change of their number."""
        count, length = getattr(self, "_text_length", (-1, None))
        return length if count == len(self.tokens) else None

    @property
    def length(self) -> int:
        """The number of context tokens."""
        return len(self.tokens)


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
