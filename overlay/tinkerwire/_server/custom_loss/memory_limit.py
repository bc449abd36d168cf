"""A bound on the memory of a custom loss: what a step would take is known before it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from math import prod
from typing import Any

from tinkerwire._server.engine import EngineError

MAX_BYTES = 2**30
"""What all tensors that the loss of one datum makes, its gradients included, may take together."""

SMALL_BYTES = 2**26
"""A step that surely takes less is measured by what it made: finding out beforehand takes longer than most steps."""
WIDEST_NUMBER = 8


def bounded(where: str) -> AbstractContextManager[Any]:
    """Within it torch makes no tensors beyond :data:`MAX_BYTES`; EngineError says how many there would be."""
    found: AbstractContextManager[Any] = _bound()(where)
    return found


@cache
def _bound() -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from torch.utils._python_dispatch import (  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        TorchDispatchMode,
    )
    from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    meta = torch.device("meta")

    def without_data(tensor: Any) -> Any:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=meta)

    def tensors(value: Any) -> Iterator[Any]:
        return (each for each in tree_leaves(value) if isinstance(each, torch.Tensor))

    def needed(function: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
        """Bytes of the results; views of arguments take none, unless they are larger than all may be."""
        plain_args, plain_kwargs = tree_map_only(torch.Tensor, without_data, (args, dict(kwargs)))
        if any(each.name == "device" for each in function._schema.arguments):
            plain_kwargs["device"] = meta
        try:
            results = function(*plain_args, **plain_kwargs)
        except (NotImplementedError, RuntimeError):
            # How much it is depends on the values; or it is wrong, which the step itself tells better.
            return at_most(function, args)
        mine = {each.untyped_storage()._cdata for each in tensors((plain_args, plain_kwargs))}
        made = {each.untyped_storage()._cdata: each.untyped_storage().nbytes() for each in tensors(results)}
        largest = max((each.numel() * each.element_size() for each in tensors(results)), default=0)
        new = sum(size for storage, size in made.items() if storage not in mine)
        taken: int = max(new, largest) if largest > MAX_BYTES else new
        return taken

    def at_most(function: Any, args: Any) -> int:
        given = list(tensors(args))
        if function is torch.ops.aten.repeat_interleave.Tensor:
            return int(args[0].sum()) * 8
        try:
            shape = torch.broadcast_shapes(*(each.shape for each in given))
        except RuntimeError:
            return 0
        most: int = prod(shape) * max((each.element_size() for each in given), default=0)
        return most

    def is_small(function: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
        """Whether a step is small whatever it does with tensors of these sizes and with these numbers."""
        most: float = WIDEST_NUMBER
        has_tensors = False
        # By hand, as it is done for each step: torch's own walk takes several times as long.
        left = [*args, *kwargs.values()]
        while left:
            each = left.pop()
            if isinstance(each, torch.Tensor):
                most, has_tensors = most * max(1, each.numel()), True
            elif isinstance(each, int | float):
                most *= 1 + abs(each)
            elif isinstance(each, list | tuple):
                left += each
        if most > SMALL_BYTES and torch.Tag.pointwise in function.tags:
            most = at_most(function, args) * WIDEST_NUMBER
        return has_tensors and function is not torch.ops.aten.repeat_interleave.Tensor and most <= SMALL_BYTES

    class Bound(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        def __init__(self, where: str) -> None:
            super().__init__()
            self._where = where
            self._taken = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if is_small(function, args, kwargs or {}):
                results = function(*args, **(kwargs or {}))
                single = (results,) if isinstance(results, torch.Tensor) else tensors(results)
                self._taken += sum(each.numel() * each.element_size() for each in single)
                return results
            self._taken += needed(function, args, kwargs or {})
            if self._taken > MAX_BYTES:
                raise EngineError(
                    f"{self._where}: its tensors would take {self._taken:,} bytes with what {function} makes; this "
                    f"server gives the loss of one datum {MAX_BYTES:,}"
                )
            return function(*args, **(kwargs or {}))

    return Bound
