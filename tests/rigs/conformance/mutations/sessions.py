"""Mutations of sessions."""

from __future__ import annotations

import json

import attrs

from tinkerwire_base.call import WireRequest, WireResponse

from . import patches
from .mutation import Group

GROUP = Group("Sessions")
CREATE = "create_session"
FINISH = ".*/finish"
ONE = "sessions/[^/]+"


@GROUP.mutation("SES-001")
def no_session_id() -> None:
    """The response to create_session has no session_id."""
    patches.change_body(CREATE, lambda body: body.pop("session_id"))


@GROUP.mutation("PRO-010", "RUN-009", "SES-002", "SES-013", "SES-014")
def one_session_for_all() -> None:
    """Each create_session returns the id of the first session."""
    first: dict[str, str] = {}
    patches.change_body(CREATE, lambda body: body.update(session_id=first.setdefault("id", body["session_id"])))


@GROUP.mutation("SES-003")
def null_metadata_rejected() -> None:
    """create_session rejects null as user_metadata."""
    patches.respond(CREATE, 422, when=patches.contains(b'"user_metadata":null'))


@GROUP.mutation("SES-004", "PRO-025")
def only_ascii() -> None:
    """create_session rejects a body with other characters than ASCII."""
    patches.respond(CREATE, 400, when=lambda request, _: any(byte > 127 for byte in request.content or b""))


@GROUP.mutation("BAD-016", "BAD-021", "CON-009", "PRO-066", "SES-005", "SES-016")
def heartbeat_fails() -> None:
    """Heartbeats are answered with 500."""
    patches.respond("session_heartbeat", 500)


@GROUP.mutation("BAD-001", "BAD-002", "PRO-062", "SES-006")
def heartbeat_of_anything() -> None:
    """Heartbeats of unknown sessions succeed."""
    patches.respond("session_heartbeat", 200, b'{"type":"session_heartbeat"}', when=patches.is_error)


@GROUP.mutation("SES-007")
def model_in_any_session() -> None:
    """A model of an unknown session is created in the newest session."""
    newest: dict[str, bytes] = {}

    def remember(_: WireRequest, response: WireResponse) -> WireResponse:
        if response.status == 200:
            newest["id"] = json.loads(response.content)["session_id"].encode()
        return response

    def redirect(request: WireRequest) -> WireRequest:
        content = request.content or b""
        if b"no-such-session" not in content:
            return request
        content = content.replace(b"no-such-session", newest["id"])
        return attrs.evolve(request, content=content.replace(b'"model_seq_id":0', b'"model_seq_id":977'))

    patches.change_response(CREATE, remember)
    patches.change_request("create_model", redirect)


@GROUP.mutation("SES-008", "RUN-009")
def sampler_ids_empty() -> None:
    """A session lists no sampling sessions."""
    patches.set_field(ONE, sampler_ids=[])


@GROUP.mutation("SES-009", "RUN-009")
def training_run_ids_empty() -> None:
    """A session lists no models."""
    patches.set_field(ONE, training_run_ids=[])


@GROUP.mutation("BAD-002", "BAD-003", "RUN-010", "RUN-013", "SES-010")
def unknown_session_found() -> None:
    """An unknown session has an empty description."""
    patches.respond(ONE, 200, b'{"training_run_ids":[],"sampler_ids":[]}', when=patches.is_error)


@GROUP.mutation("SES-011", "RUN-007")
def sessions_hidden() -> None:
    """The list of sessions is empty."""
    patches.set_field("sessions", sessions=[])


@GROUP.mutation("RUN-008", "SES-012")
def limit_of_sessions_ignored() -> None:
    """The list of sessions ignores limit and offset."""
    patches.change_request("sessions", lambda request: attrs.evolve(request, query=()))


@GROUP.mutation("SES-013")
def session_metadata_dropped() -> None:
    """A session forgets its user_metadata."""
    patches.change_request_body(CREATE, lambda body: body.update(user_metadata={}))


@GROUP.mutation("SES-014")
def display_name_dropped() -> None:
    """A session forgets its display_name."""
    patches.change_request_body(CREATE, lambda body: body.pop("display_name", None))


@GROUP.mutation("SES-015")
def errored_session_not_finished() -> None:
    """A session cannot be finished as errored."""
    patches.respond(FINISH, 422, when=patches.contains(b"errored"))


@GROUP.mutation("SES-016")
def second_finish_fails() -> None:
    """The second finish of a session is answered with 500."""
    finished: set[str] = set()

    def is_second(request: WireRequest, _: WireResponse) -> bool:
        known = request.path in finished
        finished.add(request.path)
        return known

    patches.respond(FINISH, 500, when=is_second)


@GROUP.mutation("SES-017")
def finish_of_anything() -> None:
    """Unknown sessions can be finished."""
    patches.respond(FINISH, 204, b"", when=patches.is_error)
