# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import AuthConfigResponse

OPERATION = Operation(
    name="auth_config",
    tag="auth",
    method="GET",
    path="/api/unauthed/auth-config",
    results={
        200: AuthConfigResponse,
    },
)


def auth_config() -> Call[AuthConfigResponse]:
    """Get the configuration for signing in; needs no key."""
    return Call(
        OPERATION,
    )
