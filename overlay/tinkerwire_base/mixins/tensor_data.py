"""The behaviour of TensorData: from and to arrays, tensors and lists, dense and sparse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ..lazy_numpy import Array, np
from ..list_array import ListCodec, read_list, stored_form
from ..short_repr import short_repr
from ..tensors import flat_array, plain_array, wire_array, wire_dtype

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]


DATA = ListCodec()


class TensorDataMixin:
    """Values of a tensor: flat ``data`` of ``dtype``, and a ``shape`` whose absence means one-dimensional.

    With ``sparse_crow_indices`` it is a sparse matrix: ``data`` has the values that are there, in compressed rows.
    """

    __slots__ = ()
    _converts = ("data",)
    _dual_fields = _sent_as_stored = ("data",)
    if TYPE_CHECKING:
        _data: Any
        dtype: Any
        shape: Any
        sparse_crow_indices: Any
        sparse_col_indices: Any

    @property
    def data(self) -> list[Any]:
        """The values, flat in row-major order."""
        values: list[Any] = read_list(self, "_data", DATA)
        return values

    @property
    def raw(self) -> Any:
        """The values in the form that the tensor was given: an array or a list."""
        return stored_form(self._data)

    @classmethod
    def _map_official_state(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields in the state of an official tensor, which may hold an array of any shape for its data."""
        array = values.pop("_numpy", None)
        return values if array is None else {**values, "data": array.reshape(-1)}

    def __hash__(self) -> int:
        return hash((type(self), self.dtype, tuple(self.shape or ()), tuple(self.data)))

    def __attrs_post_init__(self) -> None:
        data = self.raw
        # What a list holds is looked at where a tensor is about to be sent, not for each one that arrives.
        if isinstance(data, np.ndarray):
            if data.ndim != 1 or data.dtype.kind not in ("biu" if self.dtype == "int64" else "biuf"):
                raise TypeError(
                    f"TensorData.data: expected a 1-D array for {self.dtype}, got {data.ndim}-D {data.dtype}; "
                    "from_numpy takes any shape"
                )
            object.__setattr__(self, "_data", plain_array("TensorData.data", data))
        elif isinstance(data, list | tuple):
            # A list of its own: code fills one list again and again.
            object.__setattr__(self, "_data", list(data))
        else:
            raise TypeError(
                f"TensorData.data: expected a flat list or array, got {type(data).__name__}; "
                "from_numpy and from_torch make a TensorData of arrays and tensors"
            )
        if self.sparse_crow_indices is not None or self.sparse_col_indices is not None:
            self._check_rows()
        elif self.shape is not None and (min(self.shape, default=0) < 0 or math.prod(self.shape) != len(data)):
            raise ValueError(f"TensorData.shape: {list(self.shape)} does not hold {len(data)} values")

    def _check_rows(self) -> None:
        """Raise ValueError unless the indices describe a matrix of ``shape`` that holds the values."""
        if self.sparse_crow_indices is None or self.sparse_col_indices is None or len(self.shape or ()) != 2:
            raise ValueError(
                "TensorData: a sparse matrix needs sparse_crow_indices, sparse_col_indices and a 2-D shape"
            )
        (rows, columns), count = self.shape, len(self.raw)
        starts, places = self._indices("sparse_crow_indices"), self._indices("sparse_col_indices")
        for name, found in (("sparse_crow_indices", starts), ("sparse_col_indices", places)):
            if not isinstance(getattr(self, name), list):
                object.__setattr__(self, name, found)
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
        found = plain_array(f"TensorData.{name}", np.asanyarray(getattr(self, name)))
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise TypeError(f"TensorData.{name}: expected a flat list of whole numbers")
        return found.astype(np.int64, copy=False)

    def __len__(self) -> int:
        """Return the length of the first dimension, as of an array. TypeError for a tensor without dimensions."""
        if self.shape is None:
            return len(self.raw)
        if not self.shape:
            raise TypeError("TensorData: a tensor without dimensions has no length")
        return int(self.shape[0])

    def __bool__(self) -> bool:
        # Code that asks whether there is a tensor must not take an empty one for none.
        return True

    def __getitem__(self, key: Any) -> Any:
        """Return what ``to_numpy()[key]`` is: a number or an array."""
        return self.to_numpy()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return :meth:`to_numpy`, as numpy asks for it; a copy where one is asked for or the dtype is another.

        Raises:
            ValueError: ``copy`` is False, and the array cannot be had without a copy.
        """
        found = self.to_numpy()
        if dtype is not None and found.dtype != dtype:
            found = found.astype(dtype)
        if copy is False and not (isinstance(self.raw, np.ndarray) and np.shares_memory(found, self.raw)):
            raise ValueError("TensorData: its array cannot be had without a copy; leave copy=False out")
        is_view = isinstance(self.raw, np.ndarray) and np.may_share_memory(found, self.raw)
        return found.copy() if copy and is_view else found

    @classmethod
    def from_numpy(cls, array: Array) -> Self:
        """The tensor of an array of any shape; float32 and int64 are not copied. Errors: see ``wire_array``."""
        return cls.from_array("TensorData", array)

    @classmethod
    def from_torch(cls, tensor: torch.Tensor) -> Self:
        """The tensor of a torch tensor of any shape and device; CPU float32 and int64 are not copied."""
        return cls.from_array("TensorData", tensor)

    @classmethod
    def from_torch_sparse(cls, tensor: torch.Tensor, pad_value: int = 0) -> Self:
        """The tensor of a 2-D torch tensor without the places that hold ``pad_value``, when that is smaller.

        ``pad_value`` is not sent: say it again where the tensor is read.
        """
        array = wire_array("TensorData", tensor)
        kept = array != _pad(pad_value)
        rows = len(array) if array.ndim == 2 else 0
        if array.ndim != 2 or rows + 1 + 2 * int(kept.sum()) >= array.size:
            return cls.from_array("TensorData", array)
        starts = [0, *np.cumsum(kept.sum(axis=1)).tolist()]
        model: Any = cls
        found: Self = model(
            data=array[kept],
            dtype=wire_dtype(array),
            shape=list(array.shape),
            sparse_crow_indices=starts,
            sparse_col_indices=np.nonzero(kept)[1].tolist(),
        )
        return found

    @classmethod
    def from_array(cls, name: str, value: Any) -> Self:
        """The tensor of an array, torch tensor or list; ``name`` is the key that errors show."""
        array = wire_array(name, value)
        return cls(data=array.reshape(-1), dtype=wire_dtype(array), shape=list(array.shape))  # type: ignore[call-arg]

    def to_numpy(self, pad_value: int = 0) -> Array:
        """An array of ``shape``, float32 or int64; no copy when the data is such an array. Null reads as NaN.

        What a sparse matrix leaves out is ``pad_value``. Raises ValueError for data that is no number of the dtype.
        """
        flat = self.values()
        if self.sparse_crow_indices is not None:
            found = np.full(self.shape, _pad(pad_value), flat.dtype)
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self._indices("sparse_crow_indices")))
            found[rows, self._indices("sparse_col_indices")] = flat
            return found
        return flat if self.shape is None else flat.reshape(self.shape)

    def values(self) -> Array:
        """``data`` as a flat array, float32 or int64: of a sparse matrix, the values that are there."""
        raw = self.raw
        try:
            if isinstance(raw, np.ndarray) and raw.dtype == np.uint64:
                raw = wire_array("TensorData.data", raw)
            with np.errstate(over="ignore"):
                flat = np.asarray(raw, self.dtype) if isinstance(raw, np.ndarray) else flat_array(raw, self.dtype)
            self._refuse_fractions(flat)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"TensorData.data: cannot be read as {self.dtype}: {error}") from None
        return flat

    def _refuse_fractions(self, flat: Array) -> None:
        # Numpy cuts them off without a word.
        if flat.dtype == np.int64 and not isinstance(self.raw, np.ndarray) and float in set(map(type, self.raw)):
            position = next((i for i, value in enumerate(self.raw) if value != int(value)), None)
            if position is not None:
                raise ValueError(f"[{position}] is {self.raw[position]}")

    def to_torch(self, pad_value: int = 0) -> torch.Tensor:
        """A CPU tensor of ``shape``; ``pad_value`` as in :meth:`to_numpy`. Raises ImportError without torch."""
        import torch  # noqa: PLC0415  (optional, and slow to load)  # pyright: ignore[reportMissingImports]

        array = self.to_numpy(pad_value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    def tolist(self, pad_value: int = 0) -> list[Any]:
        """Nested lists of ``shape``, in which ``pad_value`` is as in :meth:`to_numpy`."""
        found: list[Any] = self.to_numpy(pad_value).tolist()
        return found


def _pad(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"pad_value: expected an int, got {short_repr(value)} ({type(value).__name__})")
    return int(value)
