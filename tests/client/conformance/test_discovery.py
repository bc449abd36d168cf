"""Discovery of the wire version: embedded servers of each version, with and without optional operations, and flags."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.support.embedded import embedded_http_server
from tests.support.raw_server import close_after, raw_server

from tinkerwire._conformance.client.wire_client import WireClient
from tinkerwire._conformance.discovery.clues import Clue, choose_version, explain
from tinkerwire._conformance.discovery.discover import discover, open_server
from tinkerwire._conformance.discovery.probes import Probes
from tinkerwire._conformance.violation import ServerLost
from tinkerwire._wire.dialect import Dialect
from tinkerwire.testing import LocalServer
from tinkerwire_base.conversion.versioning import parse_version

KEY = "tml-test"
FOUND = {
    "0.3.0": "0.3.0",
    "0.4.1": "0.4.1",
    "0.6.0": "0.6.3",
    "0.7.0": "0.8.1",
    "0.9.0": "0.12.0",
    "0.14.0": "0.14.0",
    "0.16.1": "0.16.1",
    "0.18.2": "0.18.2",
    "0.22.7": "0.22.7",
    "0.24.1": "0.24.1",
    "0.25.0": "0.25.0",
    "0.30.4": "0.30.4",
    "0.36.0": "0.36.0",
    "0.38.0": "0.38.0",
}
"""The version that is found for a server; three have a later one that no request distinguishes."""
# Without optional operations, a server of 0.4.1 is one of 0.3.0.
FOUND_WITHOUT_OPTIONAL = {"0.4.1": "0.3.0", **{wire: FOUND[wire] for wire in ("0.9.0", "0.18.2", "0.25.0", "0.38.0")}}


@pytest.mark.parametrize(("wire", "found"), FOUND.items())
def test_version_of_each_server(wire: str, found: str) -> None:
    """The version is that of the server, and there is evidence."""
    with LocalServer(wire=wire) as server:
        discovery = asyncio.run(discover(server.url, KEY))
    assert discovery.wire == found
    assert discovery.evidence
    assert (discovery.config is not None) == (parse_version(wire) >= parse_version("0.18.2"))
    assert not discovery.missing - {"get_audit_log", "search_sessions"}


@pytest.mark.parametrize(("wire", "found"), FOUND_WITHOUT_OPTIONAL.items())
def test_version_without_optional_operations(wire: str, found: str) -> None:
    """The version does not depend on optional operations, which are found to be missing."""
    with LocalServer(wire=wire, quirks="missing=optional") as server:
        discovery = asyncio.run(discover(server.url, KEY))
    assert discovery.wire == found
    assert "telemetry" in discovery.missing
    assert not discovery.missing & {"create_session", "asample", "forward_backward", "optim_step", "save_weights"}
    assert discovery.config is None


@pytest.mark.parametrize(
    ("wire", "quirks"),
    [
        ("0.16.1", "missing=telemetry+get_session,missing_status=405"),
        ("0.25.0", "flags=absent"),
        ("0.38.0", "failure=422"),
    ],
)
def test_version_with_quirks(wire: str, quirks: str) -> None:
    """Quirks do not change the version."""
    with LocalServer(wire=wire, quirks=quirks) as server:
        discovery = asyncio.run(discover(server.url, KEY))
    assert discovery.wire == wire
    assert ("telemetry" in discovery.missing) == ("telemetry" in quirks)


def test_flags_and_tokens() -> None:
    """A server that asks for tokens gets one, and its flags reach the client of the tests."""
    options = ("--flag", "pjwt_auth_enabled=true", "--flag", "proto_compress_fwdbwd=true", "--api-key", KEY)
    with embedded_http_server("--wire", "0.30.4", *options) as url:
        server = asyncio.run(_open(url, KEY))
        assert server.wire == "0.30.4"
        assert server.client.dialect.config.pjwt_auth_enabled
        assert server.client.dialect.config.proto_compress_fwdbwd
        key = server.client.json_request("GET", "healthz").headers["x-api-key"]
        assert key != KEY


def test_version_of_the_user() -> None:
    """A version that the user sets is not questioned; missing operations are found all the same."""
    with LocalServer(wire="0.38.0", quirks="missing=telemetry") as server:
        found = asyncio.run(_open(server.url, KEY, wire="0.30.4", model="some-model"))
    assert found.wire == "0.30.4"
    assert "telemetry" in found.missing
    assert found.client.dialect.config is not None


def test_unreachable_server() -> None:
    """A server that does not accept connections is reported as such."""
    with LocalServer() as server:
        url = server.url
    with pytest.raises(ServerLost):
        asyncio.run(discover(url, KEY))


@pytest.mark.parametrize("status", [200, 307, 401, 404, 500])
def test_other_server(status: int) -> None:
    """A server that responds to every path alike is not one of the Tinker API, or rejects the key."""
    with (
        _scripted_server(lambda method, path, body: (status, {"detail": "a page"})) as url,
        pytest.raises(ServerLost, match="is not a server of the Tinker API, or rejects the key"),
    ):
        asyncio.run(discover(url, KEY))


def test_silent_server() -> None:
    """A server that closes connections without a response is reported as such."""
    with (
        raw_server(close_after()) as server,
        pytest.raises(ServerLost, match="accepts connections, but does not respond"),
    ):
        asyncio.run(discover(server.url, KEY))


def test_missing_path_and_unknown_id() -> None:
    """The answer to an unknown id does not mean that the operation is missing, and the form of FastAPI does."""

    def respond(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.startswith("/api/v1/sessions/"):
            return 404, {"detail": "Session not found"}
        if path == "/api/v1/weights_info":
            return 422, {"detail": [{"loc": ["body", "tinker_path"], "msg": "Field required"}]}
        return 404, {"detail": "Not Found"}

    with _scripted_server(respond) as url:
        discovery = asyncio.run(discover(url, KEY, wire="0.16.1"))
    assert not discovery.missing & {"get_session", "weights_info"}
    assert {"list_sessions", "telemetry", "forward_backward"} <= discovery.missing


def test_checkpoints_under_their_names_alone() -> None:
    """An operation exists if the server takes the id of a checkpoint in either form, and not if it takes none."""
    found = {"/checkpoints/no-such-id/archive", "/checkpoints/weights/no-such-id/publish"}

    def respond(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.removeprefix("/api/v1/training_runs/no-such-id") in found:
            return 404, {"detail": "Checkpoint not found: no-such-id"}
        return 404, {"detail": "Not Found"}

    with _scripted_server(respond) as url:
        discovery = asyncio.run(discover(url, KEY, wire="0.25.0"))
    assert not discovery.missing & {"get_checkpoint_archive_url", "publish_checkpoint", "unpublish_checkpoint"}
    assert {"set_checkpoint_ttl", "delete_checkpoint"} <= discovery.missing


def test_lenient_server() -> None:
    """A server that ignores unknown fields knows those whose type it checks."""
    known = [
        f"/api/v1/{name}" for name in ("optim_step", "save_weights", "load_weights", "forward_backward", "asample")
    ]

    def respond(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path not in known:
            return 404, {"detail": "Not Found"}
        if isinstance(body, dict):
            params = body.get("adam_params", {})
            for name, value in {**body, **(params if isinstance(params, dict) else {})}.items():
                if name in ("weight_decay", "ttl_seconds", "optimizer") and isinstance(value, dict):
                    return 422, {"detail": [{"loc": ["body", name], "msg": "Input should be a number"}]}
        return (404, {"detail": "unknown model"}) if isinstance(body, dict) else (422, {"detail": "not JSON"})

    with _scripted_server(respond) as url:
        discovery = asyncio.run(discover(url, KEY))
    assert discovery.wire == "0.12.0"


def test_server_that_saves_for_unknown_models() -> None:
    """A save that is rejected because of an earlier one shows nothing about the field that it has."""
    saved: set[str] = set()

    def respond(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path not in ("/api/v1/save_weights", "/api/v1/retrieve_future"):
            return 404, {"detail": "Not Found"}
        if path == "/api/v1/save_weights" and isinstance(body, dict) and "path" in body:
            is_new = body["path"] not in saved
            saved.add(body["path"])
            return (200, {"request_id": "1"}) if is_new else (404, {"detail": "unknown model"})
        return 422, {"detail": "a field is missing"}

    async def observe(url: str) -> list[str]:
        client = WireClient(url, KEY, Dialect.for_version("0.38.0"))
        try:
            return [clue.text for clue in await Probes(client).field_clues()]
        finally:
            await client.close()

    with _scripted_server(respond) as url:
        texts = asyncio.run(observe(url))
    assert [text for text in texts if text.startswith("save_weights ")] == [
        f"save_weights ignores {name}" for name in ("ttl_seconds", "overwrite", "user_metadata")
    ]


def test_choice_and_explanation() -> None:
    """The version fits most clues by weight, and a clue against it is named."""
    clues = [
        Clue("b is taken", ("0.9.0", None), 3),
        Clue("c is rejected", (None, "0.14.0"), 3),
        Clue("d exists", ("0.22.7", None), 1),
    ]
    assert choose_version(clues) == "0.13.1"
    assert explain(clues, "0.13.1") == (
        "b is taken: wire 0.9.0 or later",
        "c is rejected: before wire 0.14.0",
        "d exists: wire 0.22.7 or later, which does not fit",
    )


async def _open(url: str, key: str, **options: str) -> Any:
    server = await open_server(url, key, **options)
    await server.close()
    return server


@contextmanager
def _scripted_server(respond: Callable[[str, str, Any], tuple[int, Any]]) -> Iterator[str]:
    """Run a server of fixed answers for the block, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            try:
                body = json.loads(content) if content else None
            except ValueError:
                body = None
            path = self.path.partition("?")[0]
            status, value = respond(self.command, path, body)
            payload = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            """Keep the output of the tests free of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(30)
