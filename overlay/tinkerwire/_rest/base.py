"""Base of the REST clients: a connection, shared or their own."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, TypeVar

from typing_extensions import Self

from tinkerwire_base.call import Call
from tinkerwire_generated import models

from .._connection.capabilities import fetch_capabilities
from .._connection.connection import Connection
from .._futures.future import APIFuture
from .._lifecycle.connecting import open_connection
from .._lifecycle.lifetime import Lifetime
from .._telemetry.reporter import Telemetry
from .._transport.backpressure import Traffic

T = TypeVar("T")


class RestClientBase:
    """Client whose methods each send one call.

    A client that you create has its own connection: use it as a context manager, or call :meth:`close`. A client from
    a ServiceClient uses the connection of the service, and leaves it open.

    Args:
        base_url: the server, as for ServiceClient.
        api_key: as for ServiceClient.
        exit_timeout: as for ServiceClient.

    Raises:
        TinkerError: the server needs an API key, and none is set.
        ValueError: base_url is not a URL.
    """

    def __init__(
        self,
        _connection: Connection | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        exit_timeout: float | None = None,
    ) -> None:
        if _connection is not None and (base_url is not None or api_key is not None):
            raise ValueError("base_url and api_key cannot be combined with a connection; omit them")
        self._connection = open_connection(base_url, api_key) if _connection is None else _connection
        # Either the lifetime of its own connection, or a reference that keeps the shared connection open.
        self._lifetime = Lifetime(self._connection, exit_timeout=exit_timeout) if _connection is None else None
        self._owner = self._connection.owner

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lifetime is not None:
            self._lifetime.exit(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lifetime is not None:
            await self._lifetime.exit_async(error)

    def close(self) -> None:
        """Close a connection of the client's own, and wait for that; operations under way are dropped, and logged."""
        if self._lifetime is not None:
            self._lifetime.close().result()

    def get_server_capabilities(self) -> APIFuture[models.GetServerCapabilitiesResponse]:
        """Return the models that the server supports."""
        return self._connection.start(lambda: fetch_capabilities(self._connection), "get_server_capabilities")

    async def get_server_capabilities_async(self) -> models.GetServerCapabilitiesResponse:
        """Await :meth:`get_server_capabilities`, and return its result."""
        return await self.get_server_capabilities()

    def get_telemetry(self) -> Telemetry | None:
        """Return the telemetry reporter of the session; None if telemetry is disabled, see TINKER_TELEMETRY."""
        return self._owner.telemetry if isinstance(self._owner, Lifetime) else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connection.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled or copied: its connections belong to this process; create "
            "one in the other process"
        )

    def _start_call(self, call: Call[T]) -> APIFuture[T]:
        return self._connection.start(lambda: self._connection.call(call, Traffic.REST), call.operation.name)
