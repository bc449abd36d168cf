"""Discovery: the wire version of a server, from evidence, and the optional operations that it lacks."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated import models
from tinkerwire_generated.availability import NEWEST

from ..._wire.dialect import CONFIG_SINCE, Dialect
from ..client.contract import Contract
from ..client.wire_client import WireClient
from ..subject.server import Server
from ..subject.sessions import finish_sessions
from ..violation import ServerLost
from .clues import choose_version, explain
from .probes import Probes

CONFIG_PATH = "client/config"


@attrs.frozen(kw_only=True)
class Discovery:
    """Findings about a server."""

    wire: str
    """The wire version that fits the evidence best; of versions without a visible difference, the newest."""
    evidence: tuple[str, ...]
    """The observations that set the version, as sentences without a period."""
    config: models.ClientConfigResponse | None
    """The response to client/config; None if the server does not have it, or if it cannot be read."""
    missing: frozenset[str]
    """Operations of the version that the server does not have."""
    sessions: tuple[str, ...] = ()
    """Ids of the sessions that the probes created."""


async def discover(base_url: str, api_key: str | None, wire: str | None = None) -> Discovery:
    """Find out the wire version of a server.

    Args:
        base_url: address of the server.
        api_key: the key; None sends none.
        wire: the version if it is known; then only the missing operations and the client config are found out.

    Raises:
        ServerLost: the server does not accept connections, or does not respond as a server of the Tinker API.
        ValueError: the contract does not describe the version.
    """
    client = WireClient(base_url.rstrip("/"), api_key, Dialect.for_version(wire or NEWEST))
    probes = Probes(client)
    try:
        return await _Discoverer(client, probes).discover(wire)
    except BaseException:
        await finish_sessions(client, await probes.session_ids())
        raise
    finally:
        await client.close()


async def open_server(base_url: str, api_key: str | None, wire: str | None = None, model: str | None = None) -> Server:
    """Return the server to test, authenticated, with what was found out about it.

    Args:
        base_url: see :func:`discover`.
        api_key: see :func:`discover`.
        wire: the wire version; None to find it out.
        model: name of the base model to test with; None for the first that the server names.

    Raises:
        ServerLost: the server does not accept connections, or does not respond as a server of the Tinker API.
        ValueError: the contract does not describe the version.
        Violation: the server asks for a token and does not issue one.
    """
    found = await discover(base_url, api_key, wire)
    client = WireClient(base_url.rstrip("/"), api_key, Dialect.for_version(found.wire, found.config))
    server = Server(client, api_key, model)
    server.missing |= found.missing
    server.evidence = found.evidence
    for session_id in found.sessions:
        server.sessions.adopt(session_id)
    try:
        await server.authenticate()
    except BaseException:
        await server.close()
        raise
    return server


class _Discoverer:
    def __init__(self, client: WireClient, probes: Probes) -> None:
        self._client = client
        self._probes = probes

    async def discover(self, wire: str | None) -> Discovery:
        flags, config = await self._read_config()
        if config is not None and config.pjwt_auth_enabled:
            await self._exchange_key()
        existing = await self._probes.operations()
        if self._probes.is_uniform or not any(existing.values()):
            await self._report_other_server()
        evidence: tuple[str, ...] = ("set by the user",)
        if wire is None:
            clues = [
                *await self._probes.operation_clues(existing),
                *await self._probes.field_clues(),
                *await self._probes.encoding_clues(),
                *await self._probes.sample_clues(),
                *self._probes.config_clues(flags),
            ]
            wire = choose_version(clues)
            evidence = explain(clues, wire)
        has_config = parse_version(wire) >= parse_version(CONFIG_SINCE)
        return Discovery(
            wire=wire,
            evidence=evidence,
            config=config if has_config else None,
            missing=_missing(wire, existing),
            sessions=tuple(await self._probes.session_ids()),
        )

    async def _read_config(self) -> tuple[tuple[str, ...], models.ClientConfigResponse | None]:
        exchange = await self._probes.send("POST", CONFIG_PATH, {"sdk_version": self._client.wire})
        if exchange.response is None:
            await self._require_response()
        body = exchange.json() if exchange.status == 200 else None
        if not isinstance(body, dict):
            return (), None
        try:
            return tuple(body), self._client.structure(body, models.ClientConfigResponse)
        except ValueError:
            # A requirement of the area service reports it.
            return tuple(body), None

    async def _require_response(self) -> None:
        exchange = await self._probes.send("GET", "healthz")
        if exchange.response is None:
            raise ServerLost(f"{self._client.base_url} accepts connections, but does not respond: {exchange.error}")

    async def _report_other_server(self) -> None:
        exchange = await self._probes.send("GET", "get_server_capabilities")
        raise ServerLost(
            f"{self._client.base_url} is not a server of the Tinker API, or rejects the key: {exchange.describe()}"
        )

    async def _exchange_key(self) -> None:
        exchange = await self._probes.send("POST", "auth/token", {})
        token = exchange.member("jwt")
        if exchange.status == 200 and isinstance(token, str):
            self._client.use_key(token)


def _missing(wire: str, existing: Mapping[str, bool]) -> frozenset[str]:
    contract = Contract(wire)
    return frozenset(name for name, exists in existing.items() if not exists and name in contract.operations)
