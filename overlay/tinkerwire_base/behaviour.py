"""Methods of the models that have any, as mixins that the contract names by ``x-behaviour``.

``_converts`` names the fields that a mixin takes in more forms than their type says, and makes the one form of.
"""

from __future__ import annotations

import math
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from typing_extensions import Self

from .checks import is_number, is_str
from .errors import RequestErrorCategory
from .tensors import Array, refuse_non_finite, token_ids, wire_array, wire_dtype

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

FLOAT32_MAX = float(np.finfo(np.float32).max)
TINKER_SCHEME = "tinker://"
CHECKPOINT_KINDS: Mapping[str, str] = {
    "weights": "training",
    "sampler_weights": "sampler",
    "external_weights": "external",
}
"""The middle part of a tinker path, and the checkpoint type it stands for."""


def _set(model: Any, name: str, value: Any) -> None:
    object.__setattr__(model, name, value)


class TensorValues:
    """Values of a tensor: flat ``data`` of ``dtype``, and a ``shape`` whose absence means one-dimensional.

    With ``sparse_crow_indices`` it is a sparse matrix: ``data`` has the values that are there, in compressed rows.
    """

    __slots__ = ()
    _converts = ("data",)
    if TYPE_CHECKING:
        data: Any
        dtype: Any
        shape: Any
        sparse_crow_indices: Any
        sparse_col_indices: Any

    def __attrs_post_init__(self) -> None:
        # What a list holds is looked at where a tensor is about to be sent, not for each one that arrives.
        if isinstance(self.data, np.ndarray):
            if self.data.ndim != 1 or self.data.dtype.kind not in ("iu" if self.dtype == "int64" else "iuf"):
                raise TypeError(
                    f"TensorData.data: expected a 1-D array for {self.dtype}, got {self.data.ndim}-D "
                    f"{self.data.dtype}; from_numpy takes any shape"
                )
        elif not isinstance(self.data, list | tuple):
            raise TypeError(
                f"TensorData.data: expected a flat list or array, got {type(self.data).__name__}; "
                "from_numpy and from_torch make a TensorData of arrays and tensors"
            )
        if self.sparse_crow_indices is not None or self.sparse_col_indices is not None:
            self._check_rows()
        elif self.shape is not None and (min(self.shape, default=0) < 0 or math.prod(self.shape) != len(self.data)):
            raise ValueError(f"TensorData.shape: {list(self.shape)} does not hold {len(self.data)} values")

    def _check_rows(self) -> None:
        """Raise ValueError unless the indices describe a matrix of ``shape`` that holds the values."""
        if self.sparse_crow_indices is None or self.sparse_col_indices is None or len(self.shape or ()) != 2:
            raise ValueError(
                "TensorData: a sparse matrix needs sparse_crow_indices, sparse_col_indices and a 2-D shape"
            )
        (rows, columns), count = self.shape, len(self.data)
        starts, places = self._indices("sparse_crow_indices"), self._indices("sparse_col_indices")
        if len(starts) != rows + 1 or starts[0] != 0 or starts[-1] != count or (np.diff(starts) < 0).any():
            raise ValueError(
                f"TensorData.sparse_crow_indices: expected {rows + 1} numbers that rise from 0 to {count}, "
                f"got {starts[:20].tolist()}"
            )
        if len(places) != count or (count and not 0 <= places.min() <= places.max() < columns):
            raise ValueError(
                f"TensorData.sparse_col_indices: expected {count} numbers below {columns}, got {places[:20].tolist()}"
            )

    def _indices(self, name: str) -> Array:
        found = np.asarray(getattr(self, name))
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise TypeError(f"TensorData.{name}: expected a flat list of whole numbers")
        return found.astype(np.int64, copy=False)

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
        """An array of ``shape``, float32 or int64; no copy when the data is such an array. Null reads as NaN.

        What a sparse matrix leaves out is 0. Raises ValueError for data that is no number of the dtype.
        """
        flat = self.values()
        if self.sparse_crow_indices is not None:
            found = np.zeros(self.shape, flat.dtype)
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self._indices("sparse_crow_indices")))
            found[rows, self._indices("sparse_col_indices")] = flat
            return found
        return flat if self.shape is None else flat.reshape(self.shape)

    def values(self) -> Array:
        """``data`` as a flat array, float32 or int64: of a sparse matrix, the values that are there."""
        dtype = np.dtype(self.dtype)
        try:
            with np.errstate(over="ignore"):
                flat = np.asarray(self.data, dtype=dtype)
            self._refuse_fractions(flat)
        except (TypeError, ValueError, OverflowError) as fault:
            raise ValueError(f"TensorData.data: cannot be read as {self.dtype}: {fault}") from None
        return flat

    def _refuse_fractions(self, flat: Array) -> None:
        # Numpy cuts them off without a word.
        if flat.dtype == np.int64 and not isinstance(self.data, np.ndarray) and float in set(map(type, self.data)):
            position = next((i for i, value in enumerate(self.data) if value != int(value)), None)
            if position is not None:
                raise ValueError(f"[{position}] is {self.data[position]}")

    def to_torch(self) -> torch.Tensor:
        """A CPU tensor of ``shape``. Raises ImportError without torch."""
        import torch  # noqa: PLC0415  (optional, and slow to load)  # pyright: ignore[reportMissingImports]

        array = self.to_numpy()
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    def tolist(self) -> list[Any]:
        """Nested lists of ``shape``."""
        found: list[Any] = self.to_numpy().tolist()
        return found


class TextChunkLength:
    """A run of tokens; ``tokens`` is taken as a list, array or torch tensor of integers."""

    __slots__ = ()
    _converts = ("tokens",)
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
    _converts = ("data",)
    if TYPE_CHECKING:
        data: Any

    def __attrs_post_init__(self) -> None:
        if isinstance(self.data, str):
            try:
                _set(self, "data", b64decode(self.data, validate=True))
            except ValueError as fault:
                raise ValueError(f"{type(self).__name__}.data: text that is not base64 ({fault})") from None
        if isinstance(self.data, bytearray | memoryview):
            _set(self, "data", bytes(self.data))
        if not isinstance(self.data, bytes):
            raise TypeError(
                f"{type(self).__name__}.data: expected the bytes of an image file, or those in base64, "
                f"got {type(self.data).__name__}"
            )


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
    _converts = ("loss_fn_inputs",)
    if TYPE_CHECKING:
        model_input: Any
        loss_fn_inputs: Any
        model_input_spans: Any
        loss_fn_input_spans: Any

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.loss_fn_inputs, Mapping):
            raise TypeError(
                f"{type(self).__name__}.loss_fn_inputs: expected a dict of name to tensor, "
                f"got {type(self.loss_fn_inputs).__name__}"
            )
        tensor_type = sys.modules[type(self).__module__].TensorData
        _set(self, "loss_fn_inputs", {k: _tensor(tensor_type, k, v) for k, v in self.loss_fn_inputs.items()})
        if (self.model_input_spans is None) != (self.loss_fn_input_spans is None):
            raise ValueError(
                f"{type(self).__name__}: give both model_input_spans and loss_fn_input_spans, or none of them"
            )

    def with_provenance(self, model_input: Sequence[Any], loss_fn_inputs: Sequence[Any]) -> Self:
        """A copy that says where its tokens come from, as lists of PromptProvenanceSpan and SampledProvenanceSpan.

        Args:
            model_input: runs that cover the input, in its order.
            loss_fn_inputs: runs that cover ``target_tokens``.

        Raises:
            ValueError: the lengths of the runs do not add up to that of what they cover.
        """
        _check_cover("model_input", model_input, self.model_input.length)
        target = self.loss_fn_inputs.get("target_tokens")
        # Where targets have more than one dimension, the server says what a run is.
        if target is not None and len([len(target.data)] if target.shape is None else target.shape) == 1:
            _check_cover("loss_fn_inputs", loss_fn_inputs, len(target.data))
        return attrs.evolve(
            self,
            model_input_spans=list(model_input),
            loss_fn_input_spans=list(loss_fn_inputs),  # type: ignore[misc]
        )


def _check_cover(name: str, spans: Sequence[Any], length: int) -> None:
    total = sum(span.length for span in spans)
    if total != length:
        raise ValueError(f"{name}: the runs cover {total} tokens, but there are {length}; they must cover all of them")


def _tensor(tensor_type: Any, name: str, value: Any) -> Any:
    is_str("loss_fn_inputs key", name)
    if not isinstance(value, TensorValues):
        return tensor_type.from_array(name, value)
    if isinstance(value.data, np.ndarray):
        refuse_non_finite(name, value.data)
    else:
        _check_flat(name, value)
    return value


def _check_flat(name: str, value: TensorValues) -> None:
    if value.dtype == "int64":
        token_ids(name, value.data)
        return
    if not set(map(type, value.data)) <= {int, float}:
        for position, item in enumerate(value.data):
            is_number(f"{name}[{position}]", item)
    # A sum of finite numbers is finite, or else one must look closer.
    if not abs(sum(value.data)) < FLOAT32_MAX:
        refuse_non_finite(name, value.to_numpy().reshape(-1))


class TinkerPath:
    """The parts of ``tinker://RUN/weights/NAME`` and ``tinker://RUN/sampler_weights/NAME``."""

    __slots__ = ()

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> Self:
        """Read a path. Raises ValueError naming the path and the form it should have."""
        is_path = isinstance(tinker_path, str) and tinker_path.startswith(TINKER_SCHEME)
        parts = tinker_path[len(TINKER_SCHEME) :].split("/") if is_path else []
        if len(parts) != 3 or not all(parts) or parts[1] not in CHECKPOINT_KINDS:
            kinds = " or ".join(f"{TINKER_SCHEME}RUN/{kind}/NAME" for kind in CHECKPOINT_KINDS)
            raise ValueError(f"{tinker_path!r} is not a checkpoint path; it should read {kinds}")
        model: Any = cls
        found: Self = model(
            tinker_path=tinker_path,
            training_run_id=parts[0],
            checkpoint_type=CHECKPOINT_KINDS[parts[1]],
            checkpoint_id=f"{parts[1]}/{parts[2]}",
        )
        return found


class ErrorCategory:
    """Whose fault a failed request is, in whatever letter case the server writes it; others stay as they came."""

    __slots__ = ()
    if TYPE_CHECKING:
        category: Any

    def __attrs_post_init__(self) -> None:
        lower = str(self.category).lower()
        if lower in (category.value for category in RequestErrorCategory):
            _set(self, "category", lower)
