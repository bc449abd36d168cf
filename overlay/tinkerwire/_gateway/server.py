"""A gateway that listens: on the event loop of the caller, or on a thread of its own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

import attrs
from typing_extensions import Self

from .._extras import require_packages
from .._server.emulation.fault_injection import FaultInjection
from .._server.listener import Listener
from .._transport import address
from .._transport.backpressure import CONNECTIONS
from .._transport.base import Transport
from .._transport.http_transport import HttpTransport
from .._transport.poll_connections import find_poll_limit
from .._wire.dialect import Dialect
from .app import GatewayApp
from .memory import Memory
from .recognition import exact_wire
from .trace import GatewayTrace
from .upstream import Upstream

DRAIN_TIME_S = 30.0
"""Time that requests may take to finish when the gateway ends."""
FILES_PER_POLL = 2
"""Connections for a poll: that of the client, and that to the upstream. Each side gets half of the files."""
CLIENT_KEY_PREFIX = "tml-gateway-"


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """Settings of a gateway.

    Raises:
        ValueError: a value is invalid; the error names it.
    """

    to: str
    """URL of the server behind the gateway."""
    to_wire: str | None = None
    """Wire version of that server; None to discover what it supports."""
    host: str = "127.0.0.1"
    port: int = 0
    allowed_hosts: Collection[str] = ()
    """Further allowed values of Host and Origin."""
    api_key: str | None = attrs.field(default=None, repr=False)
    """Key for the upstream; None to pass on the clients' keys."""
    client_key: str | None = attrs.field(default=None, repr=False)
    """Key that clients must present; None to accept any."""
    speak: str | None = None
    """Wire version of all clients; None to recognize it."""
    state: Path | None = None
    record: Path | None = None
    trace: Path | None = None
    fault_injection: FaultInjection | None = None
    shares_port: bool = False
    """Other processes may listen on the same port."""

    def __attrs_post_init__(self) -> None:
        """Check the values that no file or socket is needed for."""
        if address.parse_http_url(self.to) is None:
            shown = address.address_without_secrets(self.to)
            raise ValueError(f"to: {shown!r} is not an http(s) URL; pass the address of a server")
        _check("to", lambda: address.resolve_base_url(self.to))
        if self.to_wire is not None:
            _check("to_wire", lambda: Dialect.for_version(str(self.to_wire)))
        if self.speak is not None:
            _check("speak", lambda: exact_wire(str(self.speak)))


def _check(name: str, make: Callable[[], object]) -> None:
    try:
        make()
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None


def generate_key() -> str:
    """Return a new key for the clients of a gateway."""
    return CLIENT_KEY_PREFIX + secrets.token_urlsafe(24)


async def serve_gateway(
    settings: GatewaySettings, ready: Callable[[str], None], until: asyncio.Event | None = None
) -> None:
    """Serve until ``until`` is set or, without it, until SIGINT or SIGTERM; requests in progress finish first.

    Raises:
        OSError: the gateway cannot listen on the port.
        TinkerError: a key would be sent unencrypted to another machine.
        ValueError: a file or a host is invalid.
    """
    from .._server.aiohttp_app import serve_handler  # noqa: PLC0415
    from .._server.http.allowed_hosts import AllowedHosts  # noqa: PLC0415

    base_url = address.resolve_base_url(settings.to)
    address.refuse_plain_http(base_url, None)
    allowed = AllowedHosts([*settings.allowed_hosts, *([settings.host] if settings.host else [])], "tinkerwire gateway")
    max_connections = find_poll_limit(sum(CONNECTIONS.values()), FILES_PER_POLL).number
    app = GatewayApp(
        Upstream(base_url, _open_transport(base_url, settings.record), settings.to_wire, settings.api_key),
        Memory(settings.state),
        speak=settings.speak,
        client_key=settings.client_key,
        fault_injection=settings.fault_injection,
        trace=None if settings.trace is None else GatewayTrace(settings.trace),
    )

    async def stop() -> None:
        app.drain()

    try:
        await serve_handler(
            app,
            stop,
            settings.host,
            settings.port,
            allowed_hosts=allowed,
            ready=ready,
            until=until,
            drain_s=DRAIN_TIME_S,
            shares_port=settings.shares_port,
            max_connections=max_connections,
        )
    finally:
        await app.close()


def _open_transport(base_url: str, record_path: Path | None) -> Transport:
    transport = HttpTransport(base_url, FILES_PER_POLL)
    if record_path is None:
        return transport
    from .._tape.recording import record  # noqa: PLC0415

    return record(transport, base_url, record_path)


class Gateway:
    """A gateway in this process: clients of any wire version use its URL, and reach one server of any other.

    It listens on a thread of its own until it is closed.

        from tinkerwire.gateway import Gateway
        from tinkerwire.testing import LocalServer

        with LocalServer(wire="0.16.1") as server, Gateway(to=server.url) as gateway:
            print(gateway.url)

    Args:
        to: URL of the server.
        to_wire: wire version of the server; None to discover what it supports.
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        allowed_hosts: further allowed values of Host and Origin, beside loopback names and ``host``.
        api_key: key for the server, in place of those of the clients, which must then present :attr:`client_key`;
            None passes on the clients' keys.
        client_key: key that clients must present; None accepts any key, unless ``api_key`` is given: then a new key
            is generated.
        speak: wire version of all clients; None to recognize it by what each client sends.
        state: file that keeps what the gateway remembers for its successor; None for memory only.
        record: tape on which the requests to the server are recorded.
        trace: file with a line for each request of a client.
        fault_injection: failures to inject into the responses to clients.

    Raises:
        ValueError: an argument is invalid.
        ImportError: the extra ``server`` is not installed.
        RuntimeError: the gateway cannot listen, or a key would be sent unencrypted to another machine.
    """

    def __init__(
        self,
        to: str,
        *,
        to_wire: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        allowed_hosts: Collection[str] = (),
        api_key: str | None = None,
        client_key: str | None = None,
        speak: str | None = None,
        state: str | Path | None = None,
        record: str | Path | None = None,
        trace: str | Path | None = None,
        fault_injection: FaultInjection | None = None,
    ) -> None:
        require_packages("tinkerwire.gateway", "server", "aiohttp")
        if api_key is not None and client_key is None:
            client_key = generate_key()
        self._settings = GatewaySettings(
            to=to,
            to_wire=to_wire,
            host=host,
            port=port,
            allowed_hosts=allowed_hosts,
            api_key=api_key,
            client_key=client_key,
            speak=speak,
            state=None if state is None else Path(state),
            record=None if record is None else Path(record),
            trace=None if trace is None else Path(trace),
            fault_injection=fault_injection,
        )
        self._listener = Listener(lambda ready, until: serve_gateway(self._settings, ready, until))

    @property
    def url(self) -> str:
        """URL of the gateway, for clients of any kind."""
        return self._listener.url

    @property
    def client_key(self) -> str | None:
        """Key that clients must present; None if any is accepted."""
        return self._settings.client_key

    def close(self) -> None:
        """Finish the requests in progress and stop listening; a second call does nothing."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Gateway {self.url} to {self._settings.to}>"
