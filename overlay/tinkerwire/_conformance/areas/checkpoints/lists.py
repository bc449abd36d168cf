"""Requirements on lists of checkpoints: their entries and pages."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from tinkerwire_generated.api.runs import list_user_checkpoints

from ...._checkpoints.paths import parse_checkpoint_address
from ...checks.breakages import cannot_manage
from ...checks.checkpoint_lists import (
    find_checkpoint,
    find_in_pages,
    has_zone,
    list_run,
    sampler_path,
    training_path,
    with_zone,
)
from ...checks.rejection import require_rejected_call
from ...subject.server import Server
from ...violation import Violation, expect
from .area import AREA

MAX_CLOCK_ERROR = timedelta(hours=1)


@AREA.should(
    1,
    contract=("list_checkpoints 200", "Checkpoint.tinker_path", "Checkpoint.checkpoint_type"),
    remedy="List each checkpoint of the run with the path of its save and the type training.",
    needs=("WGT-005",),
    breaks=[cannot_manage("does not list checkpoints that exist")],
)
async def list_has_training_checkpoint(server: Server) -> None:
    """The list of a run has each checkpoint for training, with its path and type."""
    await _expect_listed(server, await training_path(server), "training")


@AREA.should(
    2,
    contract=("list_checkpoints 200", "Checkpoint.checkpoint_type"),
    remedy="List each checkpoint of save_weights_for_sampler with its path and the type sampler.",
    needs=("WGT-006",),
    breaks=[cannot_manage("does not list checkpoints that exist")],
)
async def list_has_sampler_checkpoint(server: Server) -> None:
    """The list of a run has each checkpoint for sampling, with its path and type."""
    await _expect_listed(server, await sampler_path(server), "sampler")


@AREA.should(
    22,
    contract=("list_checkpoints 200", "Checkpoint.checkpoint_id", "ParsedCheckpointTinkerPath"),
    remedy="Set checkpoint_id to weights/NAME or sampler_weights/NAME, by which clients manage checkpoints.",
    needs=("CKP-001",),
    breaks=[cannot_manage("deletes, publishes and downloads under another id than the listed one")],
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
    breaks=[cannot_manage("gets a time without zone, which cannot be compared with others")],
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
    breaks=[cannot_manage("does not list checkpoints that exist", "0.4.0")],
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
    breaks=[cannot_manage("lists checkpoints twice, or not all of them", "0.4.0")],
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
    breaks=[cannot_manage("does not show the metadata of checkpoints", "0.27.2")],
)
async def list_has_metadata(server: Server) -> None:
    """The list has the user_metadata of each save."""
    model = await server.model()
    metadata = {"step": "7"}
    path = await model.save_weights(server.new_name(), user_metadata=metadata)
    entry, exchange = await find_checkpoint(server, path)
    expect(entry.user_metadata == metadata, str(metadata), entry.user_metadata, exchange)


async def _expect_listed(server: Server, path: str, kind: str) -> None:
    entry, exchange = await find_checkpoint(server, path)
    expect(str(entry.checkpoint_type) == kind, f"the type {kind}", entry.checkpoint_type, exchange)
