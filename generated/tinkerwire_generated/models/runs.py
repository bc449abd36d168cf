# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family runs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)


@define
class Checkpoint(AllowExtra):
    """Saved weights.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except checkpoint_id and tinker_path.
    """

    _essential = frozenset({"checkpoint_id", "tinker_path"})

    checkpoint_id: str
    """The checkpoint within its run, for example weights/0001."""
    checkpoint_type: CheckpointType | str
    """Purpose of the checkpoint; clients pass on unknown values."""
    time: datetime
    """Time of saving."""
    tinker_path: str
    """The tinker:// path of the weights."""
    size_bytes: int | None = field(default=None)
    """Size in bytes. (wire 0.4.0 and later)"""
    public: bool = field(default=False)
    """True if everybody may load the checkpoint. (wire 0.4.0 and later)"""
    expires_at: datetime | None = field(default=None)
    """Time of deletion; null for never. (wire 0.9.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values from the save request. (wire 0.26.2 and later)"""


@define
class CheckpointArchiveUrlResponse(AllowExtra):
    """URL of a checkpoint as one archive.

    Wire: 0.2.0 to before 0.36.0.

    A field that the server leaves out or garbles is None, except url.
    """

    _essential = frozenset({"url"})

    url: str
    """The URL."""
    expires: datetime
    """Expiry time of the URL."""


CheckpointType: TypeAlias = Literal["training", "sampler", "external"]
"""
Purpose of a checkpoint: to resume training, to sample, or to download.

Wire: 0.1.0 and later.
"""


@define
class CheckpointsListResponse(AllowExtra):
    """One page of checkpoints.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except checkpoints.
    """

    _essential = frozenset({"checkpoints"})

    checkpoints: list[Checkpoint]
    """The checkpoints."""
    cursor: Cursor | None = field(default=None)
    """Position of the page; null if the page has all entries. (wire 0.4.0 and later)"""


@define
class Cursor(AllowExtra):
    """Position of a page in the list.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    offset: int
    """Number of entries before the page."""
    limit: int
    """Maximum number of entries on the page."""
    total_count: int
    """Number of entries of the list."""


@define
class SetCheckpointTtlRequest(ForbidExtra):
    """Request to set or remove the time after which a checkpoint is deleted.

    Wire: 0.13.1 and later.
    """

    ttl_seconds: int | None = field(validator=field_validator())
    """Seconds from now until deletion, 1 hour to 10 years; null, which clients send, keeps the checkpoint."""


@define
class TrainingRun(AllowExtra):
    """The history of one model under training.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except training_run_id.
    """

    _essential = frozenset({"training_run_id"})

    training_run_id: str
    """The run, which has the identifier of its model."""
    base_model: str
    """Name of the base model."""
    model_owner: str
    """Owner."""
    is_lora: bool
    """True if an adapter is trained."""
    last_request_time: datetime
    """Time of the last request."""
    corrupted: bool = field(default=False)
    """True if an error has made the run unusable."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    last_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to resume from."""
    last_sampler_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to sample from."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values from create_model. (wire 0.2.0 and later)"""


@define
class TrainingRunIdsResponse(AllowExtra):
    """Identifiers of training runs; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    training_run_ids: list[str]
    """The training runs."""
    has_more: bool
    """True if there are more runs."""


@define
class TrainingRunsResponse(AllowExtra):
    """One page of training runs.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except training_runs.
    """

    _essential = frozenset({"training_runs"})

    training_runs: list[TrainingRun]
    """The runs."""
    cursor: Cursor
    """Position of the page."""
