# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="auth_config",
    tag="auth",
    method="GET",
    path="/api/unauthed/auth-config",
    get_results=lambda: {
        200: models.AuthConfigResponse,
    },
)


def auth_config() -> Call[models.AuthConfigResponse]:
    """Get the configuration for signing in; needs no key."""
    return Call(
        OPERATION,
    )
