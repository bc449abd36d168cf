"""Tests of custom losses: requests of both passes, results, and functions that fail."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client, wait_until
from support.embedded import embedded_http_server
from support.scripted import SUBMISSIONS, TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, seq_ids
from tinkerwire import ChunkLimits

pytestmark = pytest.mark.timeout(60)
HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
LOGPROBS = [-1.0, -2.0]


def make_tensor(values: Any, shape: list[int]) -> dict[str, Any]:
    return {"data": values, "dtype": "float32", "shape": shape}


def make_output(count: int, metrics: dict[str, float]) -> dict[str, Any]:
    """Return the server's output of a batch whose targets all have the same log probability."""
    outputs = [{"logprobs": make_tensor(LOGPROBS, [2])} for _ in range(count)]
    return {"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": metrics}


@pytest.fixture
def training(server: ScriptedServer) -> Iterator[tw.TrainingClient]:
    """Create a client whose batches are sent one datum at a time."""
    server.on_poll("Forward", lambda _: ScriptedResponse(make_output(1, {"loss:sum": 0.0})))
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(make_output(1, {"loss:sum": 5.0, "tokens:sum": 2.0})))
    with open_client(server.url, chunk_limits=ChunkLimits(max_datums=1)) as client:
        yield client.create_lora_training_client("base")


def squares(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
    """Return the sum of the squares of all log probabilities; the gradients are twice the log probabilities."""
    loss = sum((array**2).sum() for array in logprobs)
    return loss, {"datums": len(data)}, [2 * array for array in logprobs]


def list_sent(server: ScriptedServer, name: str) -> list[dict[str, Any]]:
    """Return the data of all requests of a kind."""
    field = {"forward": "forward_input", "forward_backward": "forward_backward_input"}[name]
    return [example for body in server.bodies(name) for example in body[field]["data"]]


def test_custom_loss_sends_forward_and_backward_with_gradients(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """Only targets and weights are sent; the backward weights are minus the gradients; metrics are the loss's."""
    rich = tw.Datum(
        model_input=tw.ModelInput.from_ints([5, 6]),
        loss_fn_inputs={"target_tokens": [6, 7], "advantages": [0.5, 0.5]},
    )
    received: list[Any] = []

    def loss_fn(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        received.extend((data, logprobs, threading.current_thread()))
        return squares(data, logprobs)

    result = training.forward_backward_custom([datum(), rich], loss_fn, arrays="numpy").result(TEST_TIMEOUT_S)
    assert received[0][1].loss_fn_inputs.keys() == {"target_tokens", "advantages"}
    assert [(array.dtype, array.tolist()) for array in received[1]] == [(np.dtype("float32"), LOGPROBS)] * 2
    assert received[2].name == "tinkerwire-loss"
    first, second = list_sent(server, "forward")
    assert first["loss_fn_inputs"]["weights"]["data"] == [1.0, 1.0]
    assert second["loss_fn_inputs"] == {
        "target_tokens": {"data": [6, 7], "dtype": "int64", "shape": [2]},
        "weights": make_tensor([0.0, 0.0], [2]),
    }
    for backward_datum, forward_datum in zip(list_sent(server, "forward_backward"), (first, second), strict=True):
        assert backward_datum["model_input"] == forward_datum["model_input"]
        targets = forward_datum["loss_fn_inputs"]["target_tokens"]
        assert backward_datum["loss_fn_inputs"] == {"target_tokens": targets, "weights": make_tensor([2.0, 4.0], [2])}
    assert {body["forward_backward_input"]["loss_fn"] for body in server.bodies("forward_backward")} == {
        "cross_entropy"
    }
    assert result.metrics == {"tokens:sum": 4.0, "datums": 2.0, "loss:sum": 10.0, "surrogate_loss:sum": 10.0}
    assert len(result.loss_fn_outputs) == 2


def test_loss_overrides_metric_of_same_name(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A response without loss:sum is valid, and a metric with this name does not replace the loss."""
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(make_output(1, {})))
    result = training.forward_backward_custom(
        [datum()], lambda d, lp: (3.0, {"loss:sum": 1.0, "kl:mean": np.float32(0.5)}, lp), arrays="numpy"
    ).result(TEST_TIMEOUT_S)
    assert result.metrics == {"loss:sum": 3.0, "kl:mean": 0.5}


def test_later_operations_keep_their_place(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Operations started during the function are sent after the backward pass; the event loop keeps running."""
    entered, go_on = threading.Event(), threading.Event()

    def slow(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        entered.set()
        assert go_on.wait(TEST_TIMEOUT_S)
        return squares(data, logprobs)

    before = training.optim_step(ADAM)
    custom = training.forward_backward_custom([datum(), datum()], slow, arrays="numpy")
    after = training.optim_step(ADAM)
    assert entered.wait(TEST_TIMEOUT_S)
    training.get_info()
    assert len(server.named("optim_step")) == 1
    go_on.set()
    for future in (before, custom, after):
        future.result(TEST_TIMEOUT_S)
    names = [request.name for request in server.requests if "seq_id" in (request.body or {})]
    assert names == ["optim_step", *["forward"] * 2, *["forward_backward"] * 2, "optim_step"]
    assert seq_ids(server) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (KeyError("advantages"), KeyError, "advantages"),
        (StopIteration("over"), RuntimeError, "loss_fn ended with StopIteration"),
        (SystemExit(3), RuntimeError, "loss_fn ended with SystemExit"),
        (concurrent.futures.CancelledError(), RuntimeError, "loss_fn ended with CancelledError"),
    ],
)
def test_failed_loss_function_fails_queued_operations(
    server: ScriptedServer, training: tw.TrainingClient, error: BaseException, expected: type[Exception], text: str
) -> None:
    """Nothing is trained or saved without the gradients; once the error is retrieved, training continues."""

    def failing(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        raise error

    custom = training.forward_backward_custom([datum()], failing, arrays="numpy")
    queued = [training.optim_step(ADAM), training.save_state("a"), training.save_weights_for_sampler("b")]
    wait_until(custom.done, "the loss fails")
    queued.append(training.forward_backward([datum()], "cross_entropy"))
    for future in queued:
        with pytest.raises(tw.PrecedingOperationError, match=f"not sent, because ForwardBackward.*{text}") as caught:
            future.result(TEST_TIMEOUT_S)
        assert isinstance(caught.value, RuntimeError)
        assert type(caught.value.__cause__) is expected
    with pytest.raises(expected, match=text):
        custom.result(TEST_TIMEOUT_S)
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert [request.name for request in server.requests if request.name in SUBMISSIONS] == ["forward", "optim_step"]
    assert seq_ids(server) == [1, 2]


@pytest.mark.parametrize(
    ("returned", "expected", "text"),
    [
        (None, TypeError, r"must return \(loss, metrics\) or .*, got NoneType"),
        ((1.0,), TypeError, "got tuple of length 1"),
        ((1.0, {}), TypeError, r"must return \(loss, metrics, gradients\) without torch"),
        ((1.0, [], [[0.0, 0.0]]), TypeError, "expected a dict of numbers by name, got list"),
        ((1.0, {"a": "b"}, [[0.0, 0.0]]), TypeError, "metric 'a': expected a number, got str"),
        ((1.0, {"a": [1, 2]}, [[0.0, 0.0]]), ValueError, r"metric 'a': expected one number, got the shape \[2\]"),
        (([1.0, 2.0], {}, [[0.0, 0.0]]), ValueError, r"the loss: expected one number, got the shape \[2\]; reduce it"),
        ((1.0, {}, []), ValueError, "a list of 1 gradients, one per datum, got 0"),
        ((1.0, {}, 7), ValueError, "got int"),
        ((1.0, {}, [[0.0]]), ValueError, r"gradients\[0\]: expected the shape of the logprobs, \[2\], got \[1\]"),
        ((1.0, {}, [["a", "b"]]), TypeError, r"gradients\[0\]: expected an array of numbers"),
        ((1.0, {}, [[0.0, float("nan")]]), ValueError, r"gradients\[0\]\[1\]: nan"),
    ],
)
def test_wrong_return_values_raise(
    server: ScriptedServer, training: tw.TrainingClient, returned: Any, expected: type[Exception], text: str
) -> None:
    """Each wrong return value raises, and no backward pass follows."""
    with pytest.raises(expected, match=text):
        training.forward_backward_custom([datum()], lambda d, lp: returned, arrays="numpy").result(TEST_TIMEOUT_S)
    assert not server.named("forward_backward")


def test_wrong_arguments_raise_before_anything_is_sent(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Missing data or targets, async functions and unknown kinds of arrays or losses raise."""
    training.result(TEST_TIMEOUT_S)
    example = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={})

    async def later(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        return squares(data, logprobs)

    with pytest.raises(ValueError, match="data must have at least 1 datum"):
        training.forward_backward_custom([], squares)
    with pytest.raises(ValueError, match=r"data\[1\]: no target_tokens"):
        training.forward_backward_custom([datum(), example], squares)
    with pytest.raises(TypeError, match="loss_fn: expected a function, got str"):
        training.forward_backward_custom([datum()], "ppo")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a synchronous function"):
        training.forward_backward_custom([datum()], later)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="arrays: must be one of 'torch', 'numpy', got 'jax'"):
        training.forward_backward_custom([datum()], squares, arrays="jax")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be one of 'logprobs', got 'logits'"):
        training.forward_backward_custom([datum()], squares, loss_type_input="logits")  # type: ignore[arg-type]
    assert not server.named("forward")


def test_loss_type_input_is_deprecated(training: tw.TrainingClient) -> None:
    """loss_type_input still works, with a DeprecationWarning."""
    with pytest.warns(DeprecationWarning, match="loss_type_input"):
        future = training.forward_backward_custom([datum()], squares, loss_type_input="logprobs", arrays="numpy")
    assert future.result(TEST_TIMEOUT_S).metrics["loss:sum"] == 5.0


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_numpy_is_default_without_torch(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Numpy arrays are the default, and the error for torch names the alternative."""
    assert training.forward_backward_custom([datum()], squares).result(TEST_TIMEOUT_S).metrics["loss:sum"] == 5.0
    with pytest.raises(ValueError, match="torch is not installed; install it, or pass arrays='numpy'"):
        training.forward_backward_custom([datum()], squares, arrays="torch")


@pytest.mark.parametrize("outputs", [[], [{}], [{"logprobs": make_tensor([-1.0], [1])}]])
def test_logprobs_of_the_wrong_size_raise(
    server: ScriptedServer, training: tw.TrainingClient, outputs: list[Any]
) -> None:
    """Log probabilities that do not match the targets raise before the function runs."""
    body = {"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": {}}
    server.on_poll("Forward", lambda _: ScriptedResponse(body))
    with pytest.raises(tw.APIResponseValidationError, match=r"(logprobs|outputs)"):
        training.forward_backward_custom([datum()], squares, arrays="numpy").result(TEST_TIMEOUT_S)


@needs_torch
def test_torch_computes_gradients_of_loss(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Tensors are float32 leaves; a datum that the loss does not use has a gradient of 0."""
    tensors: list[Any] = []

    def loss_fn(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        tensors.extend(logprobs)
        loss = (logprobs[0] ** 2).sum()
        return loss, {"half": (loss / 2).detach()}

    result = training.forward_backward_custom([datum(), datum()], loss_fn).result(TEST_TIMEOUT_S)
    assert all(tensor.is_leaf and tensor.requires_grad and str(tensor.dtype) == "torch.float32" for tensor in tensors)
    weights = [tensor["loss_fn_inputs"]["weights"]["data"] for tensor in list_sent(server, "forward_backward")]
    assert weights == [[2.0, 4.0], [0.0, 0.0]]
    assert result.metrics["loss:sum"] == 5.0 and result.metrics["half"] == 2.5


@needs_torch
@pytest.mark.parametrize(
    ("cut", "text"),
    [
        (lambda lp: lp.detach().sum(), "cannot differentiate the loss by the logprobs"),
        (lambda lp: 1.0, "cannot differentiate the loss by the logprobs"),
        (lambda lp: lp * 2, "expected one number"),
        (lambda lp: lp.new_ones(1, requires_grad=True).sum(), "does not depend on the logprobs"),
    ],
)
def test_losses_that_torch_cannot_differentiate_raise(training: tw.TrainingClient, cut: Any, text: str) -> None:
    """A loss without gradients with respect to the log probabilities raises."""
    with pytest.raises(ValueError, match=text):
        training.forward_backward_custom([datum()], lambda d, lp: (cut(lp[0]), {})).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("wire_version", ["0.16.1", "0.38.0"])
def test_custom_cross_entropy_trains_like_the_builtin_one(wire_version: str) -> None:
    """The embedded server's model changes equally, in JSON and in protobuf."""
    tokens = list(b"to be or not to be")
    inputs = {"target_tokens": tokens[1:], "weights": [1.0] * (len(tokens) - 1)}
    example = tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)

    def by_hand(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        return -logprobs[0].sum(), {}, [np.full(len(logprobs[0]), -1.0)]

    with (
        embedded_http_server("--wire", wire_version) as url,
        tw.ServiceClient(base_url=url, wire_version=wire_version) as client,
    ):
        builtin, own_loss = (
            client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0) for _ in range(2)
        )
        for _ in range(2):
            builtin_future = builtin.forward_backward([example], "cross_entropy")
            custom = own_loss.forward_backward_custom([example], by_hand, arrays="numpy")
            builtin.optim_step(ADAM).result(TEST_TIMEOUT_S)
            own_loss.optim_step(ADAM).result(TEST_TIMEOUT_S)
            losses = [future.result(TEST_TIMEOUT_S).metrics["loss:sum"] for future in (builtin_future, custom)]
            assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@needs_torch
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sparse_and_dense_matrices_are_targets(server: ScriptedServer, dtype: str) -> None:
    """Two-dimensional targets and weights of any dtype work; gradients have their shape."""
    import torch  # noqa: PLC0415

    shape = [2, 50]
    body = {
        "loss_fn_output_type": "T",
        "loss_fn_outputs": [{"logprobs": make_tensor([-1.0] * 100, shape)}],
        "metrics": {},
    }
    server.on_poll("Forward", lambda _: ScriptedResponse(body))
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(body))
    targets = torch.zeros(shape, dtype=torch.int64)
    targets[1, 7] = 9
    weights = torch.zeros(shape, dtype=getattr(torch, dtype))
    weights[0, 3] = 1.5
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base")
        for tokens_tensor in (targets, tw.TensorData.from_torch_sparse(targets)):
            inputs = {"target_tokens": tokens_tensor, "weights": weights}
            example = tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs=inputs)
            future = training.forward_backward_custom([example], lambda d, lp: ((lp[0] * weights.float()).sum(), {}))
            assert future.result(TEST_TIMEOUT_S).metrics["loss:sum"] == -1.5


def test_function_that_waits_for_its_own_client_raises(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The wait raises instead of a deadlock, and the operation is not sent."""
    before = training.optim_step(ADAM)
    steps: list[Any] = []

    def waits(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        before.result(TEST_TIMEOUT_S)
        steps.append(training.optim_step(ADAM))
        with pytest.raises(TimeoutError):
            steps[0].result(0)
        steps[0].result()
        return squares(data, logprobs)

    failed = training.forward_backward_custom([datum()], waits, arrays="numpy")
    with pytest.raises(
        RuntimeError, match=r"deadlock: .*OptimStep.* is queued behind the loss function that waits for it"
    ):
        failed.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.PrecedingOperationError):
        steps[0].result(TEST_TIMEOUT_S)
    assert not server.named("forward_backward")


def test_function_may_wait_for_another_client(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Another client has a separate queue."""
    with open_client(server.url) as service:
        other_client = service.create_lora_training_client("base")

        def waits(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
            other_client.optim_step(ADAM).result()
            return squares(data, logprobs)

        training.forward_backward_custom([datum()], waits, arrays="numpy").result(TEST_TIMEOUT_S)
    assert server.named("forward_backward")


def test_function_may_change_its_list(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A changed list of datums does not change the batch."""

    def careless(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        data.reverse()
        gradients = [np.full(2, position + 1.0) for position in range(len(data))]
        data.clear()
        return 0.0, {}, gradients

    training.forward_backward_custom([datum(1, 2), datum(3, 4)], careless, arrays="numpy").result(TEST_TIMEOUT_S)
    trained = [
        (example["model_input"]["chunks"][0]["tokens"], example["loss_fn_inputs"]["weights"]["data"])
        for example in list_sent(server, "forward_backward")
    ]
    assert trained == [([1, 2], [-1.0, -1.0]), ([3, 4], [-2.0, -2.0])]


@pytest.mark.parametrize(
    "returned",
    [(None, {}, [np.zeros(2)]), (0.0, {"m": None}, [np.zeros(2)]), (0.0, {}, [np.zeros(2) + 1j]), (0.0, {}, [None])],
    ids=["loss", "metric", "complex gradient", "no gradient"],
)
def test_values_other_than_real_numbers_raise(
    server: ScriptedServer, training: tw.TrainingClient, returned: Any
) -> None:
    """No value is read as another number, and nothing is trained."""
    with pytest.raises(TypeError, match=r"loss_fn: .* expected a real number"):
        training.forward_backward_custom([datum(1, 2)], lambda *_: returned, arrays="numpy").result(TEST_TIMEOUT_S)
    assert not server.named("forward_backward")
