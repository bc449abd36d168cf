# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from datetime import datetime

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_billing_usage",
    tag="admin",
    method="GET",
    path="/api/v1/billing/usage/events",
    get_results=lambda: {
        200: models.BillingUsageResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_billing_usage(
    *,
    starting_on: datetime,
    ending_before: datetime,
) -> Call[models.BillingUsageResponse]:
    """Read the usage within a span of time."""
    return Call(
        OPERATION,
        query={
            "starting_on": starting_on,
            "ending_before": ending_before,
        },
    )
