# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from datetime import datetime

from tinkerwire_base.call import Call, Operation

from ...models import BillingUsageResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="get_billing_usage",
    tag="admin",
    method="GET",
    path="/api/v1/billing/usage/events",
    results={
        200: BillingUsageResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def get_billing_usage(
    *,
    starting_on: datetime,
    ending_before: datetime,
) -> Call[BillingUsageResponse]:
    """Read the usage within a span of time."""
    return Call(
        OPERATION,
        query={
            "starting_on": starting_on,
            "ending_before": ending_before,
        },
    )
