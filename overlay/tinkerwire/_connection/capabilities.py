"""The server's capabilities: fetched on request, and kept for later checks."""

from __future__ import annotations

from collections.abc import Iterable

from tinkerwire_generated import models
from tinkerwire_generated.api.service import get_server_capabilities

from .._transport.backpressure import Traffic
from .connection import Connection


async def fetch_capabilities(connection: Connection) -> models.GetServerCapabilitiesResponse:
    """Fetch the capabilities, and keep the context lengths in them with the connection."""
    capabilities = await connection.call(get_server_capabilities(), Traffic.REST)
    connection.known_models.context_lengths = context_lengths(capabilities.supported_models)
    return capabilities


def context_lengths(supported_models: Iterable[models.SupportedModel]) -> dict[str, int]:
    """Return the positive context lengths by model name; the longest one of a name that is listed twice."""
    lengths: dict[str, int] = {}
    for model in supported_models:
        name, length = model.model_name, model.max_context_length
        if name and length is not None and length > 0:
            lengths[name] = max(length, lengths.get(name, 0))
    return lengths
