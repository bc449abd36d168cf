"""Operations without a purpose on a server for one user, answered with 501 and the reason."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response
from tinkerwire._server.state import State

REASONS: Mapping[str, str] = {
    "auth_config": "it has no sign-in; use any API key, or the key that the server was started with",
    "create_api_key": "it does not create API keys; use any key, or the key that the server was started with",
    "delete_own_api_key": "API keys cannot be deleted; start the server with another key",
    "get_audit_log": "it does not keep an audit log",
    "search_sessions": "it has no search; use list_sessions",
}


def reject(state: State, request: Request) -> Response:
    """Reject an operation with 501 and the reason."""
    raise HttpError(501, f"{request.operation}: not implemented by this server: {REASONS[request.operation]}", NO_RETRY)
