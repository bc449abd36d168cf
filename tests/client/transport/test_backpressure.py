"""The number of samples in flight, its response to a busy server, and independence of other traffic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._session import heartbeat
from tinkerwire._transport.backpressure import CONNECTIONS, Traffic

pytestmark = pytest.mark.timeout(100)


class Factory:
    """A server that counts samples from submission to result.

    It refuses those beyond its ``places``, and finishes none before it has refused one. Without ``places`` it finishes
    none before it has had a ``crowd`` of them at once.
    """

    def __init__(self, server: ScriptedServer, places: int | None = None, crowd: int = 0) -> None:
        self.in_flight = 0
        self.peak = 0
        self.refused = 0
        self._server = server
        self._places = places
        self._crowd = crowd
        server.rules["asample"] = self.take
        server.on_poll("Sample", self.poll)

    def take(self, request: RecordedRequest) -> ScriptedResponse:
        if self._places is not None and self.in_flight >= self._places:
            self.refused += 1
            return ScriptedResponse({"detail": "busy"}, status=429)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        return self._server.healthy_response(request)

    def poll(self, request: RecordedRequest) -> ScriptedResponse:
        is_early = self.peak < self._crowd if self._places is None else not self.refused
        if is_early or request.headers["x-tinker-request-iteration"] == "0":
            return ScriptedResponse(status=408)
        self.in_flight -= 1
        return self._server.healthy_response(request)


def draw(client: tw.ServiceClient, number: int, **options: Any) -> list[tw.APIFuture[tw.SampleResponse]]:
    sampling = client.create_sampling_client(base_model="base", **options)
    return [sampling.sample(PROMPT, 1, PARAMS) for _ in range(number)]


def test_samples_in_flight_reach_but_never_exceed_limit(server: ScriptedServer) -> None:
    """The server has max_connections samples at once when there are enough."""
    factory = Factory(server, crowd=5)
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=5)) as client:
        for future in draw(client, 60):
            future.result(TEST_TIMEOUT_S)
    assert factory.peak == 5


def test_sampling_clients_share_limit_of_service(server: ScriptedServer) -> None:
    """A sampling client with a retry_config has a separate limit."""
    shared = Factory(server, crowd=3)
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=3)) as client:
        for future in [*draw(client, 20), *draw(client, 20)]:
            future.result(TEST_TIMEOUT_S)
        assert shared.peak == 3
        own = Factory(server, crowd=8)
        for future in draw(client, 30, retry_config=attrs.evolve(FAST, max_connections=8)):
            future.result(TEST_TIMEOUT_S)
    assert own.peak == 8


def test_submissions_are_limited_by_connections(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Of a thousand samples, 64 are being submitted; a busy server finds no queue behind them."""
    gate = Gate()
    server.rules["asample"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    futures = draw(client, 300)
    server.wait_for(lambda: server.active["asample"] == CONNECTIONS[Traffic.SAMPLING])
    gate.release()
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    assert server.peak["asample"] == CONNECTIONS[Traffic.SAMPLING]


def test_busy_server_loses_no_sample(server: ScriptedServer) -> None:
    """A server with 3 slots that returns 429 beyond them completes 60 samples, though each has only 2 attempts."""
    factory = Factory(server, places=3)
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=2)) as client:
        for future in draw(client, 60):
            future.result(TEST_TIMEOUT_S)
    assert factory.refused > 0
    request = server.named("asample")
    assert len({one.body["seq_id"] for one in request}) == 60
    assert len({one.headers["x-idempotency-key"] for one in request}) == 60


def test_retry_after_pauses_new_samples(server: ScriptedServer) -> None:
    """After a 429 with Retry-After 0.5 no sample is sent for that time."""
    refused: list[float] = []

    def rule(request: RecordedRequest) -> ScriptedResponse:
        if len(server.named("asample")) != 10:
            return server.healthy_response(request)
        refused.append(request.time)
        return ScriptedResponse({}, status=429, headers={"retry-after": "0.5"})

    server.rules["asample"] = rule
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=4)) as client:
        for future in draw(client, 40):
            future.result(TEST_TIMEOUT_S)
    after = [request.time - refused[0] for request in server.named("asample") if request.time > refused[0]]
    # The three others that may be in flight were sent before the answer was read.
    assert sum(seconds < 0.5 for seconds in after) <= 3
    assert len(after) == 31


def test_window_shrinks_and_recovers(server: ScriptedServer) -> None:
    """A push-back reduces the samples in flight; later their number recovers."""
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=16)) as client:
        busy, windows = Factory(server, places=4), list[float]()

        def poll(request: RecordedRequest) -> ScriptedResponse:
            windows.append(client._connection.sampling_limit.window)
            return busy.poll(request)

        server.on_poll("Sample", poll)
        for future in draw(client, 100):
            future.result(TEST_TIMEOUT_S)
        assert busy.refused > 0
        assert min(windows) < 16
        Factory(server)
        for future in draw(client, 400):
            future.result(TEST_TIMEOUT_S)
        roomy = Factory(server, crowd=16)
        for future in draw(client, 40):
            future.result(TEST_TIMEOUT_S)
        assert roomy.peak == 16


def test_endless_429_raises_error_at_deadline(server: ScriptedServer) -> None:
    """The error has the server's text; without retries it comes at once."""
    full = ScriptedResponse({"detail": "full house"}, status=429)
    late = ScriptedResponse(full.body, status=429, headers={"retry-after": "60"})
    server.rules["asample"] = in_order(*[full] * 20, late)
    for policy in (attrs.evolve(FAST, progress_timeout=50), attrs.evolve(FAST, enable_retry_logic=False)):
        with open_client(server.url, retry=policy) as client:
            for future in draw(client, 5):
                with pytest.raises(tw.RateLimitError, match="full house"):
                    future.result(TEST_TIMEOUT_S)
            assert len(server.named("asample")) == (25 if policy.enable_retry_logic else 30)


def test_push_back_is_logged_once(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the busy server once for all samples."""
    Factory(server, places=2)
    for future in draw(client, 50):
        future.result(TEST_TIMEOUT_S)
    assert sum("too busy" in message for message in caplog.messages) == 1


def test_503_pushes_back(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A 503 reduces the samples in flight as 429 does, but counts as an attempt."""
    server.rules["asample"] = lambda _: ScriptedResponse({}, status=503)
    with pytest.raises(tw.InternalServerError):
        draw(client, 1)[0].result(TEST_TIMEOUT_S)
    assert client._connection.sampling_limit.window == 1.0
    assert len(server.named("asample")) == FAST.max_attempts


def test_cancelled_samples_release_slots(server: ScriptedServer) -> None:
    """Waiting or in flight, cancelled samples free their slots for the next ones."""
    server.on_poll("Sample", lambda _: ScriptedResponse(gate=Gate()))
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=2)) as client:
        futures = draw(client, 6)
        server.wait_for(lambda: len(server.polls("Sample")) == 2)
        for future in futures:
            future.cancel()
        server.rules["retrieve_future"] = server.healthy_response
        for future in draw(client, 4):
            future.result(TEST_TIMEOUT_S)


MANY = 2_000
SLACK_S = 10.0
"""Under load everything may take so much longer than without, on a machine that is busy with other things."""


def promptness(server: ScriptedServer, load: int) -> dict[str, float]:
    """Return the seconds until a heartbeat, a training step, a list of runs, a new sampler and close succeed."""
    gate = Gate()
    server.on_poll("Sample", lambda _: ScriptedResponse(gate=gate))
    server.rules["training_runs"] = lambda _: ScriptedResponse(
        {"training_runs": [], "cursor": {"offset": 0, "limit": 1, "total_count": 0}}
    )
    took = {}

    def until(name: str, start: float) -> None:
        took[name] = time.monotonic() - start

    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=MANY)) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        futures = draw(client, load)
        server.wait_for(lambda: len(server.named("asample")) >= load)
        server.wait_for(lambda: server.active["retrieve_future"] >= load)
        start, beats = time.monotonic(), len(server.named("session_heartbeat"))
        server.wait_for_requests("session_heartbeat", beats + 1)
        until("heartbeat", start)
        start = time.monotonic()
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        until("training", start)
        start = time.monotonic()
        client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
        until("rest", start)
        start = time.monotonic()
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        until("sampler", start)
        start = time.monotonic()
        client.close().result(TEST_TIMEOUT_S)
        until("close", start)
        for future in futures:
            with pytest.raises(tw.ClientClosedError):
                future.result(TEST_TIMEOUT_S)
    gate.release()
    return took


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """Let this process open as many files as the system allows it; the test has both ends of each connection."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * MANY:
        pytest.skip(f"needs {4 * MANY} open files, the hard limit of this process is {hard}")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_open_files")
def test_thousands_of_samples_delay_no_other_traffic(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2,000 hanging samples in flight, heartbeat, training, REST, a new sampler and close succeed."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.2)
    idle = promptness(server, 0)
    server.requests.clear()
    loaded = promptness(server, MANY)
    print(f"seconds without load: {idle}; with {MANY} samples in flight: {loaded}")  # noqa: T201
    assert all(loaded[name] < idle[name] + SLACK_S for name in idle)


def test_slow_samplers_delay_no_heartbeat(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty samplers whose creation hangs, on a server that loads weights, do not delay the heartbeat."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.05)
    gate = Gate()
    server.rules["create_sampling_session"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    with tw.ServiceClient(base_url=server.url, api_key=KEY) as client:
        samplers = [client.create_sampling_client(base_model="base") for _ in range(50)]
        server.wait_for_requests("create_sampling_session", 50)
        beats = len(server.named("session_heartbeat"))
        server.wait_for_requests("session_heartbeat", beats + 2)
        gate.release()
        for sampler in samplers:
            sampler.result(TEST_TIMEOUT_S)
