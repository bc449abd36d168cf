"""Arguments of clients and policies: a wrong one raises at once, and no error shows a key."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest

import tinkerwire as tw
from support.clients import ADAM, TEST_TIMEOUT_S, datum, wait_until
from tinkerwire._server.ordering import worker


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ({"base_url": 5}, "base_url: expected str, got int"),
        ({"api_key": b"tml-secret"}, "api_key: expected str"),
        ({"retry": {}}, "retry: expected RetryConfig, got dict"),
        ({"chunk_limits": 32}, "chunk_limits: expected ChunkLimits, got int"),
        ({"user_metadata": "x"}, "user_metadata: expected Mapping, got str"),
        ({"http_client": "x"}, "http_client: expected an httpx.AsyncClient, got str"),
        ({"http_client": httpx.Client}, "http_client: expected an httpx.AsyncClient, got type"),
    ],
)
def test_wrong_argument_type_is_named(arguments: dict[str, Any], pattern: str) -> None:
    """The error has the name and the type, not the value, which may be a key."""
    with pytest.raises(TypeError, match=pattern) as caught:
        tw.ServiceClient(**{"base_url": "http://127.0.0.1:1"} | arguments)
    assert "tml-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"progress_timeout": "x"},
        {"progress_timeout": float("nan")},
        {"max_attempts": 1.5},
        {"enable_retry_logic": "no"},
    ],
    ids=str,
)
def test_wrong_retry_setting_type_is_named(settings: dict[str, Any]) -> None:
    """A setting that is not a time, count or switch raises when the policy is created, with its name."""
    with pytest.raises(TypeError, match=next(iter(settings))):
        tw.RetryConfig(**settings)


def test_chunk_limits_must_be_ints() -> None:
    """A limit that is not an int raises TypeError."""
    with pytest.raises(TypeError, match=r"ChunkLimits\.max_datums"):
        tw.ChunkLimits(max_datums=1.5)  # type: ignore[arg-type]


def test_http_client_with_the_embedded_server_raises() -> None:
    """The embedded server would ignore an HTTP client."""
    with pytest.raises(ValueError, match="http_client cannot be combined"):
        tw.ServiceClient(base_url="local", http_client=httpx.AsyncClient())


def test_service_closes_after_an_async_block() -> None:
    """``async with`` closes the client like ``with``."""

    async def use() -> tw.ServiceClient:
        async with tw.ServiceClient(base_url="local") as service:
            await service.get_server_capabilities_async()
        return service

    service = asyncio.run(use())
    with pytest.raises(tw.ClientClosedError):
        service.get_server_capabilities()


def test_operations_after_a_failed_creation_raise_its_error_class() -> None:
    """A NotFoundError of the creation is a NotFoundError of every later operation."""
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("no-such-model")
        with pytest.raises(tw.NotFoundError, match="was not created"):
            training.forward_backward([datum(3)], "cross_entropy").result(TEST_TIMEOUT_S)


def test_idle_models_have_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded server's threads end when idle, and start again with the next job."""
    monkeypatch.setattr(worker, "IDLE_TIMEOUT_S", 0.05)

    def of_models() -> list[str]:
        return [thread.name for thread in threading.enumerate() if ":train:" in thread.name]

    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        for _ in range(2):
            training.forward([datum(3)], "cross_entropy").result(TEST_TIMEOUT_S)
            wait_until(lambda: not of_models(), "the model's thread ends")


@pytest.mark.parametrize(
    ("attempt", "text"),
    [
        (lambda c: tw.ServiceClient(base_url="local", on_wait=5), "on_wait: expected a function"),
        (lambda c: tw.ServiceClient(base_url="local", transport=5), "transport: expected an object with an async send"),
        (lambda c: tw.ServiceClient(base_url="local", project_id=1.5), "project_id: expected a str, got 1.5"),
        (lambda c: tw.ServiceClient(base_url="local", default_headers_overrides={1: "x"}), "expected names of type"),
        (lambda c: tw.RetryConfig(max_attempts=None), "RetryConfig.max_attempts"),
        (lambda c: c.create_sampling_client(base_model="m", retry_config=5), "retry_config: expected RetryConfig"),
        (lambda c: c.create_lora_training_client("m", user_metadata=5), "user_metadata: expected Mapping, got int"),
        (lambda c: c.create_training_client_from_state("tinker://m/weights/a", user_metadata="x"), "user_metadata"),
        (lambda c: c.training.forward(None, "cross_entropy"), "data: expected a list of datums, got NoneType"),
        (lambda c: c.training.forward([datum()], "cross_entropy", 5), "loss_fn_config: expected Mapping, got int"),
        (lambda c: c.training.save_state([]), "name: expected a str"),
        (lambda c: c.training.save_state("a", user_metadata=5), "user_metadata: expected Mapping"),
        (
            lambda c: c.training.load_state("tinker://m/weights/a", b"tml-secret").result(9),
            "weights_access_token: expected str, got bytes",
        ),
        (lambda c: c.training.result("5"), "timeout: expected seconds, got '5'"),
        (lambda c: c.training.optim_step(ADAM).on_done(None), "callback: expected a function"),
        (lambda c: tw.gather(None), "gather: expected a list of futures, got NoneType"),
        (
            lambda c: tw.SamplingClient.from_sampler_handle("x", api_key=b"tml-secret"),
            "api_key: expected str, got bytes",
        ),
    ],
)
def test_wrong_argument_raises_type_error_in_the_call(attempt: Any, text: str) -> None:
    """Each wrong argument is a TypeError with its name, and no error shows a secret."""
    with tw.ServiceClient(base_url="local") as client:
        client.training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match=text) as caught:
            attempt(client)
        assert "tml-secret" not in str(caught.value)
        assert client.training.result(float("inf"))  # type: ignore[attr-defined]
