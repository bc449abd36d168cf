"""A memory limit for custom losses: measures the tensors of each torch operation before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from math import prod
from typing import Any

from tinkerwire._server.engine import EngineError

MAX_BYTES = 2**30
"""Maximum memory of all tensors that the loss of one datum creates, including gradients."""

SMALL_BYTES = 2**26
"""An operation with a smaller upper bound is measured afterwards, because prediction is slower than most operations."""
MAX_ELEMENT_BYTES = 8


def limit_memory(where: str) -> AbstractContextManager[Any]:
    """Return a context in which torch raises EngineError before its tensors exceed :data:`MAX_BYTES`."""
    context: AbstractContextManager[Any] = _memory_limit_class()(where)
    return context


@cache
def _memory_limit_class() -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from torch.utils._python_dispatch import (  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        TorchDispatchMode,
    )
    from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    meta = torch.device("meta")

    def to_meta(tensor: Any) -> Any:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=meta)

    def tensors(value: Any) -> Iterator[Any]:
        return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))

    def predict_bytes(function: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
        """Return the memory of new result tensors; views of arguments count only if they exceed the limit."""
        meta_args, meta_kwargs = tree_map_only(torch.Tensor, to_meta, (args, dict(kwargs)))
        if any(argument.name == "device" for argument in function._schema.arguments):
            meta_kwargs["device"] = meta
        try:
            results = function(*meta_args, **meta_kwargs)
        except (NotImplementedError, RuntimeError):
            # The size depends on values, or the operation fails; then it raises a better error itself.
            return upper_bound(function, args)
        argument_storages = {tensor.untyped_storage()._cdata for tensor in tensors((meta_args, meta_kwargs))}
        result_storages = {
            tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors(results)
        }
        largest = max((tensor.numel() * tensor.element_size() for tensor in tensors(results)), default=0)
        new = sum(size for storage, size in result_storages.items() if storage not in argument_storages)
        predicted: int = max(new, largest) if largest > MAX_BYTES else new
        return predicted

    def upper_bound(function: Any, args: Any) -> int:
        operands = list(tensors(args))
        if function is torch.ops.aten.repeat_interleave.Tensor:
            return int(args[0].sum()) * 8
        try:
            shape = torch.broadcast_shapes(*(operand.shape for operand in operands))
        except RuntimeError:
            return 0
        bound: int = prod(shape) * max((operand.element_size() for operand in operands), default=0)
        return bound

    def is_small(function: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
        """Return whether no operation can create large tensors from arguments of these sizes and values."""
        bound: float = MAX_ELEMENT_BYTES
        has_tensors = False
        # A loop, because it runs for each operation and tree_leaves is several times slower.
        remaining = [*args, *kwargs.values()]
        while remaining:
            value = remaining.pop()
            if isinstance(value, torch.Tensor):
                bound, has_tensors = bound * max(1, value.numel()), True
            elif isinstance(value, int | float):
                bound *= 1 + abs(value)
            elif isinstance(value, list | tuple):
                remaining += value
        if bound > SMALL_BYTES and torch.Tag.pointwise in function.tags:
            bound = upper_bound(function, args) * MAX_ELEMENT_BYTES
        return has_tensors and function is not torch.ops.aten.repeat_interleave.Tensor and bound <= SMALL_BYTES

    class MemoryLimit(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        def __init__(self, where: str) -> None:
            super().__init__()
            self._where = where
            self._used_bytes = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if is_small(function, args, kwargs or {}):
                results = function(*args, **(kwargs or {}))
                leaves = (results,) if isinstance(results, torch.Tensor) else tensors(results)
                self._used_bytes += sum(leaf.numel() * leaf.element_size() for leaf in leaves)
                return results
            self._used_bytes += predict_bytes(function, args, kwargs or {})
            if self._used_bytes > MAX_BYTES:
                raise EngineError(
                    f"{self._where}: the tensors of one datum must not exceed {MAX_BYTES:,} bytes, "
                    f"got {self._used_bytes:,} bytes at {function}"
                )
            return function(*args, **(kwargs or {}))

    return MemoryLimit
