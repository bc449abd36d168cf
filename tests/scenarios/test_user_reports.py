"""Tests of users' reports about the official client that no other module covers."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, KEY, PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._server import aiohttp_app
from tinkerwire._transport.backpressure import Traffic
from tinkerwire.local import EmbeddedServer, EmbeddedTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
MODEL = "tinkerwire/byte-nano"


class BrokenTransport:
    """Transport that raises an exception unknown to the client."""

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        if request.path.endswith(("create_model", "create_sampling_session")):
            raise ZeroDivisionError("an error of the transport")
        body = {"session_id": "s1"}
        return WireResponse(status=200, headers={"content-type": "application/json"}, content=json.dumps(body).encode())

    async def close(self) -> None:
        """Do nothing."""


def test_any_exception_reaches_the_caller() -> None:
    """Any exception on the client's thread ends the future and its dependents, with the cause."""
    with tw.ServiceClient(base_url="http://127.0.0.1:1", transport=BrokenTransport(), wire_version="0.16.1") as client:
        training = client.create_lora_training_client("base")
        with pytest.raises(ZeroDivisionError):
            training.result(TEST_TIMEOUT_S)
        with pytest.raises(tw.TinkerError, match="an error of the transport") as caught:
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)


class Outage:
    """Embedded server at an address that can go down and come back, and that stays reserved meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self._server = EmbeddedServer(folder=folder, seed=1, long_poll_s=0.2)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._runner: Any = None
        self.listen()

    def listen(self) -> None:
        """Listen at the same port as before."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(TEST_TIMEOUT_S)

    def disconnect(self) -> None:
        """Break all connections and refuse new ones."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(TEST_TIMEOUT_S)

    def close(self) -> None:
        self._server.close()
        self.disconnect()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TEST_TIMEOUT_S)
        self._loop.close()
        self._reserved.close()

    async def _listen(self) -> None:
        server = aiohttp_app.create_server(self._server)
        self._runner = aiohttp_app.web.ServerRunner(server, shutdown_timeout=0.05)
        await self._runner.setup()
        await aiohttp_app.web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_port=True).start()


@contextmanager
def open_outage(folder: Path) -> Iterator[Outage]:
    outage = Outage(folder)
    try:
        yield outage
    finally:
        outage.close()


def test_training_survives_outage(tmp_path: Path) -> None:
    """Pending results arrive after the outage, and every step is applied once."""
    losses = []
    for number, has_outage in enumerate((False, True)):
        with open_outage(tmp_path / str(number)) as server:
            retry = tw.RetryConfig(retry_delay_base=0.05, retry_delay_max=0.1, max_attempts=1000)
            with tw.ServiceClient(base_url=f"http://127.0.0.1:{server.port}", retry=retry) as client:
                training = client.create_lora_training_client(MODEL, rank=4, seed=1).result(TEST_TIMEOUT_S)
                futures: list[Any] = []
                for step in range(6):
                    futures.append(training.forward_backward([datum(1, 2, 3)], "cross_entropy"))
                    futures.append(training.optim_step(tw.AdamParams(learning_rate=1e-2)))
                    if has_outage and step == 2:
                        server.disconnect()
                        restart = threading.Timer(0.6, server.listen)
                        restart.start()
                for future in futures:
                    future.result(TEST_TIMEOUT_S)
                if has_outage:
                    restart.join()
                losses.append(training.forward([datum(1, 2, 3)], "cross_entropy").result(TEST_TIMEOUT_S).metrics)
    assert losses[0] == losses[1]


def test_optimizer_is_loaded_on_request() -> None:
    """With the optimizer the next step equals the one of the original run; without it, it differs."""

    def compute_logprobs(load: str) -> Any:
        with (
            EmbeddedServer(seed=1) as server,
            tw.ServiceClient(base_url="local", transport=EmbeddedTransport(server)) as client,
        ):
            training = client.create_lora_training_client(MODEL, rank=4, seed=1)

            def step() -> None:
                training.forward_backward([datum(1, 2, 3)], "cross_entropy")
                training.optim_step(tw.AdamParams(learning_rate=0.05)).result(TEST_TIMEOUT_S)

            for _ in range(3):
                step()
            path = training.save_state("a").result(TEST_TIMEOUT_S).path
            if load:
                step()
                getattr(training, load)(path).result(TEST_TIMEOUT_S)
            step()
            output = training.forward([datum(1, 2, 3)], "cross_entropy").result(TEST_TIMEOUT_S)
            return output.loss_fn_outputs[0]["logprobs"].to_numpy()

    expected = compute_logprobs("")
    np.testing.assert_array_equal(compute_logprobs("load_state_with_optimizer"), expected)
    assert not np.array_equal(compute_logprobs("load_state"), expected)


def test_awaiting_once_or_twice_gives_the_same_result(server: ScriptedServer) -> None:
    """The request leaves at the call, so that code that awaits a future of a future also overlaps its requests."""

    async def run(client: tw.ServiceClient) -> None:
        training = await client.create_lora_training_client_async("base")
        submitted = training.forward_backward([datum()], "cross_entropy")
        await asyncio.to_thread(server.wait_for_requests, "forward_backward")
        stepped = await training.optim_step_async(ADAM)
        assert (await submitted).loss_fn_outputs == []
        assert (await stepped).metrics == {}
        assert (await (await training.forward_async([datum()], "cross_entropy"))).loss_fn_outputs == []

    with open_client(server.url) as client:
        asyncio.run(run(client))


def test_archive_in_preparation_is_polled_until_ready(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The client waits while the server responds 409."""
    busy = ScriptedResponse({"detail": "Archive creation already in progress"}, status=409)
    ready = ScriptedResponse(b"", status=302, headers={"location": "https://store.example/a.tar"})
    server.rules["training_runs/m1/checkpoints/weights/a/archive"] = in_order(busy, busy, ready)
    request = client.create_rest_client().get_checkpoint_archive_url_from_tinker_path("tinker://m1/weights/a")
    assert request.result(TEST_TIMEOUT_S).url == "https://store.example/a.tar"


BODIES: dict[str, tuple[bytes, str]] = {
    "list": (json.dumps([{"loc": ["body", "rank"], "msg": "too large"}, KEY]).encode(), "too large"),
    "text": (json.dumps(f"the disk is full {KEY}").encode(), "the disk is full"),
    "plain": (f"the disk\n is full {KEY}".encode(), "the disk is full"),
    "html": (f"<html><title>502 Bad Gateway</title>{KEY}</html>".encode(), "502 Bad Gateway"),
    "nested": (json.dumps({"error": {"errors": [{"why": {"text": "no GPUs", "key": KEY}}]}}).encode(), "no GPUs"),
    "detail": (json.dumps({"detail": [{"type": "missing", "input": KEY}]}).encode(), "missing"),
    "empty": (b"", "no body"),
    "null": (b"null", "null"),
    "binary": (b"\x00\xff\xfe\x80" + KEY.encode() + b"\x9f", "\ufffd"),
    "huge": (b"the beginning " + b"x" * 3_000_000 + KEY.encode(), "the beginning"),
    "key across the cut": (b"y" * 990 + KEY.encode(), "yyy"),
}


@pytest.mark.parametrize(("content", "excerpt"), BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("stage", ["submission", "poll"])
def test_error_shows_body_of_any_shape_without_the_key(
    server: ScriptedServer, client: tw.ServiceClient, stage: str, content: bytes, excerpt: str
) -> None:
    """The error shows the response's text, shortened, and never the key that the server repeats."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    response = ScriptedResponse(content, status=422, headers={"x-request-id": "r-7"})
    if stage == "poll":
        server.on_poll("OptimStep", lambda _: response)
    else:
        server.rules["optim_step"] = lambda _: response
    with pytest.raises(tw.UnprocessableEntityError) as caught:
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    error = caught.value
    assert excerpt in str(error)
    assert len(str(error)) < 1500
    assert error.response.headers["x-request-id"] == "r-7"
    for text in (str(error), repr(error), error.response.text, str(error.body)):
        assert KEY not in text
    assert KEY.encode() not in pickle.dumps(error)
    assert KEY[:12] not in str(error)


def test_failure_without_a_reason_names_its_operation(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The error has the operation, the request id and the category; other items are not lost."""
    sampling = client.create_sampling_client(base_model="base")
    opaque = ScriptedResponse({"error": "Unknown error", "category": "server"})
    server.on_poll("Sample", in_order(server.healthy_response, opaque, server.healthy_response))
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(3)]
    results = tw.gather(futures, return_exceptions=True).result(TEST_TIMEOUT_S)
    (error,) = [result for result in results if isinstance(result, Exception)]
    assert isinstance(error, tw.RequestFailedError)
    assert error.category is tw.RequestErrorCategory.Server
    assert str(error) == f"Sample {error.request_id} failed: Unknown error"
    assert sum(isinstance(result, tw.SampleResponse) for result in results) == 2
