"""Batched polling: one request for all samples of a client gives the same results, also after errors."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, PROMPT, open_client
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._polling import batched_poller

pytestmark = pytest.mark.timeout(120)
BATCHED = {"wire_version": "0.38.0", "client_config": {"sample_use_retrieve_futures": True}}


class CompletionEndpoint:
    """Endpoint retrieve_futures of a server that reports every sample as finished, once."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._cursor = itertools.count(10, 10)
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        server.rules["retrieve_futures"] = self.respond

    def respond(self, request: RecordedRequest) -> ScriptedResponse:
        """Report the samples that the last response did not report yet."""
        with self._lock:
            new = [request_id for request_id in sample_ids(self._server) if request_id not in self._reported]
            self._reported.update(new)
            if not new:
                return ScriptedResponse({"completions": [], "cursor": request.body["prev_cursor"]})
            completions = [{"state": "finished", "request_id": request_id} for request_id in new]
            return ScriptedResponse({"completions": completions, "cursor": next(self._cursor)})


def sample_ids(server: ScriptedServer) -> list[str]:
    """Return the request ids of all samples that the server accepted."""
    return [f"asample/{i + 1}/{body['seq_id']}" for i, body in enumerate(server.bodies("asample"))]


def list_acknowledged_ids(server: ScriptedServer) -> set[str]:
    """Return the request ids that batched polls acknowledged."""
    return {request_id for body in server.bodies("retrieve_futures") for request_id in body["retrieved_request_ids"]}


@contextmanager
def open_sampling_client(server: ScriptedServer, **options: object) -> Iterator[tw.SamplingClient]:
    """Open a sampling client that polls for its samples in batches."""
    with open_client(server.url, **{**BATCHED, **options}) as client:
        yield client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)


def sample(sampling: tw.SamplingClient, count: int) -> list[tw.SampleResponse]:
    """Sample that many times at once and return the responses."""
    return tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(count)]).result(TEST_TIMEOUT_S)


def test_one_batched_poll_serves_many_samples(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client fetches each result once; its batched polls name the client, the cursor and the fetched ids."""
    monkeypatch.setattr(batched_poller, "ACK_AFTER_S", 0.01)
    CompletionEndpoint(server)
    with open_sampling_client(server) as sampling:
        assert len(sample(sampling, 20)) == 20
        expected = set(sample_ids(server))
        server.wait_for(lambda: list_acknowledged_ids(server) == expected, "an acknowledgement of every sample")
        last = server.bodies("retrieve_futures")[-1]
    assert len(server.polls("Sample")) == 20
    bodies = server.bodies("retrieve_futures")
    assert bodies[0]["target"] == {
        "type": "sampling_session",
        "sampling_session_id": "sampler1",
        "cloned_sampler_id": 0,
    }
    assert bodies[0]["prev_cursor"] == 0
    assert "timeout" not in bodies[0]
    assert last["timeout"] == 0.0
    assert last["prev_cursor"] >= 10
    cursors = [body["prev_cursor"] for body in bodies]
    assert cursors == sorted(cursors)


@pytest.mark.parametrize(
    "options",
    [{"client_config": {}}, {"wire_version": "0.25.0"}, {"wire_version": "0.16.1"}],
    ids=["flag not set", "endpoint missing", "old wire"],
)
def test_each_sample_is_polled_if_batches_are_not_supported(server: ScriptedServer, options: dict[str, object]) -> None:
    """Without the flag of the server or the endpoint, the client polls for each sample separately."""
    with open_sampling_client(server, **options) as sampling:
        assert len(sample(sampling, 3)) == 3
    assert not server.named("retrieve_futures")


def test_old_wire_acknowledges_by_cursor(server: ScriptedServer) -> None:
    """Before wire 0.36.0 only the cursor acknowledges results."""
    CompletionEndpoint(server)
    with open_sampling_client(server, wire_version="0.26.2") as sampling:
        sample(sampling, 3)
    bodies = server.bodies("retrieve_futures")
    assert (bodies[-1]["timeout"], bodies[-1]["prev_cursor"] >= 10) == (0.0, True)
    assert all("retrieved_request_ids" not in body for body in bodies)


@pytest.mark.parametrize(
    ("response", "count", "ends_batching"),
    [
        (ScriptedResponse(status=500), 2, False),
        (ScriptedResponse(drop=True), 2, False),
        (ScriptedResponse({"detail": "slow"}, status=429), 2, False),
        (ScriptedResponse({"detail": "invalid"}, status=400), 3, False),
        (ScriptedResponse({"detail": "invalid"}, status=400), 4, True),
        (ScriptedResponse(status=500), 6, False),
        (ScriptedResponse(status=404), 1, True),
        (ScriptedResponse(status=422), 1, True),
        (ScriptedResponse(b"<html>"), 1, True),
    ],
    ids=str,
)
def test_errors_of_batched_polls_lose_no_result(
    server: ScriptedServer, response: ScriptedResponse, count: int, ends_batching: bool
) -> None:
    """After an error the client retries the batched poll, or polls for each sample; the results arrive."""
    endpoint = CompletionEndpoint(server)
    server.rules["retrieve_futures"] = in_order(*[response] * count, endpoint.respond)
    with open_sampling_client(server) as sampling:
        assert len(sample(sampling, 1)) == 1
        polls = len(server.named("retrieve_futures"))
        assert polls >= count
        assert len(sample(sampling, 1)) == 1
        assert (len(server.named("retrieve_futures")) == polls) is ends_batching


def test_number_of_batched_polls_that_fail_is_limited(server: ScriptedServer) -> None:
    """After six polls that fail, which no other retry multiplies, the sample is polled separately."""
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse(status=500)
    with open_sampling_client(server) as sampling:
        gate = Gate()
        server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
        future = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for(lambda: len(server.polls("Sample")) == 1, "a separate poll")
        assert len(server.named("retrieve_futures")) == 6
        gate.release()
        future.result(TEST_TIMEOUT_S)


def test_batched_poll_waits_as_long_as_the_server_asks(server: ScriptedServer) -> None:
    """The delay of the policy is far shorter."""
    endpoint = CompletionEndpoint(server)
    busy = ScriptedResponse(status=429, headers={"retry-after": "1"})
    server.rules["retrieve_futures"] = in_order(busy, endpoint.respond)
    with open_sampling_client(server) as sampling:
        sample(sampling, 1)
    first, second = server.named("retrieve_futures")[:2]
    assert second.time - first.time >= 1


def test_error_of_a_failed_sample_is_fetched(server: ScriptedServer) -> None:
    """The batched response only reports the failure; the client fetches its error."""
    server.rules["retrieve_futures"] = in_order(
        ScriptedResponse({"completions": [{"state": "failed", "request_id": "asample/1/0"}], "cursor": 1}),
        ScriptedResponse(gate=Gate()),
    )
    server.on_poll("Sample", lambda _: ScriptedResponse({"error": "rejected", "category": "user"}))
    with open_sampling_client(server) as sampling:
        error = sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S)
    assert isinstance(error, tw.RequestFailedError)


def test_unreported_sample_is_polled_separately(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client polls separately for a sample that the server has not reported for COMPLETION_SILENCE_S."""
    assert batched_poller.COMPLETION_SILENCE_S == 300.0
    monkeypatch.setattr(batched_poller, "COMPLETION_SILENCE_S", 0.05)
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse(gate=Gate())
    with open_sampling_client(server) as sampling:
        assert len(sample(sampling, 1)) == 1
        assert len(server.named("retrieve_futures")) == 1


def test_lost_batched_poll_is_repeated_in_time(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples wait for a batched poll that gets no response no longer than with the official SDK."""
    assert batched_poller.BATCHED_POLL_TIMEOUT_S == 45.0
    monkeypatch.setattr(batched_poller, "BATCHED_POLL_TIMEOUT_S", 0.1)
    endpoint = CompletionEndpoint(server)
    server.rules["retrieve_futures"] = in_order(ScriptedResponse(gate=Gate()), endpoint.respond)
    with open_sampling_client(server) as sampling:
        assert len(sample(sampling, 1)) == 1
        assert len(server.named("retrieve_futures")) >= 2


def test_sample_reported_before_its_submission_response_is_fetched(server: ScriptedServer) -> None:
    """The client remembers a sample that finished before the response to its submission, and fetches the result."""
    submission, report = Gate(), Gate()
    server.rules["asample"] = in_order(
        server.healthy_response,
        lambda request: ScriptedResponse(server.healthy_response(request).body, gate=submission),
    )
    completions = [{"state": "finished", "request_id": f"asample/{i + 1}/{i}"} for i in range(2)]
    server.rules["retrieve_futures"] = in_order(
        ScriptedResponse({"completions": completions, "cursor": 2}, gate=report), ScriptedResponse(gate=Gate())
    )
    with open_sampling_client(server) as sampling:
        first = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("retrieve_futures")
        second = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("asample", 2)
        report.release()
        first.result(TEST_TIMEOUT_S)
        submission.release()
        assert second.result(TEST_TIMEOUT_S).sequences


def test_close_acknowledges_fetched_results(server: ScriptedServer) -> None:
    """close() acknowledges fetched results without delay, also while the server holds a batched poll."""
    endpoint = CompletionEndpoint(server)
    server.rules["retrieve_futures"] = in_order(
        endpoint.respond, lambda request: ScriptedResponse(gate=None if "timeout" in request.body else Gate())
    )
    with open_sampling_client(server) as sampling:
        sample(sampling, 1)
        server.on_poll("Sample", lambda _: ScriptedResponse(gate=Gate()))
        pending = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("retrieve_futures", 2)
    assert isinstance(pending.exception(TEST_TIMEOUT_S), tw.ClientClosedError)
    last = server.bodies("retrieve_futures")[-1]
    assert last["timeout"] == 0.0
    assert "asample/1/0" in list_acknowledged_ids(server)


def test_close_acknowledges_between_retries(server: ScriptedServer) -> None:
    """close() acknowledges fetched results also between a failed batched poll and its retry."""
    endpoint = CompletionEndpoint(server)
    server.rules["retrieve_futures"] = in_order(
        endpoint.respond,
        lambda request: ScriptedResponse({"completions": [], "cursor": 10}, 200 if "timeout" in request.body else 500),
    )
    with open_sampling_client(server, retry=tw.RetryConfig(retry_delay_base=60, retry_delay_max=60)) as sampling:
        sample(sampling, 1)
        sampling.sample(PROMPT, 1, PARAMS).future()
        server.wait_for_requests("retrieve_futures", 2)
    last = server.bodies("retrieve_futures")[-1]
    assert last["timeout"] == 0.0
    assert "asample/1/0" in last["retrieved_request_ids"]


def test_empty_batched_responses_are_polled_with_pauses(server: ScriptedServer) -> None:
    """The client pauses between batched polls if the server returns empty responses at once."""
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse({"completions": [], "cursor": 0})
    with open_sampling_client(server) as sampling:
        sampling.sample(PROMPT, 1, PARAMS)
        times = [request.time for request in server.wait_for_requests("retrieve_futures", 7)]
    # The pauses are 0.02 s, 0.04 s and so on.
    assert times[6] - times[0] > 1.0


@pytest.mark.parametrize("fault_injection", ["", "p_5xx=0.1,p_lost_reply=0.05,only=retrieve_futures+retrieve_future"])
def test_batched_and_separate_polls_give_the_same_samples(fault_injection: str) -> None:
    """With the same seeds, samples of a real server are equal with and without batches, also if requests fail."""
    results = []
    for flag in ("true", "false"):
        options = ["--wire", "0.38.0", "--seed", "1", "--flag", f"sample_use_retrieve_futures={flag}"]
        if fault_injection:
            options += ["--inject-faults", fault_injection]
        with embedded_http_server(*options) as url, tw.ServiceClient(base_url=url, retry=FAST) as client:
            sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
            params = [tw.SamplingParams(max_tokens=8, seed=seed) for seed in range(100)]
            futures = [sampling.sample(PROMPT, 1, seeded) for seeded in params]
            results.append([list(response.sequences[0].tokens) for response in tw.gather(futures).result(100)])
            assert client.dialect.config.sample_use_retrieve_futures is (flag == "true")
    assert results[0] == results[1]
