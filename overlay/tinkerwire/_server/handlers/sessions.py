"""Sessions."""

from __future__ import annotations

from tinkerwire._server.handlers.pagination import paginate
from tinkerwire._server.handlers.user_metadata import check_depth, stringify_values
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_CONTENT, Response
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    AssignSessionProjectRequest,
    CreateSessionRequest,
    CreateSessionResponse,
    FinishSessionRequest,
    GetSessionResponse,
    ListSessionsResponse,
    SessionHeartbeatRequest,
    SessionHeartbeatResponse,
    SessionTraceExportPollResponse,
)


def create_session(state: State, request: Request) -> Response:
    """Create a session."""
    body: CreateSessionRequest = request.body
    check_depth(body.user_metadata)
    session = state.sessions.create(body.tags, body.user_metadata, body.sdk_version, body.display_name, body.project_id)
    return Response(body=CreateSessionResponse(session_id=session.session_id))


def session_heartbeat(state: State, request: Request) -> Response:
    """Keep a session alive."""
    body: SessionHeartbeatRequest = request.body
    state.sessions.require_active(body.session_id)
    return Response(body=SessionHeartbeatResponse())


def list_sessions(state: State, request: Request) -> Response:
    """List the sessions of this server process, newest first."""
    sessions, _ = paginate(request, state.sessions.newest_first())
    return Response(body=ListSessionsResponse(sessions=[session.session_id for session in sessions]))


def get_session(state: State, request: Request) -> Response:
    """List the models and samplers of a session."""
    session = state.sessions.get(request.path["session_id"])
    body = GetSessionResponse(
        training_run_ids=list(session.model_ids),
        sampler_ids=list(session.sampler_ids),
        user_metadata=stringify_values(session.user_metadata),
        display_name=session.display_name,
    )
    return Response(body=body)


def export_session_trace(state: State, request: Request) -> Response:
    """Report that the export failed, since this server keeps no traces; clients would repeat a request after a 501."""
    state.sessions.get(request.path["session_id"])
    reason = "this server does not keep traces; see errors in its log"
    return Response(body=SessionTraceExportPollResponse(status="failed", error=reason))


def finish_session(state: State, request: Request) -> Response:
    """Record that a client is done; the session stays active until it expires, because others may use it."""
    body: FinishSessionRequest = request.body
    session = state.sessions.get(request.path["session_id"])
    session.finish_reason = body.reason.type
    state.sessions.record(session)
    return NO_CONTENT


def assign_session_project(state: State, request: Request) -> Response:
    """Record the project of a session."""
    body: AssignSessionProjectRequest = request.body
    session = state.sessions.get(request.path["session_id"])
    session.project_id = body.project_id
    state.sessions.record(session)
    return NO_CONTENT
