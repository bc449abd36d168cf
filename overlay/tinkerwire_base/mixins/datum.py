"""Mixin of Datum: one training example whose loss inputs become tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from typing_extensions import Self

from ..lazy_numpy import Array, np
from ..packed_list import PackedList
from ..reflection import sibling
from ..tensors import FLOAT32_MAX, compute_norm, is_wire_array, token_ids, wire_array, wire_dtype, wire_list
from ..validators import INT64_MAX, INT64_MIN, NumberRangeError, require_str
from .normalize import require_float, set_field
from .tensor_data import TensorDataMixin

LARGEST_JSON_INT = 2**64 - 1
"""The largest int that orjson writes."""


class DatumMixin:
    """One training example; values of ``loss_fn_inputs`` are TensorData, arrays, torch tensors or lists."""

    __slots__ = ()
    _converts = ("loss_fn_inputs",)
    if TYPE_CHECKING:
        model_input: Any
        loss_fn_inputs: Any
        model_input_spans: Any
        loss_fn_input_spans: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        inputs = self.loss_fn_inputs
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            raise TypeError(
                f"{type(self).__name__}.loss_fn_inputs: expected a dict of name to tensor, got {type(inputs).__name__}"
            )
        tensor_type = sibling(type(self), "TensorData")
        set_field(self, "loss_fn_inputs", {k: _to_tensor(tensor_type, k, v) for k, v in inputs.items()})
        if (self.model_input_spans is None) != (self.loss_fn_input_spans is None):
            raise ValueError(
                f"{type(self).__name__}: model_input_spans and loss_fn_input_spans belong together; set both or neither"
            )

    def with_provenance(self, model_input: Sequence[Any], loss_fn_inputs: Sequence[Any]) -> Self:
        """Return the same example with the provenance of its tokens.

        Args:
            model_input: spans that cover the tokens of ``model_input``, in order.
            loss_fn_inputs: spans that cover the tokens of ``target_tokens``, in order.

        Raises:
            TypeError: an item is not a span.
            ValueError: the spans cover more or fewer tokens than there are.
        """
        spans = {"model_input_spans": list(model_input), "loss_fn_input_spans": list(loss_fn_inputs)}
        datum: Self = attrs.evolve(self, **spans)  # type: ignore[misc]
        _require_cover("model_input", model_input, self.model_input.length)
        targets = self.loss_fn_inputs.get("target_tokens")
        # The server defines the runs of targets that have more than one dimension.
        if targets is not None and len(targets.shape or [0]) == 1:
            _require_cover("loss_fn_inputs", loss_fn_inputs, len(targets.raw))
        return datum


def _require_cover(name: str, spans: Sequence[Any], length: int) -> None:
    covered = sum(span.length for span in spans)
    if covered != length:
        raise ValueError(f"{name}: the spans must cover {length} tokens, got {covered}")


def _to_tensor(tensor_type: Any, name: str, value: Any) -> Any:
    if type(name) is not str:
        require_str("loss_fn_inputs key", name)
    if not isinstance(value, TensorDataMixin):
        return tensor_type.from_array(name, value)
    if type(value._data) is PackedList:
        # The tensor has checked the numbers that it packed.
        return value
    raw = value.raw
    if is_wire_array(raw, value.dtype):
        return value
    data = _to_wire_array(name, value) if isinstance(raw, np.ndarray) else _to_wire_list(name, value)
    return value if data is raw else attrs.evolve(value, data=data)  # type: ignore[misc]


def _to_wire_array(name: str, value: TensorDataMixin) -> Array:
    array = wire_array(name, value.raw)
    return array if wire_dtype(array) == value.dtype else array.astype(value.dtype)


def _to_wire_list(name: str, value: TensorDataMixin) -> Any:
    """Return the list of a tensor, its numbers as Python's own. Errors: see :func:`wire_array`."""
    raw = value.raw
    if value.dtype == "int64":
        return token_ids(name, raw)
    types = set(map(type, raw))
    # False for NaN and infinity, and near the limit of float32, or that of ints of 64 bits.
    if types <= {int, float} and compute_norm(raw) < (INT64_MAX if int in types else FLOAT32_MAX):
        return raw
    if not types <= {int, float}:
        for position, item in enumerate(raw):
            if type(item) is not int:
                require_float(f"{name}[{position}]", item)
        raw = [float(item) if isinstance(item, float | np.floating) else int(item) for item in raw]
    try:
        wire_list(name, raw, "float32")
    except OverflowError as error:
        text = str(error)
        raise NumberRangeError(text if text.startswith(name) else f"{name}: {text}") from None
    if int in types and not (min(raw) >= INT64_MIN and max(raw) <= LARGEST_JSON_INT):
        raw = [item if INT64_MIN <= item <= LARGEST_JSON_INT else float(item) for item in raw]
    return raw
