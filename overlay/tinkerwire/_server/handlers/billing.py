"""Usage and storage of this server, which costs nothing."""

from __future__ import annotations

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    BillingUsageResponse,
    CurrentCheckpointStorageUsageItem,
    CurrentCheckpointStorageUsageResponse,
)

BYTES_PER_GIGABYTE = 10**9


def get_billing_usage(state: State, request: Request) -> Response:
    """Return no usage, since this server does not bill any."""
    return Response(body=BillingUsageResponse(data=[]))


def get_checkpoint_storage_usage(state: State, request: Request) -> Response:
    """Return number and size of all checkpoints, at a price of 0."""
    records = state.checkpoints.newest_first()
    if not records or request.query.get("project_id") is not None:
        return Response(body=CurrentCheckpointStorageUsageResponse(data=[], effective_rate_usd_per_gigabyte_month=0.0))
    size = sum(record.size_bytes for record in records)
    item = CurrentCheckpointStorageUsageItem(
        checkpoint_count=len(records),
        size_bytes=size,
        size_gigabytes=size / BYTES_PER_GIGABYTE,
        estimated_monthly_cost_usd=0.0,
    )
    return Response(body=CurrentCheckpointStorageUsageResponse(data=[item], effective_rate_usd_per_gigabyte_month=0.0))
