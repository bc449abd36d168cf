"""Methods of the models that have any, as mixins that the contract names by ``x-behaviour``."""

from __future__ import annotations

import sys
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from .errors import RequestErrorCategory
from .tensors import Array, token_ids, wire_array, wire_dtype

if TYPE_CHECKING:
    import torch

TINKER_SCHEME = "tinker://"
CHECKPOINT_KINDS: Mapping[str, str] = {"weights": "training", "sampler_weights": "sampler"}
"""The middle part of a tinker path, and the checkpoint type it stands for."""


def _set(model: Any, name: str, value: Any) -> None:
    object.__setattr__(model, name, value)


class TensorValues:
    """Values of a tensor: flat ``data`` of ``dtype``, and a ``shape`` whose absence means one-dimensional."""

    __slots__ = ()
    if TYPE_CHECKING:
        data: Any
        dtype: Any
        shape: Any

    @classmethod
    def from_numpy(cls, array: Array) -> Self:
        """The tensor of an array of any shape; float32 and int64 are not copied. Errors: see ``wire_array``."""
        return cls.from_array("TensorData", array)

    @classmethod
    def from_torch(cls, tensor: torch.Tensor) -> Self:
        """The tensor of a torch tensor of any shape and device; CPU float32 and int64 are not copied."""
        return cls.from_array("TensorData", tensor)

    @classmethod
    def from_array(cls, name: str, value: Any) -> Self:
        """The tensor of an array, torch tensor or list; ``name`` is the key that errors show."""
        array = wire_array(name, value)
        return cls(data=array.reshape(-1), dtype=wire_dtype(array), shape=list(array.shape))  # type: ignore[call-arg]

    def to_numpy(self) -> Array:
        """An array of ``shape``, float32 or int64; no copy when the data is an array already. Null reads as NaN."""
        dtype = np.dtype(self.dtype)
        if isinstance(self.data, np.ndarray):
            flat = self.data.astype(dtype, copy=False)
        else:
            flat = np.array(self.data, dtype=dtype) if self.data else np.empty(0, dtype=dtype)
        return flat if self.shape is None else flat.reshape(self.shape)

    def to_torch(self) -> torch.Tensor:
        """A CPU tensor of ``shape``. Raises ImportError without torch."""
        import torch  # noqa: PLC0415  (optional, and slow to load)

        array = self.to_numpy()
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    def tolist(self) -> list[Any]:
        """Nested lists of ``shape``."""
        found: list[Any] = self.to_numpy().tolist()
        return found


class TextChunkLength:
    """A run of tokens."""

    __slots__ = ()
    if TYPE_CHECKING:
        tokens: Any

    def __attrs_post_init__(self) -> None:
        _set(self, "tokens", token_ids(f"{type(self).__name__}.tokens", self.tokens))

    @property
    def length(self) -> int:
        """How many tokens of context it takes."""
        return len(self.tokens)


class ImageLength:
    """A chunk whose length is what the caller expects the server to count."""

    __slots__ = ()
    if TYPE_CHECKING:
        expected_tokens: int | None
        tokens: int | None

    @property
    def length(self) -> int:
        """How many tokens of context it takes. Raises ValueError when nobody has said."""
        known = self.expected_tokens if self.expected_tokens is not None else self.tokens
        if known is None:
            raise ValueError(f"{type(self).__name__}: its length in tokens is unknown; give expected_tokens")
        return known


class ImageBytes(ImageLength):
    """An image inline; ``data`` is taken as bytes or as base64 text."""

    __slots__ = ()
    if TYPE_CHECKING:
        data: Any

    def __attrs_post_init__(self) -> None:
        if isinstance(self.data, str):
            try:
                _set(self, "data", b64decode(self.data, validate=True))
            except Base64Error as fault:
                raise ValueError(f"{type(self).__name__}.data: text that is not base64 ({fault})") from None
        if not isinstance(self.data, bytes):
            raise TypeError(f"{type(self).__name__}.data: expected bytes, got {type(self.data).__name__}")


class TokenSequence:
    """A prompt or training input: chunks of text tokens and images."""

    __slots__ = ()
    if TYPE_CHECKING:
        chunks: Any

    @classmethod
    def _chunk_of(cls, tokens: Any) -> Any:
        module = sys.modules[cls.__module__]
        return module.EncodedTextChunk(tokens=tokens)

    @classmethod
    def from_ints(cls, tokens: Sequence[int] | Array) -> Self:
        """One text chunk of these token ids."""
        return cls(chunks=[cls._chunk_of(tokens)])  # type: ignore[call-arg]

    @classmethod
    def empty(cls) -> Self:
        """No chunks."""
        return cls(chunks=[])  # type: ignore[call-arg]

    def append(self, chunk: Any) -> Self:
        """A new input with ``chunk`` at its end."""
        return type(self)(chunks=[*self.chunks, chunk])  # type: ignore[call-arg]

    def append_int(self, token: int) -> Self:
        """A new input with one token more."""
        return self.append(self._chunk_of([token]))

    @property
    def length(self) -> int:
        """How many tokens of context it takes."""
        return sum(chunk.length for chunk in self.chunks)

    def to_ints(self) -> list[int]:
        """All token ids. Raises ValueError when a chunk is not text."""
        found: list[int] = []
        for position, chunk in enumerate(self.chunks):
            if not isinstance(chunk, TextChunkLength):
                raise ValueError(f"chunks[{position}]: {type(chunk).__name__} has no token ids; only text chunks have")
            found.extend(map(int, chunk.tokens))
        return found


class LossInputs:
    """One training example; ``loss_fn_inputs`` takes arrays, torch tensors and lists beside TensorData."""

    __slots__ = ()
    if TYPE_CHECKING:
        loss_fn_inputs: Any

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.loss_fn_inputs, Mapping):
            raise TypeError(
                f"{type(self).__name__}.loss_fn_inputs: expected a dict of name to tensor, "
                f"got {type(self.loss_fn_inputs).__name__}"
            )
        tensor_type = sys.modules[type(self).__module__].TensorData
        _set(self, "loss_fn_inputs", {k: _tensor(tensor_type, k, v) for k, v in self.loss_fn_inputs.items()})


def _tensor(tensor_type: Any, name: str, value: Any) -> Any:
    if not isinstance(value, TensorValues):
        return tensor_type.from_array(name, value)
    if not isinstance(value.data, np.ndarray):
        _check_flat(name, value)
    size = len(value.data)
    if value.shape is not None and int(np.prod(value.shape, dtype=np.int64)) != size:
        raise ValueError(f"{name}: shape {list(value.shape)} does not hold {size} values")
    return value


def _check_flat(name: str, value: TensorValues) -> None:
    allowed = {int} if value.dtype == "int64" else {int, float}
    if not set(map(type, value.data)) <= allowed:
        for position, item in enumerate(value.data):
            if type(item) not in allowed:
                raise TypeError(
                    f"{name}[{position}]: expected a number for {value.dtype}, got {item!r} ({type(item).__name__})"
                )


class TinkerPath:
    """The parts of ``tinker://RUN/weights/NAME`` and ``tinker://RUN/sampler_weights/NAME``."""

    __slots__ = ()

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> Self:
        """Read a path. Raises ValueError naming the path and the form it should have."""
        parts = tinker_path[len(TINKER_SCHEME) :].split("/") if tinker_path.startswith(TINKER_SCHEME) else []
        if len(parts) != 3 or not all(parts) or parts[1] not in CHECKPOINT_KINDS:
            kinds = " or ".join(f"{TINKER_SCHEME}RUN/{kind}/NAME" for kind in CHECKPOINT_KINDS)
            raise ValueError(f"{tinker_path!r} is not a checkpoint path; it should read {kinds}")
        return cls(  # type: ignore[call-arg]
            tinker_path=tinker_path,
            training_run_id=parts[0],
            checkpoint_type=CHECKPOINT_KINDS[parts[1]],
            checkpoint_id=f"{parts[1]}/{parts[2]}",
        )


class ErrorCategory:
    """Whose fault a failed request is, in whatever letter case the server writes it."""

    __slots__ = ()
    if TYPE_CHECKING:
        category: Any

    def __attrs_post_init__(self) -> None:
        _set(self, "category", RequestErrorCategory.read(self.category).value)
