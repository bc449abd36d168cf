"""Health and capabilities of the server, and telemetry of clients."""

from __future__ import annotations

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    GetServerCapabilitiesResponse,
    HealthResponse,
    SupportedModel,
    TelemetryResponse,
)


def healthz(state: State, request: Request) -> Response:
    """Report that the server is up."""
    return Response(body=HealthResponse(status="ok"))


def get_server_capabilities(state: State, request: Request) -> Response:
    """List the base models."""
    models = [
        SupportedModel(model_name=name, max_context_length=config.max_context, trainable=True, sampleable=True)
        for name, config in state.settings.catalogue.models.items()
    ]
    return Response(body=GetServerCapabilitiesResponse(supported_models=models))


def telemetry(state: State, request: Request) -> Response:
    """Accept telemetry events and drop them."""
    return Response(body=TelemetryResponse(status="accepted"))
