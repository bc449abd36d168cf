"""Mixin of TensorData: conversion from and to arrays, tensors and lists, dense and sparse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ..lazy_numpy import Array, np
from ..list_array import DualValue, ListCodec, read_list, stored_form
from ..packed_list import PackedList, pack_floats, pack_ints
from ..reflection import slot_setters
from ..short_repr import short_repr
from ..tensors import flat_array, is_wire_array, plain_array, wire_array, wire_dtype
from .normalize import set_field

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]


DATA = ListCodec()
_PICKLED_DTYPES = {"float32": "<f4", "int64": "<i8"}
"""Numpy's names of the dtypes whose arrays are pickled as bytes."""
_PACKED_DTYPES = {"float32": "float64", "int64": "int64"}
"""The dtypes of packed lists; floats keep all their digits."""
_BUFFERS: tuple[Any, ...] = (bytearray, memoryview, PickleBuffer)


class TensorDataMixin:
    """A tensor: flat ``data`` of ``dtype``, and a ``shape``; without a shape it is one-dimensional.

    With ``sparse_crow_indices`` it is a sparse matrix in compressed rows, whose ``data`` are the stored values.
    """

    __slots__ = ()
    _converts = ("data",)
    # Lists of responses are read, not sent: packing them would take time twice.
    _read_as_tuples = ("data",)
    _dual_fields = _sent_as_stored = ("data",)
    _constants = ("LOSS_INPUT_DTYPES",)
    if TYPE_CHECKING:
        _data: Any
        dtype: Any
        shape: Any
        sparse_crow_indices: Any
        sparse_col_indices: Any
        _loss_input_dtypes: Mapping[str, str]

    @property
    def data(self) -> list[Any]:
        """The values, flat in row-major order."""
        data = self._data
        if type(data) is PackedList:
            # From now on only the list counts, as callers may change it.
            set_field(self, "_data", data.to_list())
        values: list[Any] = read_list(self, "_data", DATA)
        return values

    @property
    def raw(self) -> Any:
        """The values in the form that takes the least time to encode: an array or a list."""
        return stored_form(self._data)

    @classmethod
    def _map_official_state(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields in the state of an official tensor, which may hold an array of any shape for its data."""
        array = values.pop("_numpy", None)
        return values if array is None else {**values, "data": array.reshape(-1)}

    @staticmethod
    def _pack_values(values: tuple[Any, ...], protocol: int) -> tuple[Any, ...]:
        """Return the values of a pickle: an array as its bytes, because numpy takes ten times as long to pickle it."""
        array = values[0]
        if type(array) is PackedList:
            return values
        array = stored_form(array)
        if not is_wire_array(array, values[1]) or array.dtype.str != _PICKLED_DTYPES[values[1]]:
            return values
        # Protocol 5 passes the memory of the array to buffer_callback, without a copy.
        return (PickleBuffer(array) if protocol >= 5 else array.tobytes(), *values[1:])

    @staticmethod
    def _unpack_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values that :meth:`_pack_values` got."""
        content = values[0]
        if type(content) is bytes:
            # An array of bytes could not be written to.
            content = bytearray(content)
        elif not isinstance(content, _BUFFERS):
            return values
        return (np.frombuffer(content, _PICKLED_DTYPES[values[1]]), *values[1:])

    def __copy__(self) -> Self:
        """Return an equal tensor of the same array."""
        cls: Any = type(self)
        copied: Self = object.__new__(cls)
        cls.__setstate__(copied, cls.__getstate__(self))
        return copied

    def __hash__(self) -> int:
        """Hash the class and the fields."""
        return hash((type(self), self.dtype, tuple(self.shape or ()), tuple(self.data)))

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        data = self._data
        if type(data) is DualValue:
            data = stored_form(data)
        elif type(data) is PackedList and data.dtype != _PACKED_DTYPES[self.dtype]:
            data = data.to_list()
        # Only tensors that are sent have the items of their list checked, not tensors of responses.
        if isinstance(data, (list, tuple)):
            # Copy the list; callers often reuse and mutate it. Garbage collection ignores tuples of numbers.
            set_field(self, "_data", _pack_list(data, self.dtype) or tuple(data))
        elif isinstance(data, np.ndarray):
            if data.ndim != 1 or data.dtype.kind not in ("biu" if self.dtype == "int64" else "biuf"):
                raise TypeError(
                    f"TensorData.data: expected a 1-D array for {self.dtype}, got {data.ndim}-D {data.dtype}; "
                    "from_numpy takes any shape"
                )
            set_field(self, "_data", plain_array("TensorData.data", data))
        elif type(data) is not PackedList:
            raise TypeError(
                f"TensorData.data: expected a flat list or array, got {type(data).__name__}; "
                "from_numpy and from_torch make a TensorData of arrays and tensors"
            )
        if self.sparse_crow_indices is not None or self.sparse_col_indices is not None:
            self._check_rows()
        elif self.shape not in (None, [len(data)]) and (
            min(self.shape, default=0) < 0 or math.prod(self.shape) != len(data)
        ):
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
            raise TypeError(f"TensorData.{name}: expected a 1-D list of integers, got {found.ndim}-D {found.dtype}")
        return found.astype(np.int64, copy=False)

    def __len__(self) -> int:
        """Return the length of the first dimension, as of an array. TypeError for a tensor without dimensions."""
        if self.shape is None:
            return len(self.raw)
        if not self.shape:
            raise TypeError("TensorData: a tensor without dimensions has no length")
        return int(self.shape[0])

    def __bool__(self) -> bool:
        """Return True: an empty tensor does not count as a missing one."""
        return True

    def __getitem__(self, key: Any) -> Any:
        """Return ``to_numpy()[key]``, a number or an array."""
        return self.to_numpy()[key]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over ``to_numpy()``."""
        return iter(self.to_numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Implement the array protocol of numpy: return :meth:`to_numpy`, or a copy for another dtype or on request.

        Raises:
            ValueError: ``copy`` is False, but a copy is required.
        """
        found = self.to_numpy()
        if dtype is not None and found.dtype != dtype:
            found = found.astype(dtype)
        raw = self.raw
        if copy is False and not (isinstance(raw, np.ndarray) and np.shares_memory(found, raw)):
            raise ValueError("TensorData: the array requires a copy; omit copy=False")
        is_view = isinstance(raw, np.ndarray) and np.may_share_memory(found, raw)
        return found.copy() if copy and is_view else found

    @classmethod
    def from_numpy(cls, array: Array) -> Self:
        """Make a tensor of an array of any shape; float32 and int64 are not copied. Errors: see ``wire_array``."""
        return cls.from_array("TensorData", array)

    @classmethod
    def from_torch(cls, tensor: torch.Tensor) -> Self:
        """Make a tensor of a torch tensor of any shape and device; CPU float32 and int64 are not copied."""
        return cls.from_array("TensorData", tensor)

    @classmethod
    def from_torch_sparse(cls, tensor: torch.Tensor, pad_value: int = 0) -> Self:
        """Make a sparse tensor of a 2-D torch tensor by omitting ``pad_value``; a dense one if that is smaller.

        ``pad_value`` is not sent: pass it again to the method that reads the tensor.
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
        """Make a tensor of an array, torch tensor or list; errors contain ``name``."""
        array = wire_array(name, value, cls._loss_input_dtypes)
        flat = array if array.ndim == 1 else array.reshape(-1)
        # The constructor, which checks and converts again, would take as long as everything else.
        tensor = object.__new__(cls)
        setters, defaults = slot_setters(cls)
        for set_slot, default in defaults:
            set_slot(tensor, default)
        setters["_data"](tensor, flat)
        setters["dtype"](tensor, wire_dtype(array))
        setters["shape"](tensor, list(array.shape))
        return tensor

    def to_numpy(self, pad_value: int = 0) -> Array:
        """Return an array of ``shape``, float32 or int64, without a copy if possible. Null reads as NaN.

        Args:
            pad_value: the value of the positions that a sparse matrix omits.

        Raises:
            ValueError: an item cannot be read as a number of the dtype.
        """
        flat = self.values()
        if self.sparse_crow_indices is not None:
            found = np.full(self.shape, _pad(pad_value), flat.dtype)
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self._indices("sparse_crow_indices")))
            found[rows, self._indices("sparse_col_indices")] = flat
            return found
        return flat if self.shape is None else flat.reshape(self.shape)

    def values(self) -> Array:
        """Return ``data`` as a flat array, float32 or int64; for a sparse matrix, the stored values."""
        stored = self._data
        raw = stored_form(stored)
        try:
            if isinstance(raw, np.ndarray) and raw.dtype == np.uint64:
                raw = wire_array("TensorData.data", raw)
            with np.errstate(over="ignore"):
                if type(stored) is PackedList:
                    # A copy, because the array of the list must not be changed.
                    flat: Array = raw.astype(self.dtype)
                else:
                    flat = np.asarray(raw, self.dtype) if isinstance(raw, np.ndarray) else flat_array(raw, self.dtype)
            self._refuse_fractions(flat)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"TensorData.data: cannot be read as {self.dtype}: {error}") from None
        return flat

    def _refuse_fractions(self, flat: Array) -> None:
        # Numpy truncates them silently.
        if flat.dtype == np.int64 and not isinstance(self.raw, np.ndarray) and float in set(map(type, self.raw)):
            position = next((i for i, value in enumerate(self.raw) if value != int(value)), None)
            if position is not None:
                raise ValueError(f"[{position}] must be a whole number, got {self.raw[position]}")

    def to_torch(self, pad_value: int = 0) -> torch.Tensor:
        """Return a CPU tensor of ``shape``; ``pad_value`` as in :meth:`to_numpy`. Raises ImportError without torch."""
        import torch  # noqa: PLC0415  (optional, and slow to load)  # pyright: ignore[reportMissingImports]

        array = self.to_numpy(pad_value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    def tolist(self, pad_value: int = 0) -> list[Any]:
        """Return nested lists of ``shape``; ``pad_value`` as in :meth:`to_numpy`."""
        found: list[Any] = self.to_numpy(pad_value).tolist()
        return found


def _pack_list(values: Any, dtype: str) -> PackedList | None:
    """Pack a list whose numbers need no further check before they are sent; None for others."""
    if type(values) is not list:
        return None
    return pack_ints(values, dtype) if dtype == "int64" else pack_floats(values)


def _pad(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"pad_value: expected an int, got {short_repr(value)} ({type(value).__name__})")
    return int(value)
