"""``service.metrics``: counts, distributions, snapshot and reset."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

import tinkerwire as tw
from client.trace.conftest import NANO
from support.clients import PARAMS, PROMPT, datum, open_client
from support.scripted import ScriptedResponse, ScriptedServer, in_order
from tinkerwire._trace.recorder import Recorder


def test_counts_and_bytes_are_those_of_the_server(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Operations, tokens, retries and bytes by kind; the phases add up to the duration."""
    metrics = client.metrics
    fail = ScriptedResponse(status=503, headers={"retry-after": "0"})
    server.rules["asample"] = in_order(fail, server.healthy_response)
    sampling = client.create_sampling_client(base_model="base")
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)]
    responses = [future.result() for future in futures]
    row = metrics.snapshot().operations["Sample"]
    polls = server.polls("Sample")
    assert (row.count, row.failed, row.cancelled, row.requests) == (20, 0, 0, 20)
    assert row.retries == len(server.named("asample")) - 20 == 1
    assert row.polls == len(polls)
    assert row.input_tokens == 20 * PROMPT.length
    assert row.output_tokens == sum(len(response.sequences[0].tokens) for response in responses)
    sent = [request for request in server.requests if request.name == "asample"] + polls
    assert row.bytes_out == sum(int(request.headers["content-length"]) for request in sent)
    assert row.bytes_in > 0
    assert row.duration.count == 20
    assert 0 < row.duration.min <= row.duration.p50 <= row.duration.p95 <= row.duration.p99 <= row.duration.max
    total = sum(phase.mean for phase in row.phases.values())
    assert total == pytest.approx(row.duration.mean)


def test_failed_and_cancelled_operations_count(server: ScriptedServer, client: tw.ServiceClient) -> None:
    metrics = client.metrics
    server.rules["get_server_capabilities"] = in_order(ScriptedResponse(status=400, body={"detail": "no"}))
    with pytest.raises(tw.BadRequestError):
        client.get_server_capabilities()
    row = metrics.snapshot().operations["get_server_capabilities"]
    assert (row.count, row.failed) == (1, 1)


def test_operation_counts_as_soon_as_its_result_is_out(
    client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot waits until the loop has recorded the operation whose result the caller has."""
    metrics = client.metrics
    end = Recorder.end

    def end_late(self: Recorder, *arguments: Any) -> None:
        time.sleep(0.2)
        end(self, *arguments)

    monkeypatch.setattr(Recorder, "end", end_late)
    client.get_server_capabilities()
    assert metrics.snapshot().operations["get_server_capabilities"].count == 1


def test_reset_returns_what_it_removes(client: tw.ServiceClient) -> None:
    """No operation is lost or counted twice when threads reset while others run."""
    metrics = client.metrics
    counted: list[int] = []

    def reset() -> None:
        for _ in range(20):
            row = metrics.reset().operations.get("get_server_capabilities")
            counted.append(0 if row is None else row.count)

    threads = [threading.Thread(target=reset) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        client.get_server_capabilities()
    for thread in threads:
        thread.join()
    row = metrics.reset().operations.get("get_server_capabilities")
    assert sum(counted) + (0 if row is None else row.count) == 50
    assert metrics.snapshot().operations == {}
    assert str(metrics.snapshot()).startswith("no operation has ended")


def test_snapshot_is_json_and_text(client: tw.ServiceClient) -> None:
    metrics = client.metrics
    assert client.metrics is metrics
    client.get_server_capabilities()
    snapshot = metrics.snapshot()
    assert json.loads(json.dumps(snapshot.to_dict()))["operations"]["get_server_capabilities"]["count"] == 1
    assert "get_server_capabilities" in str(snapshot)
    assert snapshot.started_at <= snapshot.taken_at


def test_late_first_read_is_reported(client: tw.ServiceClient, caplog: pytest.LogCaptureFixture) -> None:
    """Operations before the first read are not counted, which is logged."""
    client.get_server_capabilities()
    assert client.metrics.snapshot().operations == {}
    assert "read it right after creating the ServiceClient" in caplog.text


def test_metrics_can_be_read_after_close(server: ScriptedServer) -> None:
    with open_client(server.url) as service:
        metrics = service.metrics
        service.get_server_capabilities()
    assert metrics.snapshot().operations["get_server_capabilities"].count == 1


def test_batches_count_their_chunks() -> None:
    limits = tw.ChunkLimits(max_datums=2)
    with tw.ServiceClient(base_url="local", chunk_limits=limits) as service:
        metrics = service.metrics
        training = service.create_lora_training_client(NANO, rank=4)
        training.forward_backward([datum(1, 2)] * 5, "cross_entropy").result()
    row = metrics.snapshot().operations["ForwardBackward"]
    assert (row.count, row.requests, row.input_tokens) == (1, 3, 10)
