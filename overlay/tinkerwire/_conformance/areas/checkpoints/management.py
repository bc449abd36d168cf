"""Requirements on the publication, the lifetime and the deletion of checkpoints."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import (
    delete_checkpoint,
    publish_checkpoint,
    set_checkpoint_ttl,
    unpublish_checkpoint,
)

from ...._checkpoints.paths import parse_checkpoint_address
from ...checks.breakages import cannot_manage
from ...checks.checkpoint_lists import absent_address, find_checkpoint, list_run, new_path, with_zone
from ...checks.rejection import require_rejected_call
from ...subject.server import Server
from ...violation import expect
from .area import AREA

LIFETIME_S = 7200
"""Lifetime of checkpoints in tests, within the stated limits of 1 hour and 10 years."""


@AREA.should(
    9,
    operations=("publish_checkpoint",),
    contract=("publish_checkpoint", "Checkpoint.public"),
    remedy="Mark the checkpoint as public, and show it in the list.",
    needs=("CKP-001",),
    breaks=[cannot_manage("cannot publish checkpoints", "0.4.0")],
)
async def publish_makes_public(server: Server) -> None:
    """publish_checkpoint makes a checkpoint public, which is private before."""
    path = await new_path(server)
    before, exchange = await find_checkpoint(server, path)
    expect(not before.public, "a private checkpoint after the save", "a public one", exchange)
    await server.client.call(publish_checkpoint(*parse_checkpoint_address(path)))
    after, exchange = await find_checkpoint(server, path)
    expect(after.public, "a public checkpoint", "a private one", exchange)


@AREA.should(
    10,
    operations=("unpublish_checkpoint", "publish_checkpoint"),
    contract=("unpublish_checkpoint", "Checkpoint.public"),
    remedy="Make the checkpoint private again.",
    needs=("CKP-009",),
    breaks=[cannot_manage("cannot withdraw published checkpoints", "0.4.0")],
)
async def unpublish_makes_private(server: Server) -> None:
    """unpublish_checkpoint makes a public checkpoint private."""
    path = await new_path(server)
    address = parse_checkpoint_address(path)
    await server.client.call(publish_checkpoint(*address))
    await server.client.call(unpublish_checkpoint(*address))
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
    await require_rejected_call(server, publish_checkpoint(*await absent_address(server)))


@AREA.should(
    12,
    contract=("SaveWeightsRequest.ttl_seconds", "Checkpoint.expires_at"),
    since="0.9.0",
    remedy="Set expires_at of the checkpoint to ttl_seconds after its save.",
    needs=("CKP-001",),
    breaks=[cannot_manage("keeps checkpoints that it asked to delete", "0.9.0")],
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
    breaks=[cannot_manage("keeps checkpoints that it asked to delete", "0.9.0")],
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
    breaks=[cannot_manage("cannot limit the life of checkpoints", "0.13.1")],
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
    breaks=[cannot_manage("loses checkpoints that it asked to keep", "0.13.1")],
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
    existing = parse_checkpoint_address(await new_path(server))
    for address, ttl_s in ((await absent_address(server), LIFETIME_S), (existing, -LIFETIME_S)):
        body = models.SetCheckpointTtlRequest(ttl_seconds=ttl_s)
        await require_rejected_call(server, set_checkpoint_ttl(*address, body=body))


@AREA.should(
    17,
    operations=("delete_checkpoint",),
    contract="delete_checkpoint",
    remedy="Remove the checkpoint from the lists, and nothing else.",
    needs=("CKP-001",),
    breaks=[cannot_manage("cannot delete checkpoints, or deletes others")],
)
async def delete_removes_one(server: Server) -> None:
    """delete_checkpoint removes a checkpoint from the list, and leaves those of the same name and other kind."""
    model = await server.model()
    name = server.new_name()
    path = await model.save_weights(name)
    await model.save_for_sampler(name)
    address = parse_checkpoint_address(path)
    before = await _list_paths(server, address.training_run_id)
    _, exchange = await server.client.call(delete_checkpoint(*address))
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
    await require_rejected_call(server, delete_checkpoint(*await absent_address(server)))


async def _list_paths(server: Server, run_id: str) -> set[str]:
    listed, _ = await server.client.call(list_run(server, run_id))
    return {entry.tinker_path for entry in listed.checkpoints}


async def _set_ttl(server: Server, path: str, ttl_s: int | None) -> None:
    body = models.SetCheckpointTtlRequest(ttl_seconds=ttl_s)
    await server.client.call(set_checkpoint_ttl(*parse_checkpoint_address(path), body=body))


async def _expect_lifetime(server: Server, path: str, ttl_s: int | None) -> None:
    entry, exchange = await find_checkpoint(server, path)
    if ttl_s is None or entry.expires_at is None:
        expected = "no time of deletion" if ttl_s is None else f"a deletion after {ttl_s} s"
        expect(entry.expires_at is None and ttl_s is None, expected, repr(entry.expires_at), exchange)
        return
    lifetime = (with_zone(entry.expires_at) - with_zone(entry.time)).total_seconds()
    # The lifetime of set_checkpoint_ttl begins after the save.
    expect(abs(lifetime - ttl_s) < 600, f"a deletion {ttl_s} s after the save", f"after {lifetime:.0f} s", exchange)
