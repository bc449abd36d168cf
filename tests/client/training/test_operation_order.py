"""The order and seq_ids of operations on one model, as the server receives them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, datum, open_client
from support.scripted import (
    SUBMISSIONS,
    TEST_TIMEOUT_S,
    Gate,
    RecordedRequest,
    ScriptedResponse,
    ScriptedServer,
    in_order,
    seq_ids,
)
from tinkerwire._futures.future import APIFuture
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)


NUMBERED = {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}}


def submit_operation(training: tw.TrainingClient, number: int) -> Any:
    """Start an operation of one of six kinds."""
    kinds: list[Callable[[], Any]] = [
        lambda: training.forward([datum(number)], "cross_entropy"),
        lambda: training.forward_backward([datum(number)], "cross_entropy"),
        lambda: training.optim_step(ADAM),
        lambda: training.save_state(f"s{number}"),
        lambda: training.load_state("tinker://m1/weights/a"),
        lambda: training.save_weights_for_sampler(f"w{number}"),
    ]
    return kinds[number % len(kinds)]()


def test_hundreds_from_threads_and_tasks_arrive_in_order(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """400 operations of six kinds from 8 threads and 4 event loops arrive with seq_ids 1 to 400."""

    def in_thread(start: int) -> list[Any]:
        return [submit_operation(training, start + i) for i in range(40)]

    async def in_tasks(start: int) -> list[Any]:
        async def submit_soon(i: int) -> Any:
            await asyncio.sleep(0)
            return submit_operation(training, start + i)

        return await asyncio.gather(*(submit_soon(i) for i in range(20)))

    with ThreadPoolExecutor(12) as pool:
        jobs = [pool.submit(in_thread, 100 * n) for n in range(8)]
        jobs += [pool.submit(lambda n=n: asyncio.run(in_tasks(1000 + 100 * n))) for n in range(4)]
        futures = [future for job in jobs for future in job.result(TEST_TIMEOUT_S)]
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == list(range(1, 401))


def test_operations_arrive_in_call_order(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Operations of one thread arrive in call order, though submissions take different times."""
    pauses = random.Random(7)
    for name in ("forward_backward", "optim_step"):
        server.rules[name] = lambda request: ScriptedResponse(
            server.healthy_response(request).body, delay_s=pauses.random() / 50
        )
    futures: list[APIFuture[Any]] = []
    for i in range(20):
        futures.append(training.forward_backward([datum(100 + i)], "cross_entropy"))
        futures.append(training.optim_step(ADAM))
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == list(range(1, 41))
    assert [request.name for request in server.requests if request.name in SUBMISSIONS] == [
        "forward_backward",
        "optim_step",
    ] * 20
    tokens = [
        b["forward_backward_input"]["data"][0]["model_input"]["chunks"][0]["tokens"]
        for b in server.bodies("forward_backward")
    ]
    assert tokens == [[100 + i] for i in range(20)]


def test_requests_are_submitted_one_at_a_time(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The next request is sent only when the server has accepted the previous one."""
    server.rules["optim_step"] = lambda request: ScriptedResponse(server.healthy_response(request).body, delay_s=0.005)
    for future in [training.optim_step(ADAM) for _ in range(20)]:
        future.result(TEST_TIMEOUT_S)
    assert server.peak["optim_step"] == 1


def test_two_models_do_not_wait_for_each_other(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A submission that hangs delays no other model, and each model has separate seq_ids."""
    server.on_poll("CreateModel", in_order(ScriptedResponse({"model_id": "m1"}), ScriptedResponse({"model_id": "m2"})))
    first = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    second = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    gate = Gate()

    def rule(request: RecordedRequest) -> ScriptedResponse:
        return ScriptedResponse(
            server.healthy_response(request).body, gate=gate if request.body["model_id"] == "m1" else None
        )

    server.rules["optim_step"] = rule
    stuck = first.optim_step(ADAM)
    second.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert not stuck.done()
    gate.release()
    stuck.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1]


@pytest.mark.parametrize("status", [302, 307, 400, 401, 403, 404, 422])
def test_rejected_operation_leaves_no_gap(server: ScriptedServer, training: tw.TrainingClient, status: int) -> None:
    """A 3xx or 4xx fails its future with the server's text; the next operation reuses the seq_id."""
    rejection = ScriptedResponse({"detail": "bad adam"}, status=status)
    server.rules["optim_step"] = in_order(server.healthy_response, rejection, server.healthy_response)
    futures = [training.optim_step(ADAM) for _ in range(3)]
    futures[0].result(TEST_TIMEOUT_S)
    with pytest.raises(tw.APIStatusError, match="bad adam"):
        futures[1].result(TEST_TIMEOUT_S)
    futures[2].result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 2, 2]


def test_exhausted_429_leaves_no_gap(server: ScriptedServer) -> None:
    """An operation that only got 429 was never accepted, so that its seq_id is free."""
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=3)) as client:
        training = client.create_lora_training_client("base")
        server.rules["optim_step"] = in_order(*[ScriptedResponse({}, status=429)] * 3, server.healthy_response)
        failed, accepted = training.optim_step(ADAM), training.optim_step(ADAM)
        with pytest.raises(tw.RateLimitError):
            failed.result(TEST_TIMEOUT_S)
        accepted.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "uncertain_response",
    [
        ScriptedResponse({}, status=500),
        ScriptedResponse({}, status=409),
        ScriptedResponse({}, status=408),
        ScriptedResponse(drop=True),
    ],
    ids=str,
)
def test_uncertain_seq_id_is_not_reused(server: ScriptedServer, uncertain_response: ScriptedResponse) -> None:
    """After an uncertain operation, the next one gets a new seq_id."""
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=2)) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        server.rules["optim_step"] = in_order(uncertain_response, uncertain_response, server.healthy_response)
        failed, accepted = training.optim_step(ADAM), training.optim_step(ADAM)
        with pytest.raises(tw.APIError):
            failed.result(TEST_TIMEOUT_S)
        accepted.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2]


def test_rejection_after_a_lost_response_frees_nothing(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The first attempt may be accepted, so that the seq_id counts as used."""
    server.rules["optim_step"] = in_order(
        ScriptedResponse(drop=True), ScriptedResponse({}, status=422), server.healthy_response
    )
    failed, accepted = training.optim_step(ADAM), training.optim_step(ADAM)
    with pytest.raises(tw.UnprocessableEntityError):
        failed.result(TEST_TIMEOUT_S)
    accepted.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2]


def test_unreachable_server_leaves_no_gap(server: ScriptedServer) -> None:
    """An operation without any connection was not accepted; the next one reuses its seq_id."""
    inner, unreachable = HttpTransport(server.url), HttpTransport("http://127.0.0.1:1")

    class Flaky:
        is_away = False

        async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
            return await (unreachable if self.is_away else inner).send(request, traffic, timeout_s)

        async def close(self) -> None:
            await inner.close()
            await unreachable.close()

    flaky = Flaky()
    with open_client(server.url, transport=flaky, retry=attrs.evolve(FAST, max_attempts=2)) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        flaky.is_away = True
        with pytest.raises(tw.APIConnectionError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        flaky.is_away = False
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 2]


def test_operation_that_cannot_be_encoded_leaves_no_gap(server: ScriptedServer) -> None:
    """An operation that the wire version lacks fails unsent; the next one gets its seq_id."""
    with open_client(server.url, wire_version="0.4.1") as client:
        training = client.create_lora_training_client("base")
        impossible, accepted = training.save_state("a", ttl_seconds=60), training.optim_step(ADAM)
        with pytest.raises(tw.DialectError, match="ttl_seconds"):
            impossible.result(TEST_TIMEOUT_S)
        accepted.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1]


def test_slow_or_failed_result_delays_no_operation(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Submissions continue while an earlier result is pending, and after one failed."""
    gate = Gate()
    server.on_poll("ForwardBackward", lambda request: ScriptedResponse(NUMBERED, gate=gate))
    server.on_poll("SaveWeights", lambda _: ScriptedResponse({"error": "disk full"}))
    slow = training.forward_backward([datum()], "cross_entropy")
    failed = training.save_state("a")
    for future in [training.optim_step(ADAM) for _ in range(5)]:
        future.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.RequestFailedError, match="disk full"):
        failed.result(TEST_TIMEOUT_S)
    assert not slow.done()
    gate.release()
    slow.result(TEST_TIMEOUT_S)


def test_pending_results_do_not_delay_submissions(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """With 300 pending polls, another operation is still submitted at once."""
    gate = Gate()
    server.on_poll("OptimStep", lambda request: ScriptedResponse({"metrics": {}}, gate=gate))
    futures = [training.optim_step(ADAM) for _ in range(300)]
    training.save_state("a")
    server.wait_for_requests("save_weights")
    gate.release()
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == list(range(1, 302))


def test_seq_id_of_counted_rejection_is_skipped(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The client retries the seq_id of a rejected operation, and skips it after a conflict."""
    reused = ScriptedResponse({"detail": "Training request sequence number was reused"}, status=409)
    server.rules["optim_step"] = in_order(
        ScriptedResponse({"detail": "no"}, status=422), reused, server.healthy_response
    )
    training = client.create_lora_training_client("base")
    with pytest.raises(tw.UnprocessableEntityError):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    for _ in range(2):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2, 3]


def test_seq_id_that_never_arrived_is_reused_after_conflict(server: ScriptedServer) -> None:
    """If a gap is a conflict, the next operation uses the uncertain seq_id."""
    conflict = ScriptedResponse({"detail": "seq_id 2 is too high: expected 1"}, status=409)
    server.rules["optim_step"] = in_order(
        ScriptedResponse(drop=True), ScriptedResponse(drop=True), conflict, server.healthy_response
    )
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=2)) as client:
        training = client.create_lora_training_client("base")
        with pytest.raises(tw.APIConnectionError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        for _ in range(2):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2, 1, 2]
