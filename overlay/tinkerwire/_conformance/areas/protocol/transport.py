"""Requirements on HTTP: connections, methods, paths, headers, idempotency keys."""

from __future__ import annotations

import attrs

from tinkerwire_generated.api.service import get_server_capabilities, healthz

from ...checks.session_requests import expect_session, plain_session_request, session_body, session_request
from ...discovery.probes import UNKNOWN_ID
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...violation import NotApplicable, Violation, expect
from .area import AREA

OFFICIAL_HEADERS = {
    "user-agent": "AsyncTinker/Python 0.38.0",
    "x-stainless-package-version": "0.38.0",
    "x-stainless-os": "Linux",
    "x-stainless-arch": "x64",
    "x-stainless-runtime": "CPython",
    "x-stainless-runtime-version": "3.11.7",
    "x-stainless-async": "async:asyncio",
    "x-stainless-retry-count": "0",
    "x-stainless-read-timeout": "60",
    "x-sdk-version": "0.38.0",
    "x-sdk-method": "ServiceClient.create_lora_training_client",
}


@AREA.must(
    1,
    contract="create_session",
    remedy="Ignore headers that you do not use, and do not reject requests because of them.",
    needs=("SES-001",),
    breaks=[Breakage("0.3.0", None, Feature.CONNECT, "raises an error when a client is created")],
)
async def official_headers_are_accepted(server: Server) -> None:
    """A request with all headers of the official SDK is accepted."""
    request = session_request(server)
    await expect_session(server, attrs.evolve(request, headers={**request.headers, **OFFICIAL_HEADERS}))


@AREA.should(
    2,
    contract="create_session",
    remedy="Answer requests for paths that do not exist with 404, at once.",
)
async def unknown_path_is_not_found(server: Server) -> None:
    """A request for an unknown path is answered with 404."""
    for method, body in (("GET", None), ("POST", {})):
        exchange = await server.client.send(server.client.json_request(method, UNKNOWN_ID, body))
        expect(exchange.status in (404, 405), "404", exchange.describe(), exchange)


@AREA.should(
    3,
    contract="create_session",
    remedy="Answer a known path with another method with 405.",
    needs=("SES-001",),
)
async def wrong_method_is_rejected(server: Server) -> None:
    """A request for a known path with another method is answered with 405 or 404."""
    exchange = await server.client.send(server.client.json_request("GET", "create_session"))
    expect(exchange.status in (404, 405), "405", exchange.describe(), exchange)


@AREA.may(
    4,
    contract="healthz",
    remedy="Answer HEAD like GET without a body, or with 405.",
    needs=("SRV-001",),
)
async def head_has_no_body(server: Server) -> None:
    """A HEAD request is answered without a body and without a server error."""
    exchange = await server.client.send(server.client.json_request("HEAD", "healthz"))
    is_fine = exchange.response is not None and exchange.status < 500 and not exchange.response.content
    expect(is_fine, "200 or 405 without a body", exchange.describe(), exchange)


@AREA.should(
    5,
    contract="healthz",
    remedy="Keep connections open after a response: clients send many small requests.",
    needs=("SRV-001",),
)
async def connection_stays_open(server: Server) -> None:
    """A connection stays open after a response."""
    _, exchange = await server.client.call(healthz())
    is_open = exchange.headers.get("connection", "").lower() != "close"
    expect(is_open, "a response without Connection: close", "Connection: close", exchange)


@AREA.should(
    6,
    contract="create_session",
    remedy="Read bodies with Transfer-Encoding: chunked; proxies send them.",
    needs=("SES-001",),
)
async def chunked_body_is_read(server: Server) -> None:
    """A body that is sent in chunks, without Content-Length, is read."""
    await expect_session(server, session_request(server), is_chunked=True)


@AREA.must(
    7,
    contract="get_server_capabilities",
    remedy="Compress a response only with an encoding of the request's Accept-Encoding.",
    needs=("SRV-002",),
)
async def encoding_is_negotiated(server: Server) -> None:
    """A response is not compressed if the request accepts no compression, and can be read if it accepts gzip."""
    call = get_server_capabilities()
    plain = server.client.encode(call)
    request = attrs.evolve(plain, headers={**plain.headers, "accept-encoding": "identity"})
    exchange = await server.client.send(request)
    server.client.read(call, exchange)
    encoding = exchange.headers.get("content-encoding", "identity")
    expect(encoding == "identity", "no Content-Encoding", encoding, exchange)
    request = attrs.evolve(plain, headers={**plain.headers, "accept-encoding": "gzip"})
    packed = await server.client.send(request)
    expect(packed.json() == exchange.json(), "the same response with gzip", packed.describe(), packed)


@AREA.should(
    8,
    contract="asample",
    remedy="Return the response of the first request for each request with the same X-Idempotency-Key and body.",
    needs=("SMP-001",),
)
async def resent_sample_is_the_same(server: Server) -> None:
    """A sample that is resent with its idempotency key and seq_id has the tokens of the first."""
    sampler = await server.base_sampler()
    request = server.client.encode(sampler.sample_call(seed=None))
    tokens = []
    for _ in range(2):
        result = await server.futures.wait(await server.futures.submit_request("asample", request))
        expect(result.failure is None, "a sample", result.failure, result.exchange)
        tokens.append([list(sequence.tokens) for sequence in result.value.sequences])
    expect(tokens[0] == tokens[1], f"the tokens {tokens[0]}", tokens[1])


@AREA.may(
    9,
    contract="create_session",
    remedy="Return the first session for each create_session with the same X-Idempotency-Key.",
    needs=("SES-001",),
)
async def resent_session_is_the_same(server: Server) -> None:
    """A creation of a session that is resent with its idempotency key has the first session."""
    request = session_request(server)
    ids = [await expect_session(server, request) for _ in range(2)]
    expect(ids[0] == ids[1], f"the session {ids[0]}", ids[1])


@AREA.must(
    10,
    contract="create_session",
    remedy="Take requests without X-Idempotency-Key, and create something new for each.",
    needs=("SES-001",),
)
async def requests_without_key_are_accepted(server: Server) -> None:
    """A request without an idempotency key is accepted, and two of them create two sessions."""
    ids = []
    for _ in range(2):
        request = plain_session_request(server, session_body(server))
        headers = {name: value for name, value in request.headers.items() if name != "x-idempotency-key"}
        ids.append(await expect_session(server, attrs.evolve(request, headers=headers)))
    expect(ids[0] != ids[1], "two sessions", f"the session {ids[0]} twice")


@AREA.should(
    11,
    contract="session_heartbeat",
    remedy="Do not keep a result under an idempotency key for another operation.",
    needs=("SES-005",),
)
async def key_belongs_to_one_operation(server: Server) -> None:
    """An idempotency key that another operation used never gives that operation's response."""
    created = session_request(server)
    body = {"session_id": await expect_session(server, created)}
    key = created.headers["x-idempotency-key"]
    request = server.client.json_request("POST", "session_heartbeat", body, x_idempotency_key=key)
    beat = await server.client.send(request)
    if beat.is_client_error:
        raise NotApplicable("the server rejects a key that another operation used")
    answer = beat.json()
    if beat.status != 200 or not isinstance(answer, dict) or "session_id" in answer:
        raise Violation("the response of session_heartbeat, or a 4xx", beat.describe(), beat)
