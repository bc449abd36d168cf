"""An embedded server that is also reachable over HTTP, for one test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from .._extras import require_packages
from .._server.listener import Listener
from .._server.options import read_names
from ..local import EmbeddedServer, FaultInjection, Quirks, embedded_transport
from ..version import DEFAULT_WIRE

if TYPE_CHECKING:
    from .._service import ServiceClient

API_KEY = "tml-test"
"""A key of no service, since official clients do not start without one."""
DEFAULT_MODEL = "tinkerwire/byte-nano"
RETRY_DELAY_S = 0.01
UNSET_VARIABLES = (
    "TINKER_CREDENTIAL_CMD",
    "TINKER_PROJECT_ID",
    "TINKER_WIRE_VERSION",
    "TINKERWIRE_HEADERS",
    "TINKERWIRE_LOCAL_FOLDER",
)
"""Variables of the developer that would change what a client sends, or to which server."""


class LocalServer:
    """A new embedded server with a temporary folder, in this process and at a URL of this machine.

    Args:
        wire: wire version to serve; None for the one that ``tinkerwire serve`` has by default.
        quirks: quirks of other servers to emulate: options such as ``failure=500``, or a Quirks.
        models: further names of models: a mapping to models of the embedded server, or names for the smallest one.
        seed: seed of adapters, samples and injected faults.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is invalid.
        ImportError: the extra ``server`` is not installed.
    """

    def __init__(
        self,
        *,
        wire: str | None = None,
        quirks: Quirks | str | Iterable[str] = (),
        models: str | Mapping[str, str] | Iterable[str] = (),
        seed: int = 0,
    ) -> None:
        require_packages("tinkerwire.testing", "server", "aiohttp")
        if not isinstance(quirks, Quirks):
            quirks = Quirks.parse(",".join(read_names("quirks", quirks)))
        if not isinstance(models, Mapping):
            models = dict.fromkeys(read_names("models", models), DEFAULT_MODEL)
        self.fault_injection = FaultInjection(seed=seed)
        """Failures to inject; none until a test asks for one."""
        self.embedded = EmbeddedServer(
            wire_version=DEFAULT_WIRE if wire is None else wire,
            quirks=quirks,
            aliases=models,
            seed=seed,
            fault_injection=self.fault_injection,
        )
        """The server itself."""
        try:
            self._listener = start_listener(self.embedded)
        except BaseException:
            self.embedded.close()
            raise

    @property
    def url(self) -> str:
        """URL of the server, for clients of any kind and for other processes."""
        return self._listener.url

    @property
    def environment(self) -> dict[str, str | None]:
        """Environment variables that direct a client without arguments to this server; None for those to unset."""
        variables: dict[str, str | None] = dict.fromkeys(UNSET_VARIABLES)
        return {**variables, "TINKER_BASE_URL": self.url, "TINKER_API_KEY": API_KEY}

    def create_client(self, **options: Any) -> ServiceClient:
        """Create a client of this server, without a socket and with short delays between retries.

        Args:
            **options: further arguments of ServiceClient.
        """
        from .._connection.retry import RetryConfig  # noqa: PLC0415
        from .._service import ServiceClient  # noqa: PLC0415

        retry = RetryConfig(retry_delay_base=RETRY_DELAY_S, retry_delay_max=10 * RETRY_DELAY_S)
        return ServiceClient(
            **{"base_url": "local", "transport": embedded_transport(self.embedded), "retry": retry, **options}
        )

    def close(self) -> None:
        """Stop listening, end all work and remove the folder; a second call does nothing."""
        self._listener.close()
        self.embedded.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LocalServer {self.url}, wire {self.embedded.wire_version}>"


def start_listener(server: EmbeddedServer) -> Listener:
    """Serve an embedded server over HTTP in a thread of its own; the caller closes both."""
    return Listener(lambda ready, until: _serve(server, ready, until))


async def _serve(server: EmbeddedServer, ready: Callable[[str], None], until: asyncio.Event) -> None:
    from .._server.aiohttp_app import serve  # noqa: PLC0415

    await serve(server, ready=ready, until=until)
