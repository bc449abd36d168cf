"""Checkpoints in lists and descriptions: shared ones to look for, and the search for them through all pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TypeVar

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import list_checkpoints, list_model_checkpoints
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS

from ..._checkpoints.paths import CheckpointAddress, parse_checkpoint_address
from ..exchange import Exchange
from ..subject.server import LORA_RANK, MAX_PAGES, PAGE_LENGTH, Server
from ..violation import Violation, expect
from .saved_weights import ABSENT_NAME

Page = TypeVar("Page")


def list_run(server: Server, run_id: str) -> Call[models.CheckpointsListResponse]:
    """Return the call that lists the checkpoints of a run; the oldest wire versions have another path for it."""
    name = "list_checkpoints" if server.contract.has_operation("list_checkpoints") else "list_model_checkpoints"
    server.require_operation(name)
    return list_checkpoints(run_id) if name == "list_checkpoints" else list_model_checkpoints(run_id)


async def find_checkpoint(server: Server, path: str) -> tuple[models.Checkpoint, Exchange]:
    """Return the entry of a checkpoint in the list of its run; raise Violation if it is absent."""
    page, exchange = await server.client.call(list_run(server, parse_checkpoint_address(path).training_run_id))
    for entry in page.checkpoints:
        if entry.tinker_path == path:
            return entry, exchange
    listed = ", ".join(entry.tinker_path for entry in page.checkpoints) or "none"
    raise Violation(f"{path} in the list of its run", listed, exchange)


async def find_in_pages(
    server: Server, list_page: Callable[[int], Call[Page]], get_keys: Callable[[Page], Sequence[str]], key: str
) -> Exchange:
    """Return the page of a list that has an entry; raise Violation if none has it.

    Args:
        server: the server.
        list_page: returns the call for a page of 100 entries from an offset.
        get_keys: returns the identifiers of the entries of a page.
        key: identifier of the entry.
    """
    number = 0
    while True:
        page, exchange = await server.client.call(list_page(number * PAGE_LENGTH))
        keys = get_keys(page)
        if key in keys:
            return exchange
        number += 1
        if not keys or number == MAX_PAGES:
            raise Violation(f"{key} in the list", f"a list without it in {number} pages of {PAGE_LENGTH}", exchange)


async def expect_adapter(
    server: Server, described: models.WeightsInfoResponse | models.TrainingRun, exchange: Exchange
) -> None:
    """Raise Violation unless a description has the base model and the rank of the models of tests."""
    base_model = await server.base_model()
    expect(described.base_model == base_model, f"the base model {base_model}", described.base_model, exchange)
    adapter = (described.is_lora, described.lora_rank)
    expect(adapter == (True, LORA_RANK), f"an adapter of rank {LORA_RANK}", str(adapter), exchange)


async def new_path(server: Server) -> str:
    """Save a checkpoint for training, and return its path."""
    return await (await server.model()).save_weights(server.new_name())


async def training_path(server: Server) -> str:
    """Return a checkpoint for training, which tests share and do not change."""
    return await server.share("a checkpoint for training", lambda: new_path(server))


async def sampler_path(server: Server) -> str:
    """Return a checkpoint for sampling, which tests share and do not change."""

    async def save() -> str:
        return await (await server.model()).save_for_sampler(server.new_name())

    return await server.share("a checkpoint for sampling", save)


async def absent_address(server: Server, kind: str = "training") -> CheckpointAddress:
    """Return the address of a checkpoint that does not exist, in a run that does."""
    model = await server.model()
    return CheckpointAddress(model.id, f"{CHECKPOINT_SEGMENTS[kind]}/{ABSENT_NAME}")


def with_zone(time: datetime) -> datetime:
    """Return a time with a zone, by default UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def has_zone(text: str) -> bool:
    """Check whether a time on the wire has a zone; the models read times without one, too."""
    return text.endswith(("Z", "z")) or text[-6:-5] in ("+", "-")
