"""Settings of one server."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tinkerwire._server.emulation.fault_injection import FaultInjection
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig


@attrs.frozen(kw_only=True)
class Settings:
    """Settings of a server, as :class:`~tinkerwire._server.app.EmbeddedServer` documents them."""

    wire_version: str
    long_poll_s: float
    session_ttl_s: float | None
    strict_sequence: bool
    gap_wait_s: float
    api_key: str | None
    seed: int | None
    max_queued_samples: int
    max_inline_bytes: int
    catalogue: Catalogue
    client_config: ClientConfig
    retention: RetentionPolicy
    quirks: Quirks
    fault_injection: FaultInjection | None
    clock: Callable[[], float]
