"""What makes no sense on a server of one user on one machine: answered 501, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response
from tinkerwire._server.state import State

REASONS: Mapping[str, str] = {
    "auth_config": "there is nobody to sign in with; any API key will do, or the one that the server was given",
    "create_api_key": "it makes no API keys; any will do, or the one that the server was given",
    "delete_own_api_key": "API keys cannot be deleted; start the server with another one",
    "get_audit_log": "it keeps no audit log",
    "get_billing_usage": "nothing is billed",
    "get_checkpoint_storage_usage": "nothing is billed; list_user_checkpoints has the size of each checkpoint",
    "export_session_trace": "it keeps no traces; its log has what went wrong",
    "search_sessions": "it has no search; list_sessions lists them",
}


def refuse(state: State, request: Request) -> Response:
    """Say why there is no answer."""
    raise HttpError(501, f"{request.operation}: not on this server: {REASONS[request.operation]}", NO_RETRY)


HANDLERS: Mapping[str, Handler] = dict.fromkeys(REASONS, refuse)
