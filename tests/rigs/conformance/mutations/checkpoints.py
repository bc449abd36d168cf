"""Mutations of the lists of checkpoints and runs, and of what manages them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server.storage.checkpoints import Checkpoints
from tinkerwire_base.call import WireRequest, WireResponse

from . import patches
from .mutation import Group

GROUP = Group("Checkpoints and runs")
LIST = "(training_runs/[^/]+/)?checkpoints"
ALL_CHECKPOINTS = "checkpoints"
RUN = "training_runs/[^/]+"
RUNS = "training_runs"
OLD_WIRE = "0.24.1"
NO_CONTENT = WireResponse(status=204)


def _change_entries(change: Callable[[list[Any]], list[Any]]) -> None:
    patches.change_field(LIST, "checkpoints", change)


def _change_each(name: str, change: Callable[[Any], Any]) -> None:
    _change_entries(
        lambda entries: [{**entry, name: change(entry[name])} if name in entry else entry for entry in entries]
    )


def _do_nothing(pattern: str, method: str, content: bytes | None = None) -> None:
    """Answer requests as if they had been done."""

    async def handle(request: WireRequest, go_on: Any) -> WireResponse:
        is_meant = request.method == method and (content is None or content in (request.content or b""))
        return NO_CONTENT if is_meant and patches.matches(pattern, request) else await go_on(request)

    patches.around(handle)


def _without_zone(time: str | None) -> str | None:
    return time and time.replace("Z", "").replace("+00:00", "")


@GROUP.mutation("CKP-001", "CKP-002", "CKP-006")
def checkpoints_hidden() -> None:
    """The lists of checkpoints are empty."""
    _change_entries(lambda _: [])


@GROUP.mutation("CKP-002", "CKP-007")
def sampler_checkpoints_hidden() -> None:
    """The lists have no checkpoints for sampling."""
    _change_entries(lambda entries: [entry for entry in entries if entry["checkpoint_type"] != "sampler"])


@GROUP.mutation("CKP-022")
def checkpoint_ids_without_kind() -> None:
    """The ids of checkpoints are their names."""
    _change_each("checkpoint_id", lambda identifier: identifier.split("/")[-1])


@GROUP.mutation("CKP-003", "RUN-014")
def times_without_zone() -> None:
    """Times have no time zone."""
    _change_each("time", _without_zone)
    patches.change_field(RUN, "last_request_time", _without_zone)


@GROUP.mutation("CKP-004")
def sizes_zero() -> None:
    """The size of each checkpoint is 0."""
    _change_each("size_bytes", lambda _: 0)


@GROUP.mutation("CKP-005")
def unknown_run_has_empty_list() -> None:
    """The list of an unknown run is empty."""
    patches.respond(f"{RUN}/checkpoints", 200, b'{"checkpoints":[]}', when=lambda _, response: response.status == 404)


@GROUP.mutation("CKP-006")
def user_checkpoints_hidden() -> None:
    """The list of all checkpoints is empty."""
    patches.set_field(ALL_CHECKPOINTS, checkpoints=[])


@GROUP.mutation("CKP-007", "RUN-004", "RUN-008", "SES-012")
def offset_ignored() -> None:
    """The offset of lists is ignored."""
    patches.change_request(
        "checkpoints|training_runs|sessions",
        lambda request: attrs.evolve(
            request, query=tuple((name, "0" if name == "offset" else value) for name, value in request.query)
        ),
    )


@GROUP.mutation("CKP-008", "RUN-006", "MOD-016")
def metadata_lost() -> None:
    """Lists and descriptions have no user_metadata."""
    _change_each("user_metadata", lambda _: None)
    patches.change_field(RUN, "user_metadata", lambda _: None)


@GROUP.mutation("CKP-009")
def nothing_published() -> None:
    """publish_checkpoint changes nothing."""
    _do_nothing(".*/publish", "POST")


@GROUP.mutation("CKP-010")
def nothing_unpublished() -> None:
    """unpublish_checkpoint changes nothing."""
    _do_nothing(".*/publish", "DELETE")


@GROUP.mutation("CKP-012", "CKP-013", "WGT-011")
def ttl_of_save_ignored() -> None:
    """The ttl_seconds of a save is ignored."""
    patches.change_request_body("save_weights.*", lambda body: body.pop("ttl_seconds", None))


@GROUP.mutation("BAD-013", "BAD-014", "BAD-015", "BAD-022", "CKP-014")
def ttl_not_set() -> None:
    """set_checkpoint_ttl changes nothing."""
    _do_nothing(".*/ttl", "PUT")


@GROUP.mutation("CKP-015")
def ttl_not_removed() -> None:
    """set_checkpoint_ttl with null changes nothing."""
    _do_nothing(".*/ttl", "PUT", b"null")


@GROUP.mutation("CKP-010", "CKP-017", "SWT-008", "WGT-021")
def nothing_deleted() -> None:
    """delete_checkpoint changes nothing."""
    _do_nothing(".*/checkpoints/.+", "DELETE")


@GROUP.mutation("CKP-017")
def both_kinds_deleted() -> None:
    """delete_checkpoint deletes the checkpoint of the same name and the other kind, too."""

    def make(original: Any) -> Any:
        def delete(self: Any, key: Any) -> None:
            original(self, key)
            for other in [k for k in self._records if (k.run_id, k.name) == (key.run_id, key.name)]:
                original(self, other)

        return delete

    patches.replace(Checkpoints, "delete", make)


@GROUP.mutation("CKP-019")
def info_of_another_rank() -> None:
    """weights_info gives rank 32."""
    patches.change_field("weights_info", "lora_rank", lambda _: 32)


@GROUP.mutation("CKP-020")
def unknown_info_crashes() -> None:
    """weights_info of unknown weights is answered with 500."""
    patches.respond("weights_info", 500, when=lambda _, response: response.status == 404)


@GROUP.mutation(
    *("BAD-017", "BAD-018", "BAD-019", "BAT-010", "BAT-014", "CKP-005", "CKP-011", "CKP-016", "CKP-018"),
    *("CKP-020", "DLD-006", "DLD-008", "FUT-008", "MOD-011", "MOD-012", "PRO-002", "PRO-026", "PRO-066"),
    *("RUN-003", "RUN-010", "RUN-012", "SES-006", "SES-007", "SES-010", "SES-017", "SPL-003", "SPL-004"),
    *("SPL-007", "SPL-010", "SWT-005", "SWT-008", "TRN-042"),
)
def unknown_is_500() -> None:
    """Whatever does not exist is answered with 500."""
    patches.respond(".*", 500, when=lambda _, response: response.status == 404)


@GROUP.mutation("DLD-001", wire=OLD_WIRE)
def archive_expired() -> None:
    """The URLs of archives have expired."""
    patches.change_header("expires", "Thu, 01 Jan 2020 00:00:00 GMT", when=lambda _, response: response.status == 302)


@GROUP.mutation("DLD-002", wire=OLD_WIRE, over_http=True)
def archive_truncated() -> None:
    """The second half of each archive is missing."""

    async def handle(request: WireRequest, go_on: Any) -> WireResponse:
        response = await go_on(request)
        if request.path.startswith("/api/v1/"):
            return response
        return attrs.evolve(response, content=response.content[: len(response.content) // 2])

    patches.around(handle)


@GROUP.mutation("DLD-004")
def external_path_of_training() -> None:
    """save_weights_external ends with a path of weights for training."""
    patches.change_field("retrieve_future", "path", lambda path: path and path.replace("external_weights", "weights"))


@GROUP.mutation("DLD-006")
def urls_of_anything() -> None:
    """get_external_weights_urls gives URLs of unknown weights."""
    content = {"urls": {"a": "http://127.0.0.1/a"}, "expires": "2030-01-01T00:00:00Z"}
    patches.respond(
        ".*external_weights_urls", 200, json.dumps(content).encode(), when=lambda _, response: response.status == 404
    )


@GROUP.mutation("DLD-007")
def copy_is_its_source() -> None:
    """copy_weights returns the path of the source."""

    async def handle(request: WireRequest, go_on: Any) -> WireResponse:
        response = await go_on(request)
        if not patches.matches("copy_weights", request) or response.status != 200:
            return response
        path = json.loads(request.content)["source_path"]
        return attrs.evolve(response, content=json.dumps({"tinker_path": path}).encode())

    patches.around(handle)


@GROUP.mutation("RUN-001")
def run_without_rank() -> None:
    """get_training_run gives no rank."""
    patches.change_field(RUN, "lora_rank", lambda _: None)


@GROUP.mutation("RUN-002")
def run_without_checkpoints() -> None:
    """get_training_run gives no checkpoint for training."""
    patches.change_field(RUN, "last_checkpoint", lambda _: None)


@GROUP.mutation("RUN-004")
def runs_hidden() -> None:
    """The list of runs is empty."""
    patches.set_field(RUNS, training_runs=[])


@GROUP.mutation("RUN-005")
def runs_not_counted() -> None:
    """The cursor of the list of runs counts the runs of the page only."""
    patches.change_body(RUNS, lambda body: body["cursor"].update(total_count=len(body["training_runs"])))


@GROUP.mutation("DLD-003", wire=OLD_WIRE)
def unknown_archive_crashes() -> None:
    """An archive of a checkpoint that does not exist is answered with 500."""
    patches.respond(".*/archive", 500, when=lambda _, response: response.status == 404)


@GROUP.mutation("DLD-005")
def external_size_wrong() -> None:
    """save_weights_external gives a size that is one byte too large."""
    patches.change_field("retrieve_future", "size_bytes", lambda size: size and size + 1)


@GROUP.mutation("CKP-021")
def info_of_training_only() -> None:
    """weights_info of weights for sampling is answered with 400."""
    patches.respond("weights_info", 400, when=patches.contains(b"sampler_weights"))
