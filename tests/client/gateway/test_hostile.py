"""Malformed requests and responses, and ids that a client made up."""

from __future__ import annotations

import logging
import socket
from urllib.parse import urlsplit

import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._gateway.loading import PendingLoad
from tinkerwire.gateway import Gateway
from tinkerwire.testing import LocalServer

STEP = {"model_id": "m", "seq_id": 1, "adam_params": {}, "type": "optim_step"}
KEY = "tml-key-of-a-client"


def send_raw(url: str, head: bytes, body: bytes = b"", *, until: bytes | None = None) -> bytes:
    """Send bytes and return the response until the connection ends, or until the response contains some bytes."""
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60) as connection:
        connection.sendall(head.replace(b"\n", b"\r\n") + body)
        response = b""
        while (until is None or until not in response) and (part := connection.recv(65_536)):
            response += part
    return response


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["optim_step", "retrieve_future"])
def test_redirects_do_not_lead_past_the_gateway(upstream: Upstreams, status: int, name: str) -> None:
    upstream.answers[name] = json_response({}, status, location="http://elsewhere.test/")
    body = STEP if name == "optim_step" else {"request_id": "r"}
    response = Client(upstream).post(name, body, "0.16.1")
    assert response.status == 502
    assert "http://elsewhere.test/" in value_of(response)["detail"]
    assert "location" not in response.headers


@pytest.mark.parametrize("run_id", ["..", ".", "%2e%2e", "..%2F..%2Fadmin", "a%2F..", "..%5Cx"])
def test_ids_do_not_lead_to_other_paths(upstream: Upstreams, run_id: str) -> None:
    assert Client(upstream).get(f"training_runs/{run_id}", "0.16.1").status == 404
    assert not upstream.requests


@pytest.mark.parametrize("version", ["", "dev", "unknown", "1" * 5000])
def test_words_are_no_version(upstream: Upstreams, version: str) -> None:
    """A client that names none is recognized by the form of its requests."""
    upstream.answers["create_session"] = json_response({"session_id": "s"})
    session: dict[str, object] = {"tags": [], "user_metadata": None, "sdk_version": version, "type": "create_session"}
    assert Client(upstream).post("create_session", session, version).status == 200


@pytest.mark.parametrize("name", ["optim_step", "forward_backward"])
@pytest.mark.parametrize("levels", [200, 500, 5000])
def test_deep_values_are_the_clients_error(upstream: Upstreams, name: str, levels: int) -> None:
    upstream.answers["client/config"] = json_response({})
    body = b'{"model_id":' + b"[" * levels + b"]" * levels + b"}"
    assert Client(upstream, "0.38.0").post(name, body, "0.16.1").status == 422


def test_key_that_is_not_ascii_is_rejected(upstream: Upstreams) -> None:
    client = Client(upstream, api_key="tml-upstream", client_key=KEY)
    assert client.post("optim_step", STEP, "0.16.1", {"X-API-Key": "\udce9\udcff"}).status == 401


def test_id_that_a_client_made_up_names_no_model_of_others(upstream: Upstreams) -> None:
    upstream.answers["retrieve_future"] = json_response({"model_id": "mine", "path": "p"})
    upstream.answers["load_weights"] = upstream.answers["optim_step"] = json_response({"request_id": "r"})
    client = Client(upstream)
    forged = PendingLoad("c", "tinker://a/weights/b", False, "session-of-other:train:0").to_id()
    assert value_of(client.post("retrieve_future", {"request_id": forged}, "0.38.0"))["model_id"] == "mine"
    client.post("optim_step", {**STEP, "model_id": "session-of-other:train:0"}, "0.16.1")
    assert upstream.body("optim_step")["model_id"] == "session-of-other:train:0"


def test_load_of_a_new_model_has_one_key_in_all_processes(upstream: Upstreams) -> None:
    """Two gateways without a common memory submit a load under one key, so that the upstream runs it once."""
    upstream.answers["retrieve_future"] = json_response({"model_id": "mine"})
    upstream.answers["load_weights"] = json_response({"request_id": "r"})
    request_id = PendingLoad("c", "tinker://a/weights/b", False, "s:train:0").to_id()
    for key in ("first", "second"):
        client = Client(upstream)
        client.post("retrieve_future", {"request_id": request_id}, "0.38.0", {"X-Idempotency-Key": key})
    first, second = upstream.named("load_weights")
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]


@pytest.mark.parametrize("to", ["http://user:{0}@127.0.0.1:1", "ftp://user:{0}@127.0.0.1:1", "http://h/?key={0}"])
def test_addresses_with_secrets_are_refused_without_them(to: str) -> None:
    with pytest.raises(ValueError, match=r"^to: ") as refusal:
        Gateway(to=to.format(KEY))
    assert KEY not in str(refusal.value)


def test_poll_says_the_type_of_an_id_that_was_given_again(upstream: Upstreams) -> None:
    """A server that lost its futures counts from 1 again; another process may have submitted the work."""
    upstream.answers["asample"] = json_response({"request_id": "1"})
    upstream.answers["retrieve_future"] = json_response(
        {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}}
    )
    client = Client(upstream)
    client.post("asample", {"prompt": {"chunks": []}, "sampling_params": {}, "base_model": "b"}, "0.16.1")
    headers = {"X-Tinker-Request-Type": "ForwardBackward", "Accept": "application/x-protobuf"}
    assert client.post("retrieve_future", {"request_id": "1"}, "0.38.0", headers).status == 200


def test_malformed_requests_leave_no_key_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    start = b"POST /api/v1/optim_step HTTP/1.1\nHost: 127.0.0.1\nX-API-Key: " + KEY.encode()
    with LocalServer() as server, Gateway(to=server.url) as gateway:
        for url in (server.url, gateway.url):
            for head in (b"\x01\n\n", b"\nContent-Length: -1\n\n", b"\nTransfer-Encoding: x\n\n"):
                assert send_raw(url, start + head).startswith(b"HTTP/1.0 400 ")
    assert KEY not in caplog.text


def test_length_beyond_the_limit_is_rejected_before_the_body() -> None:
    head = b"POST /api/v1/optim_step HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 1000000000\n\n"
    with LocalServer() as server, Gateway(to=server.url) as gateway:
        # After an early response the server still reads for 10 s what the client is sending.
        assert send_raw(gateway.url, head, until=b"\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_bytes_of_headers_pass() -> None:
    head = b"POST /api/v1/optim_step HTTP/1.1\nHost: 127.0.0.1\nX-Tinker-Note: \xe9\xff\nConnection: close\n"
    body = orjson.dumps(STEP)
    head += b"Content-Type: application/json\nX-Stainless-Package-Version: 0.16.1\n"
    head += f"Content-Length: {len(body)}\n\n".encode()
    with LocalServer() as server, Gateway(to=server.url, to_wire="0.16.1") as gateway:
        assert b"tinkerwire gateway" not in send_raw(gateway.url, head, body)


@pytest.mark.parametrize("name", ["server", "gateway"])
def test_client_that_waits_before_its_body_gets_status_100(name: str) -> None:
    body = orjson.dumps(STEP)
    head = b"POST /api/v1/optim_step HTTP/1.1\nHost: 127.0.0.1\nX-API-Key: tml-k\nContent-Type: application/json\n"
    head += b"expect: 100-Continue\nConnection: close\n"
    length = f"Content-Length: {len(body)}\n\n".encode()
    with LocalServer(wire="0.16.1") as server, Gateway(to=server.url) as gateway:
        url = {"server": server.url, "gateway": gateway.url}[name]
        address = urlsplit(url)
        with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60) as connection:
            connection.sendall((head + length).replace(b"\n", b"\r\n"))
            assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 404 ")
        # Nobody is asked for a body that is too large.
        refused = send_raw(url, head + b"Content-Length: 1000000000\n\n", until=b"\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 413 ")
