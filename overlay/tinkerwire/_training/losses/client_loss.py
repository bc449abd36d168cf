"""Losses of the user's own: computed on this side from log probabilities, trained by a weighted cross-entropy.

The server gives the log probability of each target (forward), the user's function makes a loss of them, and the
gradient of that loss goes back to the server as weights: cross-entropy is the sum of -weight * logprob, so weights
of minus the gradient train on exactly that loss (forward_backward).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, Literal, TypeVar

import attrs

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.tensors import is_torch_installed, refuse_non_finite
from tinkerwire_base.validators import validator_of
from tinkerwire_generated.models import Datum, ForwardBackwardInput, ForwardBackwardOutput, TensorData

from ..._futures.operation_record import held

T = TypeVar("T")
ArrayKind = Literal["torch", "numpy"]
CustomLossFn = Callable[[list[Datum], list[Any]], tuple[Any, ...]]
"""A loss of the user's: from the batch and its log probabilities, one tensor shaped like target_tokens per datum, to
(loss, metrics) or (loss, metrics, gradients)."""
TARGET_TOKENS = "target_tokens"


@attrs.frozen
class LossEvaluation:
    """What the user's function made of the log probabilities."""

    loss: float
    metrics: dict[str, float]
    gradients: list[Array]
    """Of the loss by the log probabilities, float32, shaped like those."""


class CustomLoss:
    """A user's loss of one batch.

    Args:
        data: the batch; each datum has target_tokens.
        loss_fn: the user's function.
        arrays: what it is given: torch tensors that record gradients, or numpy arrays; None: torch where installed.

    Raises:
        TypeError: no function, or one that would have to be awaited.
        ValueError: a datum without target_tokens, or torch wanted where it is not installed.
    """

    def __init__(self, data: list[Datum], loss_fn: CustomLossFn, arrays: ArrayKind | None) -> None:
        if not callable(loss_fn):
            raise TypeError(f"loss_fn: expected a function, got {type(loss_fn).__name__}")
        if inspect.iscoroutinefunction(loss_fn):
            raise TypeError("loss_fn: it is an async function; give a plain one, which runs on a thread of its own")
        if arrays is not None:
            validator_of(ArrayKind)("arrays", arrays)
        if arrays == "torch" and not is_torch_installed():
            raise ValueError(
                "arrays: torch is not installed; install it, or say arrays='numpy' and return the gradients, too"
            )
        self._with_torch = is_torch_installed() if arrays is None else arrays == "torch"
        self._loss_fn = loss_fn
        self._data = data
        for position, datum in enumerate(data):
            if TARGET_TOKENS not in datum.loss_fn_inputs:
                raise ValueError(
                    f"data[{position}]: no {TARGET_TOKENS} in loss_fn_inputs; a custom loss needs "
                    "them, because it is a function of their log probabilities"
                )

    def forward_input(self) -> ForwardBackwardInput:
        """The batch to ask log probabilities of; what only the user's function reads stays here."""
        return self._weighted([d.loss_fn_inputs.get("weights") or _no_weights(d) for d in self._data])

    async def evaluate(self, output: ForwardBackwardOutput, line: object) -> LossEvaluation:
        """Run the user's function on a thread of its own; ``line`` is what stands still until it is done.

        Raises:
            Exception: what the function raised, or a TypeError or ValueError for what it returned.
            APIResponseValidationError: the log probabilities are not those of the batch.
        """
        logprobs = self._logprobs(output)
        return await asyncio.wrap_future(on_thread(lambda: self._evaluate(logprobs), line))

    def backward_input(self, evaluated: LossEvaluation) -> ForwardBackwardInput:
        """The batch that trains on the gradients."""
        return self._weighted([TensorData.from_numpy(-gradient) for gradient in evaluated.gradients])

    def result(self, evaluated: LossEvaluation, output: ForwardBackwardOutput) -> ForwardBackwardOutput:
        """The result of the backward pass with the metrics of the loss; the server's own is surrogate_loss:sum."""
        metrics: dict[str, float] = dict(output.metrics)
        surrogate = metrics.pop("loss:sum", None)
        metrics.update(evaluated.metrics)
        metrics["loss:sum"] = evaluated.loss
        if surrogate is not None:
            metrics["surrogate_loss:sum"] = surrogate
        return attrs.evolve(output, metrics=metrics)

    def _weighted(self, weights: Sequence[TensorData]) -> ForwardBackwardInput:
        data = [
            attrs.evolve(datum, loss_fn_inputs={TARGET_TOKENS: datum.loss_fn_inputs[TARGET_TOKENS], "weights": each})
            for datum, each in zip(self._data, weights, strict=True)
        ]
        return ForwardBackwardInput(data=data, loss_fn="cross_entropy")

    def _logprobs(self, output: ForwardBackwardOutput) -> list[Array]:
        outputs = output.loss_fn_outputs
        if len(outputs) != len(self._data):
            raise _unfit(f"the server gave outputs of {len(outputs)} datums for {len(self._data)}")
        return [
            _shaped(position, found.get("logprobs"), datum)
            for position, (found, datum) in enumerate(zip(outputs, self._data, strict=True))
        ]

    def _evaluate(self, logprobs: list[Array]) -> LossEvaluation:
        leaves = [_leaf(array) for array in logprobs] if self._with_torch else [array.copy() for array in logprobs]
        # Lists of its own: what it does to them is its affair.
        returned: object = self._loss_fn(list(self._data), list(leaves))
        if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
            what = f"{len(returned)} things" if isinstance(returned, tuple | list) else type(returned).__name__
            raise TypeError(f"loss_fn returned {what}; expected (loss, metrics) or (loss, metrics, gradients)")
        loss, metrics = returned[0], _metrics(returned[1])
        if len(returned) == 3:
            gradients = _given(returned[2], logprobs)
        elif self._with_torch:
            gradients = _differentiated(loss, leaves)
        else:
            raise TypeError("loss_fn returned (loss, metrics); without torch, return (loss, metrics, gradients)")
        return LossEvaluation(loss=_number("its loss", loss), metrics=metrics, gradients=gradients)


def on_thread(work: Callable[[], T], line: object) -> Future[T]:
    """Run something that a line waits for on a thread of its own, which does not keep the process from ending."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        held.line = line
        try:
            future.set_result(work())
        except BaseException as error:
            # Some a future cannot hold, some would pass for a cancellation, some would end the loop they arrive on.
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration | CancelledError)
            future.set_exception(error if is_plain else _ended_with(error))

    threading.Thread(target=run, name="tinkerwire-loss", daemon=True).start()
    return future


def _ended_with(cause: BaseException) -> RuntimeError:
    error = RuntimeError(f"loss_fn ended with {cause!r}")
    error.__cause__ = cause
    return error


def _no_weights(datum: Datum) -> TensorData:
    return TensorData.from_numpy(np.zeros(datum.loss_fn_inputs[TARGET_TOKENS].to_numpy().shape, np.float32))


def _shaped(position: int, logprobs: TensorData | None, datum: Datum) -> Array:
    shape = datum.loss_fn_inputs[TARGET_TOKENS].to_numpy().shape
    array = None if logprobs is None else logprobs.to_numpy()
    if array is None or array.size != np.prod(shape, dtype=int):
        found = "no" if array is None else array.size
        raise _unfit(f"data[{position}]: the server gave {found} logprobs for {TARGET_TOKENS} of shape {list(shape)}")
    return np.asarray(array, dtype=np.float32).reshape(shape)


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=f"forward_backward_custom: {text}")


def _leaf(array: Array) -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return torch.tensor(array, dtype=torch.float32, requires_grad=True)


def _differentiated(loss: Any, leaves: Sequence[Any]) -> list[Array]:
    if not getattr(loss, "requires_grad", False):
        raise ValueError(
            "loss_fn: its loss does not follow from the logprobs by torch; compute it from them without .item(), "
            ".detach() or numpy, or return the gradients, too"
        )
    _number("its loss", loss)
    loss.backward()
    if all(leaf.grad is None for leaf in leaves):
        raise ValueError("loss_fn: its loss does not depend on the logprobs; there is nothing to train on")
    return [
        # A datum that the loss leaves out has no say in it.
        np.zeros(tuple(leaf.shape), np.float32) if leaf.grad is None else _gradient(position, leaf.grad, leaf.shape)
        for position, leaf in enumerate(leaves)
    ]


def _given(gradients: object, logprobs: Sequence[Array]) -> list[Array]:
    if not isinstance(gradients, list | tuple) or len(gradients) != len(logprobs):
        found = len(gradients) if isinstance(gradients, list | tuple) else type(gradients).__name__
        raise ValueError(f"loss_fn: expected a list of {len(logprobs)} gradients, one per datum, got {found}")
    return [
        _gradient(position, given, array.shape)
        for position, (given, array) in enumerate(zip(gradients, logprobs, strict=True))
    ]


def _gradient(position: int, given: Any, shape: Sequence[int]) -> Array:
    name = f"loss_fn: gradients[{position}]"
    plain = _plain(name, given)
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(plain, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: it is no array of numbers: {error}") from None
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: it has the shape {list(array.shape)}, its logprobs have {list(shape)}")
    refuse_non_finite(name, array)
    return array


def _plain(name: str, value: Any) -> Any:
    """What numpy is to read. TypeError for what it would read as another number: None as NaN, a complex as its part."""
    plain = value.detach().cpu() if hasattr(value, "detach") else value
    if plain is None or (np.iscomplexobj(plain) if not hasattr(plain, "is_complex") else plain.is_complex()):
        raise TypeError(f"{name} is {'None' if plain is None else 'complex'}, not a real number")
    return plain.float() if hasattr(plain, "is_complex") else plain


def _metrics(given: object) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"loss_fn: its metrics are {type(given).__name__}; expected a dict of numbers by name")
    return {str(name): _number(f"its metric {name!r}", value) for name, value in given.items()}


def _number(name: str, value: Any) -> float:
    plain = _plain(f"loss_fn: {name}", value)
    try:
        array = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"loss_fn: {name} is {type(value).__name__}, not a number") from None
    if array.size != 1:
        raise ValueError(f"loss_fn: {name} has the shape {list(array.shape)}; reduce it to one number, as by .sum()")
    return float(array.reshape(()))
