"""Valid requests, of which others vary the JSON body."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tinkerwire._conformance.client.wire_client import WireClient
from tinkerwire._conformance.schema_requests.valid_requests import Scene
from tinkerwire._conformance.subject.server import Server
from tinkerwire._testing.local_server import API_KEY, DEFAULT_MODEL
from tinkerwire._wire.dialect import Dialect
from tinkerwire.testing import LocalServer
from tinkerwire_generated import models


@pytest.mark.parametrize("takes_protobuf", [False, True])
def test_batches_are_json_whatever_the_flags_say(takes_protobuf: bool) -> None:
    """A server whose version has both encodings reads JSON, also if client/config asks for protobuf."""
    flags: dict[str, Any] = {"proto_write_fwdbwd": takes_protobuf, "fwd_via_fwdbwd": takes_protobuf}

    async def run(server: LocalServer) -> None:
        dialect = Dialect.for_version("0.24.1", models.ClientConfigResponse(**flags))
        kit = Server(WireClient(server.url, API_KEY, dialect), API_KEY, DEFAULT_MODEL)
        try:
            scene = await Scene.create(kit)
            for operation in scene.operations("training"):
                method, path, body = await scene.body(operation)
                assert (method, path) == ("POST", operation)
                exchange, _ = await scene.send(operation, method, path, body)
                assert exchange.status == 200, (operation, exchange.content)
        finally:
            await kit.close()

    with LocalServer(wire="0.24.1") as server:
        asyncio.run(run(server))
