"""Tests of futures in place of values, and of values in place of futures, for every operation."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._training.losses.handles import CustomLosses
from tinkerwire._training.losses.tracing import TracedLoss
from tinkerwire._wire.protobuf_messages import message_class
from tinkerwire._wire.server_futures import ALWAYS_VALUES, RESULT_TYPES
from tinkerwire_base.call import PROTOBUF
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput, UntypedAPIFuture
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
T = TypeVar("T")
FUTURES = {
    "bare": {"request_id": "later"},
    "pending": {"request_id": "later", "status": "pending"},
    "typed": {"request_id": "later", "type": "future", "status": "QUEUED", "model_id": None, "queue_state": "active"},
}
LOGPROBS = {"data": [-0.5, -1.0], "dtype": "float32", "shape": [2]}
OUTPUT = {"loss_fn_output_type": "T", "loss_fn_outputs": [{"logprobs": LOGPROBS}], "metrics": {"loss:sum": 1.0}}
PATH = "tinker://m1/weights/a"
COPY = "tinker://p1/weights/copy"
FLAGS = {"custom_loss_server_side": True, "sample_join_sampling_session": True}
VALUES: dict[str, Any] = {
    "create_session": {"session_id": "s1"},
    "create_sampling_session": {"sampling_session_id": "sampler1"},
    "get_info": {"model_id": "m1", "model_data": {"model_name": "base"}},
    "get_server_capabilities": {"supported_models": [{"model_name": "base"}]},
    "weights_info": {"base_model": "base", "is_lora": True, "lora_rank": 8},
    "training_runs": {"training_runs": [], "cursor": {"offset": 0, "limit": 20, "total_count": 0}},
    "sessions/s1": {"training_run_ids": ["m1"], "sampler_ids": []},
    "samplers/sampler1": {"sampler_id": "sampler1", "base_model": "base"},
    "copy_weights": {"tinker_path": COPY},
    "join_sampling_session": {"client_counter": 7},
}
RESULTS: dict[str, Any] = {
    "create_model": {"model_id": "m1"},
    "forward": OUTPUT,
    "forward_backward": OUTPUT,
    "optim_step": {"metrics": {"x:mean": 1.0}},
    "save_weights": {"path": PATH},
    "save_weights_for_sampler": {"path": None, "sampling_session_id": "sampler2"},
    "save_weights_external": {"path": "tinker://m1/external_weights/a"},
    "load_weights": {"path": PATH},
    "unload_model": {"model_id": "m1"},
    "create_custom_loss": {"loss_id": "loss1"},
    "asample": {"sequences": [{"stop_reason": "stop", "tokens": [1, 2], "logprobs": [-0.5, -1.0]}]},
}


def list_operations(client: tw.ServiceClient) -> dict[str, Callable[[], object]]:
    """Return functions that run each operation and return its result, by path."""

    def create_training_client() -> tw.TrainingClient:
        return client.create_lora_training_client("base").result(TEST_TIMEOUT_S)

    def create_sampling_client() -> tw.SamplingClient:
        return client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)

    def create_custom_loss() -> str | None:
        loss = TracedLoss("mine", (CustomLossInput(name="logprobs", rank=1),), CustomLossGraph(nodes=[]), None)
        losses = CustomLosses(client._session)
        return client._connection.start(lambda: losses.create(loss)).result(TEST_TIMEOUT_S).loss_id

    def join_sampling_session() -> int | None:
        copy: tw.SamplingClient = pickle.loads(pickle.dumps(create_sampling_client()))
        copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        return copy._runner.seq_ids.copy_number

    def wait(future: tw.APIFuture[T]) -> T:
        return future.result(TEST_TIMEOUT_S)

    rest = client.create_rest_client
    return {
        "create_session": lambda: create_training_client().model_id,
        "create_sampling_session": lambda: create_sampling_client().sampling_session_id,
        "get_info": lambda: create_training_client().get_info().model_data.model_name,
        "get_server_capabilities": lambda: client.get_server_capabilities().supported_models[0].model_name,
        "weights_info": lambda: wait(rest().get_weights_info_by_tinker_path(PATH)).base_model,
        "training_runs": lambda: wait(rest().list_training_runs()).training_runs,
        "sessions/s1": lambda: wait(rest().get_session("s1")).training_run_ids,
        "samplers/sampler1": lambda: create_sampling_client().get_base_model(),
        "copy_weights": lambda: wait(rest().copy_weights(PATH, "p1")),
        "join_sampling_session": join_sampling_session,
        "create_custom_loss": create_custom_loss,
        "create_model": lambda: create_training_client().model_id,
        "forward": lambda: wait(create_training_client().forward([datum()], "cross_entropy")).metrics,
        "forward_backward": lambda: wait(create_training_client().forward_backward([datum()], "cross_entropy")).metrics,
        "optim_step": lambda: wait(create_training_client().optim_step(ADAM)).metrics,
        "save_weights": lambda: wait(create_training_client().save_state("a")).path,
        "save_weights_for_sampler": lambda: (
            create_training_client().save_weights_and_get_sampling_client().sampling_session_id
        ),
        "save_weights_external": lambda: wait(create_training_client().save_weights_external("a")).path,
        "load_weights": lambda: wait(create_training_client().load_state(PATH)).path,
        "unload_model": lambda: wait(create_training_client().unload_model()).model_id,
        "asample": lambda: wait(create_sampling_client().sample(PROMPT, 1, PARAMS)).sequences[0].tokens,
    }


def test_result_types_list_every_operation_with_future() -> None:
    """Each operation with a future in the contract has a result type, except those that polls need."""
    futures = {name for name, operation in OPERATIONS.items() if operation.result_type(200) is UntypedAPIFuture}
    assert futures == set(RESULT_TYPES)
    assert not futures & ALWAYS_VALUES
    assert set(OPERATIONS) >= ALWAYS_VALUES


@pytest.mark.parametrize("future", FUTURES.values(), ids=FUTURES)
@pytest.mark.parametrize("name", VALUES)
def test_future_in_place_of_value_is_polled(server: ScriptedServer, name: str, future: dict[str, Any]) -> None:
    """The client polls the future until it has the value."""
    server.rules.update({path: lambda _, value=value: ScriptedResponse(value) for path, value in VALUES.items()})  # type: ignore[misc]
    with open_client(server.url, wire_version="0.38.0", client_config=FLAGS) as client:
        expected = list_operations(client)[name]()
    polls = in_order(
        ScriptedResponse(status=408), ScriptedResponse({"type": "try_again"}), ScriptedResponse(VALUES[name])
    )

    def poll(request: RecordedRequest) -> ScriptedResponse:
        return polls(request) if request.body["request_id"] == "later" else server.healthy_response(request)

    server.rules["retrieve_future"] = poll
    server.rules[name] = lambda _: ScriptedResponse(future)
    with open_client(server.url, wire_version="0.38.0", client_config=FLAGS) as client:
        assert list_operations(client)[name]() == expected
    assert len([body for body in server.bodies("retrieve_future") if body["request_id"] == "later"]) == 3


@pytest.mark.parametrize(
    "extra", [{}, {"request_id": "trace"}, {"request_id": "trace", "status": "completed"}], ids=str
)
@pytest.mark.parametrize("name", RESULTS)
def test_value_in_place_of_future_is_result(server: ScriptedServer, name: str, extra: dict[str, Any]) -> None:
    """The client polls nothing, even if the response has an id."""
    if extra and name in ("create_model", "unload_model"):
        pytest.skip("a response with request_id and model_id is a future of the contract")
    server.rules[name] = lambda _: ScriptedResponse({**RESULTS[name], **extra})
    is_new = name in ("create_custom_loss", "save_weights_external")
    options = {"wire_version": "0.38.0", "client_config": FLAGS} if is_new else {"wire_version": "0.16.1"}
    with open_client(server.url, **options) as client:
        result = list_operations(client)[name]()
    assert result in (*RESULTS[name].values(), [1, 2])
    polled = {body["request_id"].partition("/")[0] for body in server.bodies("retrieve_future")}
    assert not polled & {name, "trace"}


@pytest.mark.parametrize("name", ["asample", "forward", "forward_backward"])
def test_protobuf_value_in_place_of_future_is_result(server: ScriptedServer, name: str) -> None:
    """The client polls nothing."""
    if name == "asample":
        sequence = message_class("SampledSequence")(stop_reason=1, tokens=np.asarray([1, 2], "<i4").tobytes())
        content = message_class("SampleResponse")(sequences=[sequence]).SerializeToString()
    else:
        content = message_class("ForwardBackwardOutput")(metrics={"loss:sum": 1.0}).SerializeToString()
    server.rules[name] = lambda _: ScriptedResponse(content, headers={"content-type": PROTOBUF})
    with open_client(server.url, wire_version="0.22.7") as client:
        assert list_operations(client)[name]() in ([1, 2], {"loss:sum": 1.0})
    assert {body["request_id"].partition("/")[0] for body in server.bodies("retrieve_future")} <= {"create_model"}


def test_unexpected_protobuf_value_raises_validation_error(server: ScriptedServer) -> None:
    """The error names the operation, and the client does not resend the request."""
    server.rules["optim_step"] = lambda _: ScriptedResponse(b"\x0a\x00", headers={"content-type": PROTOBUF})
    with open_client(server.url) as client, pytest.raises(tw.APIResponseValidationError, match="optim_step"):
        list_operations(client)["optim_step"]()
    assert len(server.named("optim_step")) == 1


def test_custom_loss_accepts_values_in_place_of_futures(server: ScriptedServer) -> None:
    """Both requests of the loss accept the value."""
    server.rules["forward"] = server.rules["forward_backward"] = lambda _: ScriptedResponse(OUTPUT)
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        loss = training.forward_backward_custom(
            [datum()], lambda data, logprobs: (2.0, {}, [logprobs[0]]), arrays="numpy"
        )
        assert loss.result(TEST_TIMEOUT_S).metrics["loss:sum"] == 2.0
    assert not server.polls("ForwardBackward")


@pytest.mark.parametrize(
    "body", [{}, {"status": "pending"}, {"request_id": None}, {"request_id": 7}, [], b"null", b"<"]
)
@pytest.mark.parametrize("name", ["optim_step", "asample", "create_model", "create_sampling_session"])
def test_neither_future_nor_value_raises_validation_error(
    server: ScriptedServer, name: str, body: dict[str, Any] | list[Any] | bytes
) -> None:
    """The error names the operation and the response, and the client does not resend the request."""
    server.rules[name] = lambda _: ScriptedResponse(body)
    with open_client(server.url) as client, pytest.raises(tw.APIResponseValidationError, match=f"api/v1/{name}"):
        list_operations(client)[name]()
    assert len(server.named(name)) == 1


def test_failed_future_in_place_of_value_raises_reason(server: ScriptedServer) -> None:
    """The error names the operation and has the reason of the server."""
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse(FUTURES["pending"])
    server.rules["retrieve_future"] = lambda _: ScriptedResponse({"error": "no such model", "category": "user"})
    with open_client(server.url) as client, pytest.raises(tw.RequestFailedError, match="CreateSamplingSession later"):
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
