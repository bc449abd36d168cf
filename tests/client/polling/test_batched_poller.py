"""One question for all samples of a client: fewer requests, the same results, whatever becomes of the question."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, PROMPT, open_client
from support.embedded import embedded_http_server
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._polling import batched_poller

pytestmark = pytest.mark.timeout(120)
WANTED = {"wire_version": "0.38.0", "client_config": {"sample_use_retrieve_futures": True}}


class Ends:
    """The server's side: every sample that it took has ended, and is told of once."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._cursor = itertools.count(10, 10)
        self._told: set[str] = set()
        self._lock = threading.Lock()
        server.rules["retrieve_futures"] = self.tell

    def tell(self, asked: RecordedRequest) -> ScriptedResponse:
        """What has ended since."""
        with self._lock:
            taken = [f"asample/{i + 1}/{body['seq_id']}" for i, body in enumerate(self._server.bodies("asample"))]
            new = [name for name in taken if name not in self._told]
            self._told.update(new)
            if not new:
                return ScriptedResponse({"completions": [], "cursor": asked.body["prev_cursor"]})
            found = [{"state": "finished", "request_id": name} for name in new]
            return ScriptedResponse({"completions": found, "cursor": next(self._cursor)})


@contextmanager
def sampler(server: ScriptedServer, **options: Any) -> Iterator[tw.SamplingClient]:
    """A client that asks for all its samples at once."""
    with open_client(server.url, **{**WANTED, **options}) as client:
        yield client.create_sampling_client(base_model="base").result(PATIENCE_S)


def draw(sampling: tw.SamplingClient, number: int) -> list[tw.SampleResponse]:
    """The results of many samples."""
    return tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(number)]).result(PATIENCE_S)


def test_one_question_for_many(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result is fetched once; the questions name the client, give the cursor back, and the ids that arrived."""
    monkeypatch.setattr(batched_poller, "ACK_AFTER_S", 0.01)
    Ends(server)
    with sampler(server) as sampling:
        assert len(draw(sampling, 20)) == 20
        wanted = {f"asample/{i + 1}/{body['seq_id']}" for i, body in enumerate(server.bodies("asample"))}

        def acknowledged() -> set[str]:
            return {name for body in server.bodies("retrieve_futures") for name in body["retrieved_request_ids"]}

        server.wait_for(lambda: acknowledged() == wanted, "all are acknowledged")
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
    ids=["no flag", "no such call", "older"],
)
def test_one_poll_per_sample_elsewhere(server: ScriptedServer, options: dict[str, Any]) -> None:
    """Where the server does not ask for it, or its wire has no such call, every sample asks for itself."""
    with sampler(server, **options) as sampling:
        assert len(draw(sampling, 3)) == 3
    assert not server.named("retrieve_futures")


def test_a_wire_without_ids(server: ScriptedServer) -> None:
    """Before 0.36.0 the cursor alone acknowledges."""
    Ends(server)
    with sampler(server, wire_version="0.26.2") as sampling:
        draw(sampling, 3)
    bodies = server.bodies("retrieve_futures")
    assert (bodies[-1]["timeout"], bodies[-1]["prev_cursor"] >= 10) == (0.0, True)
    assert all("retrieved_request_ids" not in body for body in bodies)


@pytest.mark.parametrize(
    ("trouble", "times", "is_over"),
    [
        (ScriptedResponse(status=500), 2, False),
        (ScriptedResponse(drop=True), 2, False),
        (ScriptedResponse({"detail": "slow"}, status=429), 2, False),
        (ScriptedResponse({"detail": "odd"}, status=400), 3, False),
        (ScriptedResponse({"detail": "odd"}, status=400), 4, True),
        (ScriptedResponse(status=500), 6, False),
        (ScriptedResponse(status=404), 1, True),
        (ScriptedResponse(status=422), 1, True),
        (ScriptedResponse(b"<html>"), 1, True),
    ],
    ids=str,
)
def test_trouble_changes_no_result(
    server: ScriptedServer, trouble: ScriptedResponse, times: int, is_over: bool
) -> None:
    """Faults are met again, or every sample asks for itself; results come in any case."""
    ends = Ends(server)
    server.rules["retrieve_futures"] = in_order(*[trouble] * times, ends.tell)
    with sampler(server) as sampling:
        assert len(draw(sampling, 1)) == 1
        asked = len(server.named("retrieve_futures"))
        assert asked >= times
        assert len(draw(sampling, 1)) == 1
        assert (len(server.named("retrieve_futures")) == asked) is is_over


def test_a_failed_sample_fails_as_ever(server: ScriptedServer) -> None:
    """The answer says only that it failed; why is fetched."""
    server.rules["retrieve_futures"] = in_order(
        ScriptedResponse({"completions": [{"state": "failed", "request_id": "asample/1/0"}], "cursor": 1}),
        ScriptedResponse(hold=Gate()),
    )
    server.on_poll("Sample", lambda _: ScriptedResponse({"error": "no", "category": "user"}))
    with sampler(server) as sampling:
        error = sampling.sample(PROMPT, 1, PARAMS).exception(PATIENCE_S)
    assert isinstance(error, tw.RequestFailedError)


def test_a_lost_word_costs_time_alone(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that is never told of asks for itself in the end."""
    assert batched_poller.COMPLETION_SILENCE_S == 300.0
    monkeypatch.setattr(batched_poller, "COMPLETION_SILENCE_S", 0.05)
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse(hold=Gate())
    with sampler(server) as sampling:
        assert len(draw(sampling, 1)) == 1
        assert len(server.named("retrieve_futures")) == 1


def test_an_end_that_is_told_before_anybody_asks(server: ScriptedServer) -> None:
    """A sample that has ended before the answer to its submission is here is not waited for."""
    hold = Gate()
    server.rules["asample"] = in_order(
        server.healthy_response, lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    )
    both = [{"state": "finished", "request_id": f"asample/{i + 1}/{i}"} for i in range(2)]
    server.rules["retrieve_futures"] = in_order(
        ScriptedResponse({"completions": both, "cursor": 2}, hold=(told := Gate())), ScriptedResponse(hold=Gate())
    )
    with sampler(server) as sampling:
        first = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("retrieve_futures")
        second = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("asample", 2)
        told.release()
        first.result(PATIENCE_S)
        hold.release()
        assert second.result(PATIENCE_S).sequences


def test_close_acknowledges(server: ScriptedServer) -> None:
    """What has arrived is told at close, also while a question is held; and nothing holds close up."""
    ends = Ends(server)
    server.rules["retrieve_futures"] = in_order(
        ends.tell, lambda asked: ScriptedResponse(hold=None if "timeout" in asked.body else Gate())
    )
    with sampler(server) as sampling:
        draw(sampling, 1)
        server.on_poll("Sample", lambda _: ScriptedResponse(hold=Gate()))
        pending = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("retrieve_futures", 2)
    assert isinstance(pending.exception(PATIENCE_S), tw.ClientClosedError)
    last = server.bodies("retrieve_futures")[-1]
    assert last["timeout"] == 0.0
    told = {name for body in server.bodies("retrieve_futures") for name in body["retrieved_request_ids"]}
    assert "asample/1/0" in told


def test_close_acknowledges_between_two_tries(server: ScriptedServer) -> None:
    """Also while a question has failed and the next is not due."""
    ends = Ends(server)
    server.rules["retrieve_futures"] = in_order(
        ends.tell,
        lambda asked: ScriptedResponse({"completions": [], "cursor": 10}, 200 if "timeout" in asked.body else 500),
    )
    with sampler(server, retry=tw.RetryConfig(retry_delay_base=60, retry_delay_max=60)) as sampling:
        draw(sampling, 1)
        sampling.sample(PROMPT, 1, PARAMS).future()
        server.wait_for_requests("retrieve_futures", 2)
    last = server.bodies("retrieve_futures")[-1]
    assert last["timeout"] == 0.0
    assert "asample/1/0" in last["retrieved_request_ids"]


def test_empty_answers_are_spaced_out(server: ScriptedServer) -> None:
    """A server that answers at once that nothing has ended is not asked in a hot loop."""
    server.rules["retrieve_futures"] = lambda _: ScriptedResponse({"completions": [], "cursor": 0})
    with sampler(server) as sampling:
        sampling.sample(PROMPT, 1, PARAMS)
        times = [asked.time for asked in server.wait_for_requests("retrieve_futures", 7)]
    # 0.02, 0.04 ... s between them.
    assert times[6] - times[0] > 1.0


@pytest.mark.parametrize("misbehave", ["", "p_5xx=0.1,p_lost_reply=0.05,only=retrieve_futures+retrieve_future"])
def test_both_ways_give_the_same(misbehave: str) -> None:
    """A real server: samples of given seeds are the same with and without, on good days and on bad ones."""
    found = []
    for wanted in ("true", "false"):
        options = ["--wire", "0.38.0", "--seed", "1", "--flag", f"sample_use_retrieve_futures={wanted}"]
        if misbehave:
            options += ["--inject-faults", misbehave]
        with embedded_http_server(*options) as url, tw.ServiceClient(base_url=url, retry=FAST) as client:
            sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
            params = [tw.SamplingParams(max_tokens=8, seed=seed) for seed in range(100)]
            futures = [sampling.sample(PROMPT, 1, each) for each in params]
            found.append([list(each.sequences[0].tokens) for each in tw.gather(futures).result(100)])
            assert client.dialect.config.sample_use_retrieve_futures is (wanted == "true")
    assert found[0] == found[1]
