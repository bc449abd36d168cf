"""Tests of retrieve_futures and cancel_future: waiting for several samples, and cancelling them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.server_fixtures import Caller, ServerFactory
from tinkerwire._server.engine.sampler import Sampler

NANO = "tinkerwire/byte-nano"
CLONE = 1_000_000_000


@pytest.fixture
def call(serve: ServerFactory) -> Any:
    return serve(wire_version="0.38.0", long_poll_s=10.0)


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block every sample until the test sets this event."""
    opened = threading.Event()
    original = Sampler.start

    def start(self: Sampler, *arguments: Any, **options: Any) -> Any:
        assert opened.wait(20)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Sampler, "start", start)
    yield opened
    opened.set()


def _submit_sample(call: Caller, sampler_id: str, seq_id: int, tokens: list[int] | None = None) -> str:
    body = {
        "sampling_session_id": sampler_id,
        "seq_id": seq_id,
        "num_samples": 2,
        "prompt": {"chunks": [{"tokens": tokens or [1]}]},
        "sampling_params": {"max_tokens": 1},
    }
    future = call.post("asample", body).body
    assert len(set(future["sample_sequence_ids"])) == 2
    request_id: str = future["request_id"]
    return request_id


def _poll(sampler_id: str, cursor: int = 0, *, clone: int = 0, timeout: float | None = None, **changes: Any) -> Any:
    target = {"type": "sampling_session", "sampling_session_id": sampler_id, "cloned_sampler_id": clone}
    return {"target": target, "prev_cursor": cursor, "timeout": timeout, **changes}


def _wait_for_completions(call: Caller, sampler_id: str, count: int, clone: int = 0) -> tuple[list[Any], int]:
    """Poll until the given number of completions has arrived."""
    completions, cursor = [], 0
    while len(completions) < count:
        body = call.post("retrieve_futures", _poll(sampler_id, cursor, clone=clone)).body
        assert body["completions"], "a poll came back empty"
        completions += body["completions"]
        cursor = body["cursor"]
    return completions, cursor


def test_each_sample_is_listed_once_when_it_ends(call: Caller, sampler_id: str) -> None:
    """A finished sample has the size of its result, a failed one does not."""
    valid_ids = [_submit_sample(call, sampler_id, number) for number in range(3)]
    invalid_id = _submit_sample(call, sampler_id, 3, tokens=[10_000])
    completions, cursor = _wait_for_completions(call, sampler_id, 4)
    states = {completion["request_id"]: completion["state"] for completion in completions}
    assert states == {**dict.fromkeys(valid_ids, "finished"), invalid_id: "failed"}
    for completion in completions:
        if completion["state"] == "finished":
            assert completion["response_payload_uncompressed_size"] == len(call.result(completion["request_id"]))
    assert call.post("retrieve_futures", _poll(sampler_id, cursor, timeout=0)).body == {
        "completions": [],
        "cursor": cursor,
    }


def test_lost_response_is_repeated_until_its_cursor_returns(call: Caller, sampler_id: str) -> None:
    """A fetched result is not listed again."""
    first, second = _submit_sample(call, sampler_id, 0), _submit_sample(call, sampler_id, 1)
    for request_id in (first, second):
        call.result(request_id)
    call.post("retrieve_futures", _poll(sampler_id))
    repeated = call.post("retrieve_futures", _poll(sampler_id)).body["completions"]
    assert {completion["request_id"] for completion in repeated} == {first, second}
    acknowledged = _poll(sampler_id, retrieved_request_ids=[first])
    remaining = call.post("retrieve_futures", acknowledged).body["completions"]
    assert [completion["request_id"] for completion in remaining] == [second]


def test_poll_waits_for_the_first_completion(call: Caller, sampler_id: str, sampling: threading.Event) -> None:
    """The response comes at the first completion, or at the end of the request's own timeout."""
    started = time.monotonic()
    assert call.post("retrieve_futures", _poll(sampler_id, timeout=0.2)).body["completions"] == []
    assert 0.19 < time.monotonic() - started < 9  # the server's own is 10
    request_id = _submit_sample(call, sampler_id, 0)

    async def poll() -> Any:
        waiting = asyncio.create_task(call.send("POST", "retrieve_futures", _poll(sampler_id)))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        sampling.set()
        return await waiting

    assert [completion["request_id"] for completion in asyncio.run(poll()).body["completions"]] == [request_id]


def test_each_client_copy_gets_its_own_completions(call: Caller, sampler_id: str) -> None:
    """Copies join to get a number, and their seq_ids identify them."""
    numbers = [
        call.post("join_sampling_session", {"sampling_session_id": sampler_id}).body["client_counter"] for _ in "ab"
    ]
    assert numbers == [1, 2]
    own_id, copied_id = _submit_sample(call, sampler_id, 0), _submit_sample(call, sampler_id, 2 * CLONE)
    assert [completion["request_id"] for completion in _wait_for_completions(call, sampler_id, 1)[0]] == [own_id]
    assert [completion["request_id"] for completion in _wait_for_completions(call, sampler_id, 1, clone=2)[0]] == [
        copied_id
    ]


def test_cancelled_sample_is_not_drawn(call: Caller, sampler_id: str, sampling: threading.Event) -> None:
    """It fails at once, also for a waiting poll; a sample that has ended keeps its result."""
    request_id = _submit_sample(call, sampler_id, 0)
    assert call.post("cancel_future", {"request_id": request_id}).status == 204
    assert "cancelled" in call.result(request_id)["error"]
    assert _wait_for_completions(call, sampler_id, 1)[0][0]["state"] == "failed"
    sampling.set()
    finished_id = _submit_sample(call, sampler_id, 1)
    content = call.result(finished_id)
    assert call.post("cancel_future", {"request_id": finished_id}).status == 204
    assert call.result(finished_id) == content


def test_only_samples_can_be_cancelled(call: Caller) -> None:
    """Work on a model belongs to a sequence; unknown work is 404."""
    step = call.submit("optim_step", {"model_id": call.create_model(), "adam_params": {}})
    assert call.post("cancel_future", {"request_id": step}).status == 422
    assert call.post("cancel_future", {"request_id": "f-0"}).status == 404
