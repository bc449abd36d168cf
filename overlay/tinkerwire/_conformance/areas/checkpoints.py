"""Requirements on the management of checkpoints: lists, publication, lifetimes and deletion."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import (
    delete_checkpoint,
    list_user_checkpoints,
    publish_checkpoint,
    set_checkpoint_ttl,
    unpublish_checkpoint,
)
from tinkerwire_generated.api.weights import weights_info
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS, TINKER_SCHEME

from ..._checkpoints.paths import parse_checkpoint_address
from ..checks.checkpoint_lists import (
    absent_address,
    find_checkpoint,
    find_in_pages,
    has_zone,
    list_run,
    new_path,
    sampler_path,
    training_path,
    with_zone,
)
from ..checks.rejection import require_rejected_call
from ..checks.saved_weights import ABSENT_NAME
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.server import LORA_RANK, Server
from ..violation import Violation, expect

AREA = Area("CKP", "checkpoints", "Checkpoints: lists, lifetimes and deletion")
MAX_CLOCK_ERROR = timedelta(hours=1)
LIFETIME_S = 7200
"""Lifetime of checkpoints in tests, within the stated limits of 1 hour and 10 years."""


def _cannot(effect: str, oldest: str = "0.3.0", newest: str | None = None) -> Breakage:
    return Breakage(oldest, newest, Feature.MANAGE, effect)


# --- lists ------------------------------------------------------------------------------------------------------------


@AREA.should(
    1,
    contract=("list_checkpoints 200", "Checkpoint.tinker_path", "Checkpoint.checkpoint_type"),
    remedy="List each checkpoint of the run with the path of its save and the type training.",
    needs=("WGT-005",),
    breaks=[_cannot("does not list checkpoints that exist")],
)
async def list_has_training_checkpoint(server: Server) -> None:
    """The list of a run has each checkpoint for training, with its path and type."""
    await _expect_listed(server, await training_path(server), "training")


@AREA.should(
    2,
    contract=("list_checkpoints 200", "Checkpoint.checkpoint_type"),
    remedy="List each checkpoint of save_weights_for_sampler with its path and the type sampler.",
    needs=("WGT-006",),
    breaks=[_cannot("does not list checkpoints that exist")],
)
async def list_has_sampler_checkpoint(server: Server) -> None:
    """The list of a run has each checkpoint for sampling, with its path and type."""
    await _expect_listed(server, await sampler_path(server), "sampler")


@AREA.should(
    22,
    contract=("list_checkpoints 200", "Checkpoint.checkpoint_id", "ParsedCheckpointTinkerPath"),
    remedy="Set checkpoint_id to weights/NAME or sampler_weights/NAME, by which clients manage checkpoints.",
    needs=("CKP-001",),
    breaks=[_cannot("deletes, publishes and downloads under another id than the listed one")],
)
async def listed_id_is_that_of_the_path(server: Server) -> None:
    """The id of a listed checkpoint is the part of its path behind the run."""
    path = await training_path(server)
    entry, exchange = await find_checkpoint(server, path)
    identifier = parse_checkpoint_address(path).checkpoint_id
    expect(entry.checkpoint_id == identifier, f"the id {identifier}", entry.checkpoint_id, exchange)


@AREA.should(
    3,
    contract="Checkpoint.time",
    remedy="Give times with their zone, as in 2026-01-31T12:00:00Z.",
    needs=("CKP-001",),
    breaks=[_cannot("gets a time without zone, which cannot be compared with others")],
)
async def time_has_zone(server: Server) -> None:
    """The time of a checkpoint is that of its save, and has a time zone."""
    path = await training_path(server)
    entry, exchange = await find_checkpoint(server, path)
    entries = exchange.json()["checkpoints"]
    text = next(str(item.get("time")) for item in entries if item.get("tinker_path") == path)
    expect(has_zone(text), "a time with its zone", text, exchange)
    age = abs(datetime.now(timezone.utc) - with_zone(entry.time))
    expect(age < MAX_CLOCK_ERROR, "a time of the last hour", text, exchange)


@AREA.may(
    4,
    contract="Checkpoint.size_bytes",
    since="0.4.0",
    remedy="Give the size of each checkpoint in bytes.",
    needs=("CKP-001",),
)
async def size_is_positive(server: Server) -> None:
    """The list gives the size of a checkpoint in bytes."""
    entry, exchange = await find_checkpoint(server, await training_path(server))
    expect((entry.size_bytes or 0) > 0, "a size above 0", repr(entry.size_bytes), exchange)


@AREA.should(
    5,
    contract=("list_checkpoints 404", "get_training_run 404"),
    remedy="Answer the list of a run that does not exist with 404.",
    needs=("CKP-001",),
)
async def list_of_unknown_run_is_an_error(server: Server) -> None:
    """The list of a run that does not exist is answered with a 4xx."""
    await require_rejected_call(server, list_run(server, "no-such-run"))


@AREA.should(
    6,
    operations=("list_user_checkpoints",),
    contract=("list_user_checkpoints 200", "CheckpointsListResponse.checkpoints"),
    remedy="List the checkpoints of all runs of the caller.",
    needs=("WGT-005",),
    breaks=[_cannot("does not list checkpoints that exist", "0.4.0")],
)
async def user_list_has_checkpoint(server: Server) -> None:
    """The list of all checkpoints has those of a run."""
    path = await training_path(server)
    await find_in_pages(
        server,
        lambda offset: list_user_checkpoints(limit=100, offset=offset),
        lambda page: [entry.tinker_path for entry in page.checkpoints],
        path,
    )


@AREA.should(
    7,
    operations=("list_user_checkpoints",),
    contract=("list_user_checkpoints 200", "Cursor.total_count", "Cursor.limit", "Cursor.offset"),
    remedy="Apply limit and offset, and give the cursor with them and the number of all checkpoints.",
    needs=("CKP-006",),
    breaks=[_cannot("lists checkpoints twice, or not all of them", "0.4.0")],
)
async def user_list_has_pages(server: Server) -> None:
    """The list of all checkpoints has pages, which limit and offset select and the cursor describes."""
    await training_path(server)
    await sampler_path(server)
    pages = [await server.client.call(list_user_checkpoints(limit=1, offset=offset)) for offset in (0, 1)]
    for offset, (page, exchange) in enumerate(pages):
        expect(len(page.checkpoints) == 1, "one checkpoint on a page of one", len(page.checkpoints), exchange)
        cursor = page.cursor
        if cursor is None:
            raise Violation("a cursor", "null", exchange)
        expect(cursor.total_count >= 2, "at least 2 checkpoints in total", cursor.total_count, exchange)
        place = (cursor.limit, cursor.offset)
        expect(place == (1, offset), f"limit 1 and offset {offset} in the cursor", str(place), exchange)
    paths = [page.checkpoints[0].tinker_path for page, _ in pages]
    expect(paths[0] != paths[1], "another checkpoint on the second page", paths[1], pages[1][1])


@AREA.should(
    8,
    contract=("SaveWeightsRequest.user_metadata", "Checkpoint.user_metadata"),
    since="0.27.2",
    remedy="Keep user_metadata of a save, and list it with the checkpoint.",
    needs=("CKP-001",),
    breaks=[_cannot("does not show the metadata of checkpoints", "0.27.2")],
)
async def list_has_metadata(server: Server) -> None:
    """The list has the user_metadata of each save."""
    model = await server.model()
    metadata = {"step": "7"}
    path = await model.save_weights(server.new_name(), user_metadata=metadata)
    entry, exchange = await find_checkpoint(server, path)
    expect(entry.user_metadata == metadata, str(metadata), entry.user_metadata, exchange)


# --- publication, lifetime and deletion -------------------------------------------------------------------------------


@AREA.should(
    9,
    operations=("publish_checkpoint",),
    contract=("publish_checkpoint", "Checkpoint.public"),
    remedy="Mark the checkpoint as public, and show it in the list.",
    needs=("CKP-001",),
    breaks=[_cannot("cannot publish checkpoints", "0.4.0")],
)
async def publish_makes_public(server: Server) -> None:
    """publish_checkpoint makes a checkpoint public, which is private before."""
    path = await new_path(server)
    before, exchange = await find_checkpoint(server, path)
    expect(not before.public, "a private checkpoint after the save", "a public one", exchange)
    address = parse_checkpoint_address(path)
    await _manage(server, publish_checkpoint(address.training_run_id, address.checkpoint_id))
    after, exchange = await find_checkpoint(server, path)
    expect(after.public, "a public checkpoint", "a private one", exchange)


@AREA.should(
    10,
    operations=("unpublish_checkpoint", "publish_checkpoint"),
    contract=("unpublish_checkpoint", "Checkpoint.public"),
    remedy="Make the checkpoint private again.",
    needs=("CKP-009",),
    breaks=[_cannot("cannot withdraw published checkpoints", "0.4.0")],
)
async def unpublish_makes_private(server: Server) -> None:
    """unpublish_checkpoint makes a public checkpoint private."""
    path = await new_path(server)
    address = parse_checkpoint_address(path)
    await _manage(server, publish_checkpoint(address.training_run_id, address.checkpoint_id))
    await _manage(server, unpublish_checkpoint(address.training_run_id, address.checkpoint_id))
    entry, exchange = await find_checkpoint(server, path)
    expect(not entry.public, "a private checkpoint", "a public one", exchange)


@AREA.should(
    11,
    operations=("publish_checkpoint",),
    contract="publish_checkpoint 404",
    remedy="Answer publish_checkpoint of a checkpoint that does not exist with 404.",
    needs=("CKP-009",),
)
async def publish_of_unknown_is_an_error(server: Server) -> None:
    """publish_checkpoint of a checkpoint that does not exist is answered with a 4xx."""
    absent = await absent_address(server)
    await require_rejected_call(server, publish_checkpoint(absent.training_run_id, absent.checkpoint_id))


@AREA.should(
    12,
    contract=("SaveWeightsRequest.ttl_seconds", "Checkpoint.expires_at"),
    since="0.9.0",
    remedy="Set expires_at of the checkpoint to ttl_seconds after its save.",
    needs=("CKP-001",),
    breaks=[_cannot("keeps checkpoints that it asked to delete", "0.9.0")],
)
async def save_sets_lifetime(server: Server) -> None:
    """ttl_seconds of a save sets the time of deletion in the list; without it, the time is null."""
    model = await server.model()
    limited = await model.save_weights(server.new_name(), ttl_seconds=LIFETIME_S)
    await _expect_lifetime(server, limited, LIFETIME_S)
    await _expect_lifetime(server, await new_path(server), None)


@AREA.should(
    13,
    contract=("SaveWeightsForSamplerRequest.ttl_seconds", "Checkpoint.expires_at"),
    since="0.9.0",
    remedy="Set expires_at of the checkpoint to ttl_seconds after its save.",
    needs=("CKP-002",),
    breaks=[_cannot("keeps checkpoints that it asked to delete", "0.9.0")],
)
async def sampler_save_sets_lifetime(server: Server) -> None:
    """ttl_seconds of a save for sampling sets the time of deletion in the list."""
    model = await server.model()
    await _expect_lifetime(server, await model.save_for_sampler(server.new_name(), ttl_seconds=LIFETIME_S), LIFETIME_S)


@AREA.should(
    14,
    operations=("set_checkpoint_ttl",),
    contract=("set_checkpoint_ttl", "SetCheckpointTtlRequest.ttl_seconds", "Checkpoint.expires_at"),
    remedy="Set expires_at to ttl_seconds from now.",
    needs=("CKP-001",),
    breaks=[_cannot("cannot limit the life of checkpoints", "0.13.1")],
)
async def ttl_can_be_set(server: Server) -> None:
    """set_checkpoint_ttl sets the time of deletion, counted from now."""
    path = await new_path(server)
    await _set_ttl(server, path, LIFETIME_S)
    await _expect_lifetime(server, path, LIFETIME_S)


@AREA.should(
    15,
    operations=("set_checkpoint_ttl",),
    contract=("set_checkpoint_ttl", "SetCheckpointTtlRequest.ttl_seconds"),
    remedy="Never delete the checkpoint by itself if ttl_seconds is null; it is always in the body.",
    needs=("CKP-014",),
    breaks=[_cannot("loses checkpoints that it asked to keep", "0.13.1")],
)
async def ttl_can_be_removed(server: Server) -> None:
    """set_checkpoint_ttl with null removes the time of deletion."""
    path = await new_path(server)
    await _set_ttl(server, path, LIFETIME_S)
    await _set_ttl(server, path, None)
    await _expect_lifetime(server, path, None)


@AREA.should(
    16,
    operations=("set_checkpoint_ttl",),
    contract=("set_checkpoint_ttl 404", "set_checkpoint_ttl 422"),
    remedy="Answer set_checkpoint_ttl with 404 for a checkpoint that does not exist, and with 422 for a negative time.",
    needs=("CKP-014",),
)
async def wrong_ttl_is_an_error(server: Server) -> None:
    """set_checkpoint_ttl of an unknown checkpoint, or with a negative time, is answered with a 4xx."""
    absent = await absent_address(server)
    body = models.SetCheckpointTtlRequest(ttl_seconds=LIFETIME_S)
    await require_rejected_call(server, set_checkpoint_ttl(absent.training_run_id, absent.checkpoint_id, body=body))
    address = parse_checkpoint_address(await new_path(server))
    body = models.SetCheckpointTtlRequest(ttl_seconds=-LIFETIME_S)
    await require_rejected_call(server, set_checkpoint_ttl(address.training_run_id, address.checkpoint_id, body=body))


@AREA.should(
    17,
    operations=("delete_checkpoint",),
    contract="delete_checkpoint",
    remedy="Remove the checkpoint from the lists, and nothing else.",
    needs=("CKP-001",),
    breaks=[_cannot("cannot delete checkpoints, or deletes others")],
)
async def delete_removes_one(server: Server) -> None:
    """delete_checkpoint removes a checkpoint from the list, and leaves those of the same name and other kind."""
    model = await server.model()
    name = server.new_name()
    path = await model.save_weights(name)
    await model.save_for_sampler(name)
    address = parse_checkpoint_address(path)
    before = await _list_paths(server, address.training_run_id)
    exchange = await _manage(server, delete_checkpoint(address.training_run_id, address.checkpoint_id))
    after = await _list_paths(server, address.training_run_id)
    expect(path not in after, "a list without the checkpoint", "a list with it", exchange)
    lost = sorted(before - after - {path})
    expect(not lost, "a list with all other checkpoints", f"a list without {', '.join(lost)}", exchange)


@AREA.should(
    18,
    operations=("delete_checkpoint",),
    contract="delete_checkpoint 404",
    remedy="Answer delete_checkpoint of a checkpoint that does not exist with 404.",
    needs=("CKP-017",),
)
async def delete_of_unknown_is_an_error(server: Server) -> None:
    """delete_checkpoint of a checkpoint that does not exist is answered with a 4xx."""
    absent = await absent_address(server)
    await require_rejected_call(server, delete_checkpoint(absent.training_run_id, absent.checkpoint_id))


# --- description -----------------------------------------------------------------------------------------------------


@AREA.must(
    19,
    operations=("weights_info",),
    contract=("weights_info 200", "WeightsInfoResponse.base_model", "WeightsInfoResponse.lora_rank"),
    remedy="Describe the weights with the base model and the rank of the model that saved them.",
    needs=("WGT-001",),
    breaks=[Breakage("0.6.0", "0.36.0", Feature.SAVE, "cannot create a training client from saved weights")],
)
async def weights_info_describes(server: Server) -> None:
    """weights_info gives the base model and the rank of weights that were saved for training."""
    await _expect_described(server, await training_path(server))


@AREA.should(
    21,
    operations=("weights_info",),
    contract=("weights_info 200", "WeightsInfoResponse.base_model", "WeightsInfoResponse.lora_rank"),
    remedy="Describe weights for sampling as those for training, also under the path that the save returned.",
    needs=("CKP-019", "WGT-002"),
    breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error in get_weights_info_by_tinker_path")],
)
async def weights_info_describes_sampler_weights(server: Server) -> None:
    """weights_info gives the base model and the rank of weights that were saved for sampling."""
    await _expect_described(server, await sampler_path(server))


@AREA.should(
    20,
    operations=("weights_info",),
    contract="weights_info 404",
    remedy="Answer weights_info for weights that do not exist with 404.",
    needs=("CKP-019",),
)
async def weights_info_of_unknown_is_an_error(server: Server) -> None:
    """weights_info of weights that do not exist is answered with a 4xx."""
    model = await server.model()
    path = f"{TINKER_SCHEME}{model.id}/{CHECKPOINT_SEGMENTS['training']}/{ABSENT_NAME}"
    await require_rejected_call(server, weights_info(body=models.WeightsInfoRequest(tinker_path=path)))


# --- checks -----------------------------------------------------------------------------------------------------------


async def _manage(server: Server, call: Call[None]) -> Exchange:
    """Send a call whose response has no content; raise Violation unless it succeeds."""
    _, exchange = await server.client.call(call)
    return exchange


async def _list_paths(server: Server, run_id: str) -> set[str]:
    listed, _ = await server.client.call(list_run(server, run_id))
    return {entry.tinker_path for entry in listed.checkpoints}


async def _expect_listed(server: Server, path: str, kind: str) -> None:
    entry, exchange = await find_checkpoint(server, path)
    expect(str(entry.checkpoint_type) == kind, f"the type {kind}", entry.checkpoint_type, exchange)


async def _expect_described(server: Server, path: str) -> None:
    info, exchange = await server.client.call(weights_info(body=models.WeightsInfoRequest(tinker_path=path)))
    base_model = await server.base_model()
    expect(info.base_model == base_model, f"the base model {base_model}", info.base_model, exchange)
    adapter = (info.is_lora, info.lora_rank)
    expect(adapter == (True, LORA_RANK), f"an adapter of rank {LORA_RANK}", str(adapter), exchange)


async def _set_ttl(server: Server, path: str, ttl_s: int | None) -> None:
    address = parse_checkpoint_address(path)
    body = models.SetCheckpointTtlRequest(ttl_seconds=ttl_s)
    await _manage(server, set_checkpoint_ttl(address.training_run_id, address.checkpoint_id, body=body))


async def _expect_lifetime(server: Server, path: str, ttl_s: int | None) -> None:
    entry, exchange = await find_checkpoint(server, path)
    if ttl_s is None or entry.expires_at is None:
        expected = "no time of deletion" if ttl_s is None else f"a deletion after {ttl_s} s"
        expect(entry.expires_at is None and ttl_s is None, expected, repr(entry.expires_at), exchange)
        return
    lifetime = (with_zone(entry.expires_at) - with_zone(entry.time)).total_seconds()
    # The lifetime of set_checkpoint_ttl begins after the save.
    expect(abs(lifetime - ttl_s) < 600, f"a deletion {ttl_s} s after the save", f"after {lifetime:.0f} s", exchange)
