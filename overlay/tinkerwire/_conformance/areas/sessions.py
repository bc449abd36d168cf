"""Requirements on sessions: creation, heartbeats, listings, the end."""

from __future__ import annotations

from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.api.session import (
    create_session,
    finish_session,
    get_session,
    list_sessions,
    session_heartbeat,
)
from tinkerwire_generated.api.training import create_model

from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..violation import Violation, expect

AREA = Area("SES", "sessions", "Sessions: creation, heartbeats, listings and the end")
CANNOT_OPEN_SESSION = Breakage("0.3.0", None, Feature.CONNECT, "raises an error when a client is created")
UNKNOWN_SESSION = "no-such-session"
SESSION_METADATA = {"purpose": "conformance", "größe": "日本"}
NAME = "conformance run"


@AREA.must(
    1,
    contract=("create_session 200", "CreateSessionResponse.session_id"),
    remedy="Respond to create_session with status 200 and a JSON object that has session_id, a string.",
    breaks=[CANNOT_OPEN_SESSION],
)
async def session_can_be_created(server: Server) -> None:
    """A session can be created and has a session_id that is not empty."""
    created, exchange = await _create(server)
    expect(bool(created.session_id), "a session_id that is not empty", "an empty one", exchange)


@AREA.must(
    2,
    contract="CreateSessionResponse.session_id",
    remedy="Give each session an id of its own, also for two requests with the same body.",
    needs=("SES-001",),
)
async def ids_are_unique(server: Server) -> None:
    """Two sessions have different ids."""
    first, _ = await _create(server)
    second, exchange = await _create(server)
    expect(first.session_id != second.session_id, "two different ids", second.session_id, exchange)


@AREA.must(
    3,
    contract="CreateSessionRequest.user_metadata",
    remedy="Accept null as user_metadata of create_session; the field is present, and its value may be null.",
    needs=("SES-001",),
    breaks=[Breakage("0.4.1", "0.4.1", Feature.CONNECT, "raises an error when a client without metadata is created")],
)
async def metadata_may_be_null(server: Server) -> None:
    """A session can be created with null as user_metadata."""
    await _create(server, user_metadata=None)


@AREA.must(
    4,
    contract=("CreateSessionRequest.user_metadata", "CreateSessionRequest.tags"),
    remedy="Accept any tags and any user_metadata of create_session, in all languages.",
    needs=("SES-001",),
    breaks=[CANNOT_OPEN_SESSION],
)
async def metadata_may_be_any_text(server: Server) -> None:
    """A session can be created with several tags and with metadata in any language."""
    await _create(server, tags=["conformance", "größe", "日本"], user_metadata=SESSION_METADATA)


@AREA.should(
    5,
    contract="session_heartbeat 200",
    remedy="Answer session_heartbeat for an active session with status 200 and a JSON object.",
    needs=("SES-001",),
    breaks=[Breakage("0.3.0", None, Feature.CONNECT, "logs a warning for each heartbeat after two minutes")],
)
async def heartbeat_is_accepted(server: Server) -> None:
    """A heartbeat of an active session is answered with 200."""
    created, _ = await _create(server)
    for _ in range(2):
        await server.client.call(_heartbeat(created.session_id))


@AREA.should(
    6,
    contract=("session_heartbeat 404", "session_heartbeat 410"),
    remedy="Answer session_heartbeat for an unknown or expired session with 404 or 410.",
    needs=("SES-005",),
)
async def unknown_heartbeat_is_rejected(server: Server) -> None:
    """A heartbeat of an unknown session is answered with 404 or 410."""
    exchange = await server.client.send_call(_heartbeat(UNKNOWN_SESSION))
    expect(exchange.status in (404, 410), "404 or 410", exchange.describe(), exchange)


@AREA.should(
    7,
    contract="create_model 404",
    remedy="Reject create_model for a session that does not exist, with 404.",
    needs=("SES-001",),
)
async def unknown_session_gets_no_model(server: Server) -> None:
    """A model of an unknown session is rejected, at once or as the failure of its future."""
    body = models.CreateModelRequest(
        session_id=UNKNOWN_SESSION,
        model_seq_id=0,
        base_model=await server.base_model(),
        lora_config=models.LoraConfig(rank=4),
    )
    result, exchange = await server.futures.attempt(create_model(body=body))
    if result is not None:
        server.adopt(result.value.model_id)
        raise Violation("a rejection of the unknown session", "a model", exchange)


@AREA.should(
    8,
    contract=("get_session 200", "GetSessionResponse.sampler_ids"),
    remedy="List the sampling sessions of a session in sampler_ids of get_session.",
    operations=("get_session",),
    needs=("SES-001",),
)
async def session_lists_samplers(server: Server) -> None:
    """A session lists the sampling sessions that were opened in it."""
    created, _ = await _create(server)
    sampler = await server.new_sampler(session_id=created.session_id)
    found, exchange = await server.client.call(get_session(created.session_id))
    expect(sampler.id in found.sampler_ids, f"sampler_ids with {sampler.id}", found.sampler_ids, exchange)


@AREA.should(
    9,
    contract=("get_session 200", "GetSessionResponse.training_run_ids"),
    remedy="List the models of a session in training_run_ids of get_session.",
    operations=("get_session",),
    needs=("SES-001",),
)
async def session_lists_models(server: Server) -> None:
    """A session lists the models that were created in it."""
    created, _ = await _create(server)
    model = await server.new_model(session_id=created.session_id)
    found, exchange = await server.client.call(get_session(created.session_id))
    expect(model.id in found.training_run_ids, f"training_run_ids with {model.id}", found.training_run_ids, exchange)


@AREA.should(
    10,
    contract="get_session 404",
    remedy="Answer get_session for an unknown session with 404.",
    operations=("get_session",),
)
async def unknown_session_is_not_found(server: Server) -> None:
    """An unknown session is not found."""
    exchange = await server.client.send_call(get_session(UNKNOWN_SESSION))
    expect(exchange.status == 404, "404", exchange.describe(), exchange)


@AREA.should(
    11,
    contract=("list_sessions 200", "ListSessionsResponse.sessions"),
    remedy="Return new sessions from list_sessions, on the first page.",
    operations=("list_sessions",),
    needs=("SES-001",),
)
async def listing_has_new_session(server: Server) -> None:
    """A listing of sessions has a new session on one of its first pages."""
    created, _ = await _create(server)
    exchange: Exchange | None = None
    for page in range(10):
        found, exchange = await server.client.call(list_sessions(limit=100, offset=100 * page))
        if created.session_id in found.sessions:
            return
        if not found.sessions:
            break
    raise Violation(f"sessions with {created.session_id}", "a listing without it", exchange)


@AREA.should(
    12,
    contract="list_sessions 200",
    remedy="Return at most limit sessions from list_sessions, and skip the first offset of them.",
    operations=("list_sessions",),
    needs=("SES-011",),
)
async def listing_has_pages(server: Server) -> None:
    """A listing of sessions has at most as many entries as the limit, and skips the offset."""
    for _ in range(2):
        await _create(server)
    first, exchange = await server.client.call(list_sessions(limit=1, offset=0))
    expect(len(first.sessions) == 1, "one session", f"{len(first.sessions)} sessions", exchange)
    second, exchange = await server.client.call(list_sessions(limit=1, offset=1))
    expect(second.sessions != first.sessions, "another session after an offset of 1", second.sessions, exchange)


@AREA.should(
    13,
    since="0.30.4",
    contract="GetSessionResponse.user_metadata",
    remedy="Return the user_metadata of create_session from get_session.",
    operations=("get_session",),
    needs=("SES-004",),
)
async def session_keeps_metadata(server: Server) -> None:
    """A session keeps the metadata of its creation."""
    created, _ = await _create(server, user_metadata=SESSION_METADATA)
    found, exchange = await server.client.call(get_session(created.session_id))
    expect(found.user_metadata == SESSION_METADATA, str(SESSION_METADATA), found.user_metadata, exchange)


@AREA.should(
    14,
    since="0.34.0",
    contract=("CreateSessionRequest.display_name", "GetSessionResponse.display_name"),
    remedy="Store the display_name of create_session, and return it from get_session.",
    operations=("get_session",),
    needs=("SES-001",),
)
async def session_keeps_name(server: Server) -> None:
    """A session keeps its display_name."""
    created, _ = await _create(server, display_name=NAME)
    found, exchange = await server.client.call(get_session(created.session_id))
    expect(found.display_name == NAME, NAME, found.display_name, exchange)


@AREA.should(
    15,
    contract=("finish_session 200", "finish_session 204", "SessionFinishReason.type"),
    remedy="Answer finish_session with 200 or 204 for each of the types success, errored and interrupted.",
    operations=("finish_session",),
    needs=("SES-001",),
    breaks=[Breakage("0.38.0", None, Feature.CONNECT, "raises an error when the client is closed")],
)
async def session_can_be_finished(server: Server) -> None:
    """A session can be finished with each type of reason, with and without a detail."""
    for kind, detail in (("success", None), ("errored", "ValueError: wrong"), ("interrupted", None)):
        created, _ = await _create(server)
        exchange = await _finish(server, created.session_id, kind, detail)
        expect(exchange.is_success, f"200 or 204 for {kind}", exchange.describe(), exchange)


@AREA.should(
    16,
    contract="finish_session",
    remedy="Answer a repeated finish_session, and a heartbeat after it, without a 5xx; clients resend both.",
    operations=("finish_session",),
    needs=("SES-015",),
)
async def finish_can_be_repeated(server: Server) -> None:
    """A second finish of a session, and a heartbeat after it, are answered without a server error."""
    created, _ = await _create(server)
    await _finish(server, created.session_id)
    again = await _finish(server, created.session_id)
    expect(200 <= again.status < 500, "a status below 500", again.describe(), again)
    late = await server.client.send_call(_heartbeat(created.session_id))
    expect(200 <= late.status < 500, "a status below 500", late.describe(), late)


@AREA.should(
    17,
    contract="finish_session 404",
    remedy="Answer finish_session for an unknown session with 404.",
    operations=("finish_session",),
)
async def unknown_session_is_not_finished(server: Server) -> None:
    """An unknown session cannot be finished."""
    exchange = await _finish(server, UNKNOWN_SESSION)
    expect(exchange.is_client_error, "404", exchange.describe(), exchange)


async def _create(server: Server, **fields: Any) -> tuple[models.CreateSessionResponse, Exchange]:
    """Create a session that is finished at the end of the run."""
    settings: dict[str, Any] = {"tags": ["conformance"], "user_metadata": {}, "sdk_version": server.wire, **fields}
    created, exchange = await server.client.call(create_session(body=models.CreateSessionRequest(**settings)))
    server.sessions.adopt(created.session_id)
    return created, exchange


async def _finish(server: Server, session_id: str, kind: Any = "success", detail: str | None = None) -> Exchange:
    body = models.FinishSessionRequest(reason=models.SessionFinishReason(type=kind), detail=detail)
    return await server.client.send_call(finish_session(session_id, body=body))


def _heartbeat(session_id: str) -> Any:
    return session_heartbeat(body=models.SessionHeartbeatRequest(session_id=session_id))
