"""The gateway as a handler of requests: access, recognition, fault injection, emulations and errors."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from functools import partial

import attrs
import orjson

from tinkerwire_base.call import JSON, WireRequest, WireResponse

from .._server.emulation.fault_injection import ConnectionDropped, FaultInjection
from .._server.emulation.middleware import apply_middleware
from .._server.http.body_thread import BodyThread
from .._server.http.content_encoding import decompress
from .._server.http.request import with_lower_names
from .._server.http.responses import HttpError
from .._server.http.routing import OPEN_PATHS
from . import memory as kinds
from .emulations import Emulations
from .front import ClientRequest, content_encoding, json_object, read_request
from .memory import Memory
from .polls import Polls
from .recognition import UNKNOWN, ClientWire, exact_wire, names_version, recognize
from .relay import Relay, RelayedExchange
from .trace import GatewayTrace
from .upstream import Refused, Upstream

log = logging.getLogger("tinkerwire.gateway")
ID_KEYS = ("session_id", "model_id", "sampling_session_id", "request_id")
"""Keys of ids by which a client that names no version is recognized."""


class GatewayApp:
    """Answers the requests of clients of any wire version by requests to one upstream. Used on one event loop.

    Args:
        upstream: the server behind the gateway.
        memory: what the gateway remembers.
        speak: the wire version of all clients; None to recognize each client's.
        client_key: the key that clients must present; None to accept any, which is passed on.
        fault_injection: failures to inject into the responses to clients.
        trace: records every exchange.
    """

    def __init__(
        self,
        upstream: Upstream,
        memory: Memory,
        *,
        speak: str | None = None,
        client_key: str | None = None,
        fault_injection: FaultInjection | None = None,
        trace: GatewayTrace | None = None,
    ) -> None:
        self._upstream = upstream
        self._memory = memory
        self._polls = Polls(upstream, memory)
        self._emulations = Emulations(Relay(upstream, memory), self._polls)
        self._speak = None if speak is None else exact_wire(speak)
        self._client_key = client_key
        self._body_thread = BodyThread()
        self._fault_injection = fault_injection
        self._trace = trace

    async def handle(self, request: WireRequest) -> WireResponse:
        """Return the response to one request.

        Raises:
            ConnectionDropped: fault injection drops the connection.
        """
        wire = with_lower_names(request)
        try:
            self._authenticate(wire)
            client, request_ = await self._body_thread.run(wire, lambda: self._read(wire))
            if self._fault_injection is None:
                return await self._respond(request_, client, wire)
            respond = partial(self._respond, request_, client)
            return await apply_middleware(request_.operation.name, self._fault_injection, respond)(wire)
        except HttpError as error:
            return _error_response(error)
        except Refused as refused:
            return refused.response
        except ConnectionDropped:
            raise
        except Exception as error:
            # Neither the text nor the traceback, which may hold values of the request.
            log.error("%s %s failed: %s", wire.method, wire.path, type(error).__name__)
            text = f"tinkerwire gateway: internal error: {type(error).__name__}; see the log of the gateway"
            log.debug("traceback", exc_info=True)
            return _error_response(HttpError(502, text))

    def drain(self) -> None:
        """Answer the polls that wait, so that the gateway can end without loss."""
        self._polls.drain()

    async def close(self) -> None:
        """Close all connections and files."""
        await self._upstream.close()
        self._body_thread.close()
        self._memory.close()
        if self._trace is not None:
            self._trace.close()

    async def _respond(self, request: ClientRequest, client: ClientWire, wire: WireRequest) -> WireResponse:
        exchange = RelayedExchange()
        response: WireResponse | None = None
        try:
            try:
                response = await self._emulations.handle(request, exchange)
            except HttpError as error:
                response = _error_response(error)
            except Refused as refused:
                response = refused.response
            if not client.is_known:
                self._remember_client(request, response)
            return response
        finally:
            if self._trace is not None:
                self._trace.add(request, response, exchange, self._upstream.known_dialect)

    def _authenticate(self, wire: WireRequest) -> None:
        if self._client_key is None or wire.path in OPEN_PATHS:
            return
        key = wire.headers.get("x-api-key", "")
        if not hmac.compare_digest(key.encode(errors="surrogateescape"), self._client_key.encode()):
            problem = "wrong" if key else "missing"
            raise HttpError(401, f"tinkerwire gateway: the API key is {problem}; send the gateway's key in X-API-Key")

    def _read(self, wire: WireRequest) -> tuple[ClientWire, ClientRequest]:
        client = self._speak or self._recognize(wire)
        return client, read_request(wire, client, self._body_thread)

    def _recognize(self, wire: WireRequest) -> ClientWire:
        try:
            client = recognize(wire.headers)
            if client.is_known:
                return client
            value = json_object(decompress(wire.content or b"", content_encoding(wire.headers)))
            version = value.get("sdk_version")
            if not names_version(version):
                known = (self._memory.get(kinds.WIRE, str(value[key])) for key in ID_KEYS if key in value)
                version = next((found for found in known if found is not None), None)
            return UNKNOWN if version is None else attrs.evolve(exact_wire(version), is_known=False)
        except ValueError as error:
            raise HttpError(400, f"tinkerwire gateway: the client's version: {error}") from None

    def _remember_client(self, request: ClientRequest, response: WireResponse) -> None:
        """Remember the version of a client that names none in its headers, by the ids in a response."""
        if not request.is_certain or response.status >= 300:
            return
        value = json_object(response.content) if JSON in response.headers.get("content-type", "") else {}
        for key in ID_KEYS:
            if isinstance(value.get(key), str):
                self._memory.put(kinds.WIRE, value[key], request.front.version)


def _error_response(error: HttpError) -> WireResponse:
    headers: Mapping[str, str] = {"content-type": JSON, **error.headers}
    return WireResponse(status=error.status, headers=headers, content=orjson.dumps({"detail": error.detail}))
