"""Checks that each output of a batch belongs to its datum: a list that is too short would shift later outputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.lazy_numpy import np
from tinkerwire_generated.models import Datum, ForwardBackwardOutput, TensorData

PER_TARGET = ("logprobs", "elementwise_loss")
"""Outputs with one value per target token."""


def check_outputs(chunk: Sequence[Datum], first: int, output: ForwardBackwardOutput) -> None:
    """Compare the outputs of one chunk, whose first datum is ``first`` in the batch, with its datums.

    Some servers return no outputs at all. No output can be taken for another then, so that it is not an error.

    Raises:
        APIResponseValidationError: there are too few or too many outputs, or the size of one differs from its datum.
    """
    outputs = output.loss_fn_outputs
    if not outputs:
        return
    if len(outputs) != len(chunk):
        last = first + len(chunk) - 1
        raise _invalid_response(
            f"the server must return {len(chunk)} outputs for data[{first}] to data[{last}], got {len(outputs)}"
        )
    for position, (datum, tensors) in enumerate(zip(chunk, outputs, strict=True), first):
        targets = datum.loss_fn_inputs.get("target_tokens")
        if targets is None:
            continue
        for name in PER_TARGET:
            tensor = tensors.get(name)
            if tensor is not None:
                _check_size(position, name, tensor, targets, datum.loss_fn_inputs.get("weights"))


def check_all_or_none(chunks: Sequence[Sequence[Datum]], results: Sequence[ForwardBackwardOutput]) -> None:
    """Raise an error if only some chunks have outputs: outputs would move to other datums."""
    if not any(result.loss_fn_outputs for result in results):
        return
    first = 0
    for chunk, result in zip(chunks, results, strict=True):
        if not result.loss_fn_outputs:
            raise _invalid_response(
                f"the server returned outputs for some chunks, but not for data[{first}] to "
                f"data[{first + len(chunk) - 1}]"
            )
        first += len(chunk)


def _check_size(position: int, name: str, tensor: TensorData, targets: TensorData, weights: TensorData | None) -> None:
    size, expected = _size(tensor), _size(targets)
    # With several targets per position, one value per position is valid, too.
    if size == expected or (targets.shape and size == targets.shape[0]):
        return
    # Servers may omit positions of weight 0, which are padding.
    if size < expected and weights is not None and size >= np.count_nonzero(weights.to_numpy()) > 0:
        return
    raise _invalid_response(
        f"data[{position}]: the server must return {expected} {name}, one per target token, got {size}"
    )


def _size(tensor: TensorData) -> int:
    return len(tensor.raw) if tensor.shape is None else prod(tensor.shape)


def _invalid_response(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=text)
