"""A memory limit for custom losses. Importing this module imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import TorchDispatchMode  # pyright: ignore[reportMissingImports]
from torch.utils._pytree import tree_map_only  # pyright: ignore[reportMissingImports]

from tinkerwire._server.engine import EngineError

MAX_ELEMENTS = 2**27
"""Maximum number of elements of all tensors that the loss of one datum creates, including views and gradients."""
TENSOR_ELEMENTS = 64
"""Number of elements that take as much memory as a tensor object."""


class MemoryLimit(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """A context in which torch raises EngineError before its tensors exceed :data:`MAX_ELEMENTS`.

    Args:
        where: name of the loss in errors.
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self._elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation of torch unless its tensors exceed the limit."""
        self._elements += _count_elements(function, args, kwargs or {})
        if self._elements > MAX_ELEMENTS:
            raise EngineError(
                f"{self._where}: the tensors of one datum must not exceed {MAX_ELEMENTS:,} elements, "
                f"got {self._elements:,} at {function}"
            )
        return function(*args, **(kwargs or {}))


def _count_elements(function: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
    """Return an upper bound of the elements of all tensors that an operation creates."""
    aten = torch.ops.aten
    operands = _tensors((*args, *kwargs.values()))
    try:
        # Also for operations with a small result: some losses broadcast internally.
        broadcast = _size(torch.broadcast_shapes(*(operand.shape for operand in operands)))
    except RuntimeError:
        broadcast = 0
    if torch.Tag.pointwise in function.tags:
        return broadcast
    if function is aten.repeat_interleave.Tensor:
        return int(args[0].sum())
    if any(str(returned.type) == "List[Tensor]" for returned in function._schema.returns):
        return TENSOR_ELEMENTS * sum(_size(operand.shape) for operand in operands)
    if function is aten.index.Tensor:
        args = (args[0], [index for mask in args[1] for index in _to_indices(mask)])
    meta_args, meta_kwargs = tree_map_only(torch.Tensor, _to_meta, (args, dict(kwargs)))
    if any(argument.name == "device" for argument in function._schema.arguments):
        meta_kwargs["device"] = "meta"
    try:
        results = function(*meta_args, **meta_kwargs)
    except (NotImplementedError, RuntimeError):
        # The size depends on values, or the operation fails; then it raises a better error itself.
        return broadcast * max([1, *(int(operand.ndim) for operand in operands)])
    return broadcast + sum(_size(result.shape) for result in _tensors((results,)))


def _tensors(values: Iterable[Any]) -> list[Any]:
    items = (item for value in values for item in (value if isinstance(value, list | tuple) else (value,)))
    return [item for item in items if isinstance(item, torch.Tensor)]


def _size(shape: Iterable[int]) -> int:
    """Return the number of elements; a dimension of 0 counts as 1, because the others can still be split."""
    return prod(max(1, size) for size in shape)


def _to_meta(tensor: Any) -> Any:
    """Return a tensor without memory."""
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _to_indices(index: Any) -> Iterable[Any]:
    """Return an index; a mask as the indices that it selects, whose number depends on its values."""
    if index is None or index.dtype not in (torch.bool, torch.uint8):
        return [index]
    indices: tuple[Any, ...] = index.nonzero(as_tuple=True)
    return indices
