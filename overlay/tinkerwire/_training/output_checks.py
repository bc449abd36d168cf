"""Checks that the outputs of a batch are those of its datums: a list that is too short shifts what follows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.lazy_numpy import np
from tinkerwire_generated.models import Datum, ForwardBackwardOutput, TensorData

PER_TARGET = ("logprobs", "elementwise_loss")
"""Outputs with one number for each target token."""


def check_outputs(chunk: Sequence[Datum], first: int, output: ForwardBackwardOutput) -> None:
    """Compare the outputs of one chunk, whose first datum is ``first`` in the batch, with its datums.

    Some servers give no outputs at all; that is no error, because nothing can be mistaken.

    Raises:
        APIResponseValidationError: there are too few or too many outputs, or one does not fit its datum.
    """
    outputs = output.loss_fn_outputs
    if not outputs:
        return
    if len(outputs) != len(chunk):
        last = first + len(chunk) - 1
        place = f"data[{first + len(outputs)}] has none" if len(outputs) < len(chunk) else f"data[{last}] is the last"
        raise _unfit(f"the server gave {len(outputs)} outputs for data[{first}] to data[{last}]; {place}")
    for position, (datum, found) in enumerate(zip(chunk, outputs, strict=True), first):
        targets = datum.loss_fn_inputs.get("target_tokens")
        if targets is None:
            continue
        for name in PER_TARGET:
            tensor = found.get(name)
            if tensor is not None:
                _check_size(position, name, tensor, targets, datum.loss_fn_inputs.get("weights"))


def check_all_or_none(chunks: Sequence[Sequence[Datum]], results: Sequence[ForwardBackwardOutput]) -> None:
    """Refuse a batch some of whose chunks have outputs and some none: outputs would move to other datums."""
    if not any(result.loss_fn_outputs for result in results):
        return
    first = 0
    for chunk, result in zip(chunks, results, strict=True):
        if not result.loss_fn_outputs:
            raise _unfit(
                f"the server gave no outputs for data[{first}] to data[{first + len(chunk) - 1}], but for others"
            )
        first += len(chunk)


def _check_size(position: int, name: str, tensor: TensorData, targets: TensorData, weights: TensorData | None) -> None:
    size, expected = _size(tensor), _size(targets)
    # With several targets a position, one number a position is an answer too.
    if size == expected or (targets.shape and size == targets.shape[0]):
        return
    # Servers may leave out positions of weight 0, which are padding.
    if size < expected and weights is not None and size >= np.count_nonzero(weights.to_numpy()) > 0:
        return
    raise _unfit(f"data[{position}]: the server gave {size} {name} for {expected} target_tokens")


def _size(tensor: TensorData) -> int:
    return len(tensor.raw) if tensor.shape is None else prod(tensor.shape)


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=text)
