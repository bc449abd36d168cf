"""RestClient and AdminClient without a ServiceClient: they open and close a separate connection."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import TEST_TIMEOUT_S, ScriptedServer

pytestmark = pytest.mark.timeout(60)


def test_client_opens_and_closes_its_connection(server: ScriptedServer) -> None:
    """The client sends its key and creates no session; after close() its methods raise ClientClosedError."""
    with tw.RestClient(base_url=server.url, api_key=KEY) as rest:
        assert rest.get_server_capabilities().result(TEST_TIMEOUT_S).supported_models[0].model_name == "base"
    assert server.named("get_server_capabilities")[0].headers["x-api-key"] == KEY
    assert not server.named("create_session")
    rest.close()
    with pytest.raises(tw.ClientClosedError):
        rest.get_server_capabilities()


def test_client_is_an_async_context_manager(server: ScriptedServer) -> None:
    """``async with`` opens and closes a client on an event loop."""

    async def count_models() -> int:
        async with tw.AdminClient(base_url=server.url, api_key=KEY) as admin:
            return len((await admin.get_server_capabilities()).supported_models)

    assert asyncio.run(count_models()) == 1


def test_shared_connection_stays_open(client: tw.ServiceClient) -> None:
    """Closing a RestClient does not close the connection of the ServiceClient that created it."""
    with client.create_rest_client() as rest:
        pass
    rest.close()
    rest.get_server_capabilities().result(TEST_TIMEOUT_S)


def test_address_and_key_are_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, client: tw.ServiceClient
) -> None:
    """The environment provides address and key; a key cannot be combined with a connection."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    with tw.RestClient() as rest:
        rest.get_server_capabilities().result(TEST_TIMEOUT_S)
    with pytest.raises(tw.TinkerError, match="no API key"):
        tw.AdminClient(base_url="https://tinker.example")
    with pytest.raises(ValueError, match="cannot be combined with a connection"):
        tw.RestClient(client._connection, api_key=KEY)
    with pytest.raises(TypeError, match="base_url: expected str"):
        tw.RestClient(base_url=5)  # type: ignore[arg-type]
