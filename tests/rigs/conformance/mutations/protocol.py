"""Mutations of HTTP: headers, encodings, idempotency keys and errors."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse

from . import patches
from .mutation import Group

GROUP = Group("Protocol")
CREATE = "create_session"
ZSTD = {"proto_compress_fwdbwd": True}
MEGABYTE = 2**20


def _header(name: str, part: str = "") -> patches.When:
    return lambda request, _: name in request.headers and part in request.headers[name]


def _is_invalid(_: WireRequest, response: WireResponse) -> bool:
    return response.status == 422


def _resend_as_new(pattern: str, number: str) -> None:
    numbers = itertools.count(100_000)

    def change(request: WireRequest) -> WireRequest:
        body = patches.read(request.content)
        if not isinstance(body, dict):
            return request
        if number in body:
            body[number] = next(numbers)
        headers = {**request.headers, "x-idempotency-key": str(next(numbers))}
        return attrs.evolve(request, content=json.dumps(body).encode(), headers=headers)

    patches.change_request(pattern, change)


@GROUP.mutation("PRO-001")
def sdk_headers_rejected() -> None:
    """A request with the headers of the official SDK is rejected."""
    patches.respond(CREATE, 400, when=_header("x-stainless-os"))


@GROUP.mutation("PRO-002")
def unknown_path_crashes() -> None:
    """An unknown path is answered with 500."""
    patches.respond("no-such.*", 500)


@GROUP.mutation("PRO-003")
def wrong_method_crashes() -> None:
    """A GET of create_session is answered with 500."""
    patches.respond(CREATE, 500, when=lambda request, _: request.method == "GET")


@GROUP.mutation("PRO-004")
def head_crashes() -> None:
    """HEAD is answered with 500."""
    patches.respond("healthz", 500, when=lambda request, _: request.method == "HEAD")


@GROUP.mutation("PRO-005", over_http=True)
def connections_closed() -> None:
    """Each response closes its connection."""
    patches.change_header("connection", "close")


@GROUP.mutation("PRO-006", over_http=True)
def chunked_bodies_rejected() -> None:
    """A body that is sent in chunks is rejected."""
    patches.respond(CREATE, 411, when=_header("transfer-encoding"))


@GROUP.mutation("PRO-007", over_http=True)
def always_compressed() -> None:
    """The capabilities are compressed, whatever the request accepts."""

    def change(_: WireRequest, response: WireResponse) -> WireResponse:
        headers = {**response.headers, "content-encoding": "gzip"}
        return attrs.evolve(response, headers=headers, content=gzip.compress(response.content))

    patches.change_response("get_server_capabilities", change)


@GROUP.mutation("BAD-008", "BAD-009", "BAT-008", "PRO-008")
def resent_sample_is_new() -> None:
    """A sample that is resent is another sample."""
    _resend_as_new("asample", "seq_id")


@GROUP.mutation("PRO-009")
def resent_session_is_new() -> None:
    """A create_session that is resent creates another session."""
    _resend_as_new(CREATE, "")


@GROUP.mutation("PRO-010")
def key_required() -> None:
    """create_session rejects a request without an idempotency key."""
    patches.respond(
        CREATE,
        400,
        when=lambda request, response: response.status == 200 and "x-idempotency-key" not in request.headers,
    )


@GROUP.mutation("PRO-011")
def keys_of_all_operations() -> None:
    """An idempotency key of create_session gives its response to heartbeats."""
    kept: dict[Any, WireResponse] = {}

    def change(request: WireRequest, response: WireResponse) -> WireResponse:
        key = request.headers.get("x-idempotency-key")
        if patches.operation_of(request) == CREATE:
            kept[key] = response
        return kept.get(key, response)

    patches.change_response(f"{CREATE}|session_heartbeat", change)


@GROUP.mutation("BAD-018", "PRO-020", wire="0.16.1")
def chunk_type_required() -> None:
    """Asample rejects a chunk of tokens without its type."""
    patches.respond("asample", 422, when=lambda request, _: b"encoded_text" not in (request.content or b""))


@GROUP.mutation("BAD-018", "BAD-021", "PRO-021")
def request_type_required() -> None:
    """Asample rejects a request without its type."""
    patches.respond("asample", 422, when=lambda request, _: b'"type":"sample"' not in (request.content or b""))


@GROUP.mutation("PRO-022")
def null_rejected() -> None:
    """Asample rejects null as stop."""
    patches.respond("asample", 422, when=patches.contains(b'"stop":null'))


@GROUP.mutation("BAD-018", "PRO-023")
def num_samples_required() -> None:
    """Asample rejects a request without num_samples."""
    patches.respond("asample", 422, when=lambda request, _: b"num_samples" not in (request.content or b""))


@GROUP.mutation("PRO-024")
def temperature_default_changed() -> None:
    """The default temperature is 0.01."""

    def change(body: dict[str, Any]) -> None:
        if isinstance(body.get("sampling_params"), dict):
            body["sampling_params"].setdefault("temperature", 0.01)

    patches.change_request_body("asample", change)


@GROUP.mutation("PRO-025")
def escapes_rejected() -> None:
    """A body with escaped characters is rejected."""
    patches.respond(CREATE, 400, when=patches.contains(b"\\u65e5"))


@GROUP.mutation("PRO-026")
def bodies_of_a_megabyte() -> None:
    """A forward_backward of more than a megabyte is rejected with 413."""
    patches.respond("forward_backward", 413, when=lambda request, _: len(request.content or b"") > MEGABYTE)


@GROUP.mutation("PRO-027")
def unknown_fields_ignored() -> None:
    """create_session ignores an unknown field."""
    patches.change_request_body(CREATE, lambda body: body.pop("no_such_field", None), is_lenient=True)


@GROUP.mutation("PRO-041")
def charset_rejected() -> None:
    """A media type with a charset is rejected."""
    patches.respond(CREATE, 415, when=_header("content-type", "charset"))


@GROUP.mutation("PRO-042")
def text_crashes() -> None:
    """A body of the media type text/plain is answered with 500."""
    patches.respond(CREATE, 500, when=_header("content-type", "text/plain"))


@GROUP.mutation("BAD-017", "BAD-021", "PRO-045", "TRN-002")
def steps_are_protobuf() -> None:
    """The results of optim_step have the media type of protobuf."""
    patches.change_header(
        "content-type",
        PROTOBUF,
        "retrieve_future",
        when=lambda _, response: response.content[:1] == b"{" and b"metrics" in response.content,
    )


@GROUP.mutation("LOS-042", "PRO-046")
def invalid_protobuf_crashes() -> None:
    """A batch that is not a valid protobuf message is answered with 500."""
    patches.respond("forward_backward", 500, when=lambda _, response: response.status in (400, 422))


@GROUP.mutation("FUT-001", "PRO-047", "TRN-001", "TRN-003", client_config=ZSTD)
def zstd_rejected() -> None:
    """A compressed batch is rejected."""
    patches.respond("forward_backward", 415, when=_header("content-encoding", "zstd"))


@GROUP.mutation("PRO-048", client_config=ZSTD)
def invalid_zstd_crashes() -> None:
    """A body that is not zstd, despite its header, is answered with 500."""
    patches.respond("forward_backward", 500, when=patches.contains(b"not zstd"))


@GROUP.mutation("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "CKP-016", "PRO-060")
def errors_are_text() -> None:
    """Errors about invalid requests have the media type text/plain."""
    patches.change_header("content-type", "text/plain", when=_is_invalid)


@GROUP.mutation(
    *("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "CKP-016", "PRO-061", "PRO-062"),
)
def errors_name_nothing() -> None:
    """Errors about invalid requests do not name the field."""
    patches.respond(".*", 422, b'{"detail":"invalid request"}', when=_is_invalid)


@GROUP.mutation("PRO-061", "PRO-062", "PRO-063")
def invalid_is_403() -> None:
    """A request that does not fit the contract is answered with 403."""
    patches.respond(".*", 403, when=_is_invalid)


@GROUP.mutation("PRO-064", "PRO-067")
def malformed_json_crashes() -> None:
    """A body that is not JSON is answered with 500."""
    patches.respond(
        CREATE,
        500,
        when=lambda request, response: (
            response.status == 422 and patches.read(request.content) is None and request.content != b"null"
        ),
    )


@GROUP.mutation("PRO-065")
def null_body_crashes() -> None:
    """A body that is null is answered with 500."""
    patches.respond(".*", 500, when=lambda request, response: response.status == 422 and request.content == b"null")


@GROUP.mutation("PRO-066", "TRN-043")
def unknown_is_409() -> None:
    """Unknown models are answered with 409."""
    patches.respond("get_info|optim_step", 409, when=lambda _, response: response.status == 404)


@GROUP.mutation("PRO-067")
def deep_json_crashes() -> None:
    """A body that is nested deeply is answered with 500."""
    patches.respond(CREATE, 500, when=lambda request, _: len(request.content or b"") > 30_000)


@GROUP.mutation("SRV-002")
def media_type_without_json() -> None:
    """The capabilities have the media type text/json."""
    patches.change_header("content-type", JSON.replace("application", "text"), "get_server_capabilities")


@GROUP.mutation("PRO-068")
def nan_crashes() -> None:
    """A body with NaN is answered with 500."""
    patches.respond(CREATE, 500, when=patches.contains(b"[NaN]"))
