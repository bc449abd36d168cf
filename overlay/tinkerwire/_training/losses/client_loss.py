"""Custom losses: computed on the client from log probabilities, trained by a weighted cross-entropy.

The server returns the log probability of each target (forward). The user's function computes a loss from them. The
client sends the gradient of that loss to the server as weights (forward_backward): cross-entropy is the sum of
-weight * logprob, so that weights equal to minus the gradient train on exactly that loss.
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
from tinkerwire_generated import models

from ..._futures.operation_record import thread_state

T = TypeVar("T")
ArrayKind = Literal["torch", "numpy"]
CustomLossFn = Callable[[list["models.Datum"], list[Any]], tuple[Any, ...]]
"""A custom loss: a function of the batch and its log probabilities, one tensor shaped like target_tokens per datum,
that returns (loss, metrics) or (loss, metrics, gradients)."""
TARGET_TOKENS = "target_tokens"


@attrs.frozen
class LossEvaluation:
    """Result of the user's function for a batch."""

    loss: float
    metrics: dict[str, float]
    gradients: list[Array]
    """Gradients of the loss with respect to the log probabilities, float32, in their shapes."""


class CustomLoss:
    """A custom loss of one batch.

    Args:
        data: the batch; each datum has target_tokens.
        loss_fn: the user's function.
        arrays: type of its log probabilities: torch tensors that record gradients, or numpy arrays. None selects torch
            if it is installed.

    Raises:
        TypeError: ``loss_fn`` is not a function, or is an async function.
        ValueError: a datum has no target_tokens, or ``arrays`` is torch, which is not installed.
    """

    def __init__(self, data: list[models.Datum], loss_fn: CustomLossFn, arrays: ArrayKind | None) -> None:
        if not callable(loss_fn):
            raise TypeError(f"loss_fn: expected a function, got {type(loss_fn).__name__}")
        if inspect.iscoroutinefunction(loss_fn):
            raise TypeError("loss_fn: expected a synchronous function, got an async one; it runs on a separate thread")
        if arrays is not None:
            validator_of(ArrayKind)("arrays", arrays)
        if arrays == "torch" and not is_torch_installed():
            raise ValueError(
                "arrays: torch is not installed; install it, or pass arrays='numpy' and return the gradients, too"
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

    def forward_input(self) -> models.ForwardBackwardInput:
        """Return the batch for the forward pass, without the inputs that only the user's function reads."""
        return self._with_weights([d.loss_fn_inputs.get("weights") or _zero_weights(d) for d in self._data])

    async def evaluate(self, output: models.ForwardBackwardOutput, blocked_queue: object) -> LossEvaluation:
        """Run the user's function on a separate thread.

        Args:
            output: the result of the forward pass.
            blocked_queue: the queue of operations that waits until the function returns.

        Raises:
            Exception: the error that the function raised.
            TypeError: the function returned values of the wrong type.
            ValueError: the function returned values of the wrong shape, or a loss without gradients.
            APIResponseValidationError: the log probabilities do not match the batch.
        """
        logprobs = self._logprobs(output)
        return await asyncio.wrap_future(run_on_thread(lambda: self._evaluate(logprobs), blocked_queue))

    def backward_input(self, evaluation: LossEvaluation) -> models.ForwardBackwardInput:
        """Return the batch for the backward pass, which trains on the gradients."""
        return self._with_weights([models.TensorData.from_numpy(-gradient) for gradient in evaluation.gradients])

    def result(self, evaluation: LossEvaluation, output: models.ForwardBackwardOutput) -> models.ForwardBackwardOutput:
        """Return the backward result with the metrics of the loss; surrogate_loss:sum is the server's loss."""
        metrics: dict[str, float] = dict(output.metrics)
        surrogate = metrics.pop("loss:sum", None)
        metrics.update(evaluation.metrics)
        metrics["loss:sum"] = evaluation.loss
        if surrogate is not None:
            metrics["surrogate_loss:sum"] = surrogate
        return attrs.evolve(output, metrics=metrics)

    def _with_weights(self, weights: Sequence[models.TensorData]) -> models.ForwardBackwardInput:
        data = [
            attrs.evolve(datum, loss_fn_inputs={TARGET_TOKENS: datum.loss_fn_inputs[TARGET_TOKENS], "weights": tensor})
            for datum, tensor in zip(self._data, weights, strict=True)
        ]
        return models.ForwardBackwardInput(data=data, loss_fn="cross_entropy")

    def _logprobs(self, output: models.ForwardBackwardOutput) -> list[Array]:
        outputs = output.loss_fn_outputs
        if len(outputs) != len(self._data):
            raise _invalid_response(f"the server must return {len(self._data)} outputs, got {len(outputs)}")
        return [
            _reshape_logprobs(position, tensors.get("logprobs"), datum)
            for position, (tensors, datum) in enumerate(zip(outputs, self._data, strict=True))
        ]

    def _evaluate(self, logprobs: list[Array]) -> LossEvaluation:
        leaves = [_leaf(array) for array in logprobs] if self._with_torch else [array.copy() for array in logprobs]
        # Copies of the lists, because the function may change them.
        returned: object = self._loss_fn(list(self._data), list(leaves))
        if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
            description = type(returned).__name__ + (
                f" of length {len(returned)}" if isinstance(returned, tuple | list) else ""
            )
            raise TypeError(f"loss_fn must return (loss, metrics) or (loss, metrics, gradients), got {description}")
        loss, metrics = returned[0], _metrics(returned[1])
        if len(returned) == 3:
            gradients = _convert_gradients(returned[2], logprobs)
        elif self._with_torch:
            gradients = _differentiate(loss, leaves)
        else:
            raise TypeError("loss_fn must return (loss, metrics, gradients) without torch, got (loss, metrics)")
        return LossEvaluation(loss=_number("the loss", loss), metrics=metrics, gradients=gradients)


def run_on_thread(work: Callable[[], T], blocked_queue: object) -> Future[T]:
    """Run a function that a queue of operations waits for on a daemon thread."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        thread_state.blocking_queue = blocked_queue
        try:
            future.set_result(work())
        except BaseException as error:
            # A future cannot hold StopIteration, CancelledError would look like a cancellation, and SystemExit would
            # stop the event loop.
            is_safe = isinstance(error, Exception) and not isinstance(error, StopIteration | CancelledError)
            future.set_exception(error if is_safe else _wrap_error(error))

    threading.Thread(target=run, name="tinkerwire-loss", daemon=True).start()
    return future


def _wrap_error(cause: BaseException) -> RuntimeError:
    error = RuntimeError(f"loss_fn ended with {cause!r}")
    error.__cause__ = cause
    return error


def _zero_weights(datum: models.Datum) -> models.TensorData:
    return models.TensorData.from_numpy(np.zeros(datum.loss_fn_inputs[TARGET_TOKENS].to_numpy().shape, np.float32))


def _reshape_logprobs(position: int, logprobs: models.TensorData | None, datum: models.Datum) -> Array:
    shape = datum.loss_fn_inputs[TARGET_TOKENS].to_numpy().shape
    array = None if logprobs is None else logprobs.to_numpy()
    if array is None or array.size != np.prod(shape, dtype=int):
        count = 0 if array is None else array.size
        raise _invalid_response(
            f"data[{position}]: the server must return logprobs of shape {list(shape)}, got {count} logprobs"
        )
    return np.asarray(array, dtype=np.float32).reshape(shape)


def _invalid_response(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=f"forward_backward_custom: {text}")


def _leaf(array: Array) -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return torch.tensor(array, dtype=torch.float32, requires_grad=True)


def _differentiate(loss: Any, leaves: Sequence[Any]) -> list[Array]:
    if not getattr(loss, "requires_grad", False):
        raise ValueError(
            "loss_fn: torch cannot differentiate the loss by the logprobs; compute it from them without .item(), "
            ".detach() or numpy, or return the gradients, too"
        )
    _number("the loss", loss)
    loss.backward()
    if all(leaf.grad is None for leaf in leaves):
        raise ValueError("loss_fn: the loss does not depend on the logprobs; compute it from them")
    return [
        # The loss does not depend on a datum without gradient.
        np.zeros(tuple(leaf.shape), np.float32) if leaf.grad is None else _gradient(position, leaf.grad, leaf.shape)
        for position, leaf in enumerate(leaves)
    ]


def _convert_gradients(gradients: object, logprobs: Sequence[Array]) -> list[Array]:
    if not isinstance(gradients, list | tuple) or len(gradients) != len(logprobs):
        description = len(gradients) if isinstance(gradients, list | tuple) else type(gradients).__name__
        raise ValueError(f"loss_fn: expected a list of {len(logprobs)} gradients, one per datum, got {description}")
    return [
        _gradient(position, gradient, array.shape)
        for position, (gradient, array) in enumerate(zip(gradients, logprobs, strict=True))
    ]


def _gradient(position: int, value: Any, shape: Sequence[int]) -> Array:
    name = f"loss_fn: gradients[{position}]"
    numbers = _as_real(name, value)
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected an array of numbers: {error}") from None
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: expected the shape of the logprobs, {list(shape)}, got {list(array.shape)}")
    refuse_non_finite(name, array)
    return array


def _as_real(name: str, value: Any) -> Any:
    """Return a value for numpy; raise TypeError for None, which numpy reads as NaN, and for complex numbers."""
    real = value.detach().cpu() if hasattr(value, "detach") else value
    if real is None or (np.iscomplexobj(real) if not hasattr(real, "is_complex") else real.is_complex()):
        raise TypeError(f"{name}: expected a real number, got {'None' if real is None else 'a complex number'}")
    return real.float() if hasattr(real, "is_complex") else real


def _metrics(metrics: object) -> dict[str, float]:
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise TypeError(f"loss_fn: metrics: expected a dict of numbers by name, got {type(metrics).__name__}")
    return {str(name): _number(f"metric {name!r}", value) for name, value in metrics.items()}


def _number(name: str, value: Any) -> float:
    number = _as_real(f"loss_fn: {name}", value)
    try:
        array = np.asarray(number, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"loss_fn: {name}: expected a number, got {type(value).__name__}") from None
    if array.size != 1:
        raise ValueError(
            f"loss_fn: {name}: expected one number, got the shape {list(array.shape)}; reduce it, for example by .sum()"
        )
    return float(array.reshape(()))
