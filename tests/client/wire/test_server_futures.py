"""Tests of futures in place of values, and of values in place of futures, for every operation."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._training.losses.handles import CustomLosses
from tinkerwire._training.losses.tracing import TracedLoss
from tinkerwire._wire.protobuf_messages import message_class
from tinkerwire._wire.server_futures import ALWAYS_VALUES, RESULT_TYPES
from tinkerwire_base.call import PROTOBUF
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput, UntypedAPIFuture
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
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


def start_operations(client: tw.ServiceClient) -> dict[str, Callable[[], Any]]:
    """Return the result of each operation by its path."""

    def training() -> tw.TrainingClient:
        return client.create_lora_training_client("base").result(TEST_TIMEOUT_S)

    def sampler() -> tw.SamplingClient:
        return client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)

    def custom_loss() -> str | None:
        traced = TracedLoss("mine", (CustomLossInput(name="logprobs", rank=1),), CustomLossGraph(nodes=[]), None)
        losses = CustomLosses(client._session)
        return client._connection.start(lambda: losses.create(traced)).result(TEST_TIMEOUT_S).loss_id

    def joined() -> int | None:
        copy: tw.SamplingClient = pickle.loads(pickle.dumps(sampler()))
        copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        return copy._runner.seq_ids.copy_number

    def wait(future: Any) -> Any:
        return future.result(TEST_TIMEOUT_S)

    rest = client.create_rest_client
    return {
        "create_session": lambda: training().model_id,
        "create_sampling_session": lambda: sampler().sampling_session_id,
        "get_info": lambda: training().get_info().model_data.model_name,
        "get_server_capabilities": lambda: client.get_server_capabilities().supported_models[0].model_name,
        "weights_info": lambda: wait(rest().get_weights_info_by_tinker_path(PATH)).base_model,
        "training_runs": lambda: wait(rest().list_training_runs()).training_runs,
        "sessions/s1": lambda: wait(rest().get_session("s1")).training_run_ids,
        "samplers/sampler1": lambda: sampler().get_base_model(),
        "copy_weights": lambda: wait(rest().copy_weights(PATH, "p1")),
        "join_sampling_session": joined,
        "create_custom_loss": custom_loss,
        "create_model": lambda: training().model_id,
        "forward": lambda: wait(training().forward([datum()], "cross_entropy")).metrics,
        "forward_backward": lambda: wait(training().forward_backward([datum()], "cross_entropy")).metrics,
        "optim_step": lambda: wait(training().optim_step(ADAM)).metrics,
        "save_weights": lambda: wait(training().save_state("a")).path,
        "save_weights_for_sampler": lambda: training().save_weights_and_get_sampling_client().sampling_session_id,
        "save_weights_external": lambda: wait(training().save_weights_external("a")).path,
        "load_weights": lambda: wait(training().load_state(PATH)).path,
        "unload_model": lambda: wait(training().unload_model()).model_id,
        "asample": lambda: wait(sampler().sample(PROMPT, 1, PARAMS)).sequences[0].tokens,
    }


def test_the_table_has_every_operation_with_a_future() -> None:
    """Each operation for which the contract has a future has a result type; those that polls need have none."""
    futures = {name for name, operation in OPERATIONS.items() if operation.result_type(200) is UntypedAPIFuture}
    assert futures == set(RESULT_TYPES)
    assert not futures & ALWAYS_VALUES
    assert set(OPERATIONS) >= ALWAYS_VALUES


@pytest.mark.parametrize("future", FUTURES.values(), ids=FUTURES)
@pytest.mark.parametrize("name", VALUES)
def test_a_future_in_place_of_a_value(server: ScriptedServer, name: str, future: dict[str, Any]) -> None:
    """The client polls it to its value, also while that is pending."""
    server.rules.update({path: lambda _, value=value: ScriptedResponse(value) for path, value in VALUES.items()})  # type: ignore[misc]
    with open_client(server.url, wire_version="0.38.0", client_config=FLAGS) as client:
        expected = start_operations(client)[name]()
    kept = in_order(
        ScriptedResponse(status=408), ScriptedResponse({"type": "try_again"}), ScriptedResponse(VALUES[name])
    )

    def poll(request: Any) -> ScriptedResponse:
        return kept(request) if request.body["request_id"] == "later" else server.healthy_response(request)

    server.rules["retrieve_future"] = poll
    server.rules[name] = lambda _: ScriptedResponse(future)
    with open_client(server.url, wire_version="0.38.0", client_config=FLAGS) as client:
        assert start_operations(client)[name]() == expected
    assert len([body for body in server.bodies("retrieve_future") if body["request_id"] == "later"]) == 3


@pytest.mark.parametrize(
    "extra", [{}, {"request_id": "trace"}, {"request_id": "trace", "status": "completed"}], ids=str
)
@pytest.mark.parametrize("name", RESULTS)
def test_a_value_in_place_of_a_future(server: ScriptedServer, name: str, extra: dict[str, Any]) -> None:
    """The value is the result; nothing is polled, and the response may have an id."""
    if extra and name in ("create_model", "unload_model"):
        pytest.skip("a response with request_id and model_id is a future of the contract")
    server.rules[name] = lambda _: ScriptedResponse({**RESULTS[name], **extra})
    is_new = name in ("create_custom_loss", "save_weights_external")
    options = {"wire_version": "0.38.0", "client_config": FLAGS} if is_new else {"wire_version": "0.16.1"}
    with open_client(server.url, **options) as client:
        found = start_operations(client)[name]()
    expected = RESULTS[name]
    assert found in (*expected.values(), [1, 2])
    polled = {body["request_id"].partition("/")[0] for body in server.bodies("retrieve_future")}
    assert not polled & {name, "trace"}


@pytest.mark.parametrize("name", ["asample", "forward", "forward_backward"])
def test_a_protobuf_value_in_place_of_a_future(server: ScriptedServer, name: str) -> None:
    """The value is the result; nothing is polled."""
    if name == "asample":
        sequence = message_class("SampledSequence")(stop_reason=1, tokens=np.asarray([1, 2], "<i4").tobytes())
        content = message_class("SampleResponse")(sequences=[sequence]).SerializeToString()
    else:
        content = message_class("ForwardBackwardOutput")(metrics={"loss:sum": 1.0}).SerializeToString()
    server.rules[name] = lambda _: ScriptedResponse(content, headers={"content-type": PROTOBUF})
    with open_client(server.url, wire_version="0.22.7") as client:
        assert start_operations(client)[name]() in ([1, 2], {"loss:sum": 1.0})
    assert {body["request_id"].partition("/")[0] for body in server.bodies("retrieve_future")} <= {"create_model"}


def test_a_protobuf_value_where_there_is_none(server: ScriptedServer) -> None:
    """An operation without a protobuf result raises an error that names it, without a resend."""
    server.rules["optim_step"] = lambda _: ScriptedResponse(b"\x0a\x00", headers={"content-type": PROTOBUF})
    with open_client(server.url) as client, pytest.raises(tw.APIResponseValidationError, match="optim_step"):
        start_operations(client)["optim_step"]()
    assert len(server.named("optim_step")) == 1


def test_a_custom_loss_on_a_server_that_trains_at_once(server: ScriptedServer) -> None:
    """Both halves accept the value."""
    server.rules["forward"] = server.rules["forward_backward"] = lambda _: ScriptedResponse(OUTPUT)
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        loss = training.forward_backward_custom([datum()], lambda data, found: (2.0, {}, [found[0]]), arrays="numpy")
        assert loss.result(TEST_TIMEOUT_S).metrics["loss:sum"] == 2.0
    assert not server.polls("ForwardBackward")


@pytest.mark.parametrize(
    "body", [{}, {"status": "pending"}, {"request_id": None}, {"request_id": 7}, [], b"null", b"<"]
)
@pytest.mark.parametrize("name", ["optim_step", "asample", "create_model", "create_sampling_session"])
def test_a_response_that_is_neither(server: ScriptedServer, name: str, body: Any) -> None:
    """The error names the call and the response, without a resend."""
    server.rules[name] = lambda _: ScriptedResponse(body)
    with open_client(server.url) as client, pytest.raises(tw.APIResponseValidationError, match=f"api/v1/{name}"):
        start_operations(client)[name]()
    assert len(server.named(name)) == 1


def test_a_failed_future_in_place_of_a_value(server: ScriptedServer) -> None:
    """The error names the operation and the server's reason."""
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse(FUTURES["pending"])
    server.rules["retrieve_future"] = lambda _: ScriptedResponse({"error": "no such model", "category": "user"})
    with open_client(server.url) as client, pytest.raises(tw.RequestFailedError, match="CreateSamplingSession later"):
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
