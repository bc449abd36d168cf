"""RestClient and AdminClient by themselves: a connection of their own, closed by them and by nobody else."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import PATIENCE_S, ScriptedServer

pytestmark = pytest.mark.timeout(60)


def test_by_itself(server: ScriptedServer) -> None:
    """It asks with its key, and without a session; after its end it refuses to."""
    with tw.RestClient(base_url=server.url, api_key=KEY) as rest:
        assert rest.get_server_capabilities().result(PATIENCE_S).supported_models[0].model_name == "base"
    assert server.named("get_server_capabilities")[0].headers["x-api-key"] == KEY
    assert not server.named("create_session")
    rest.close()
    with pytest.raises(tw.ClientClosedError):
        rest.get_server_capabilities()


def test_async(server: ScriptedServer) -> None:
    """The same on an event loop."""

    async def ask() -> int:
        async with tw.AdminClient(base_url=server.url, api_key=KEY) as admin:
            return len((await admin.get_server_capabilities()).supported_models)

    assert asyncio.run(ask()) == 1


def test_a_shared_connection_stays_open(client: tw.ServiceClient) -> None:
    """Closing a client that a ServiceClient made leaves that one's connection alone."""
    with client.create_rest_client() as rest:
        pass
    rest.close()
    rest.get_server_capabilities().result(PATIENCE_S)


def test_address_and_key(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, client: tw.ServiceClient) -> None:
    """They come from the environment, too; a connection that is given has its own."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    with tw.RestClient() as rest:
        rest.get_server_capabilities().result(PATIENCE_S)
    with pytest.raises(tw.TinkerError, match="no API key"):
        tw.AdminClient(base_url="https://tinker.example")
    with pytest.raises(ValueError, match="has its own"):
        tw.RestClient(client._connection, api_key=KEY)
    with pytest.raises(TypeError, match="base_url: expected str"):
        tw.RestClient(base_url=5)  # type: ignore[arg-type]
