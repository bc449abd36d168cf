# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family weights."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.mixins import (
    CheckpointPathMixin,
    SaveSamplerWeightsMixin,
    SaveWeightsMixin,
)
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

from tinkerwire_generated.constants import (
    CHECKPOINT_SEGMENTS,
    TINKER_SCHEME,
)

from .optimizers import AdamOptimizerConfig, OptimizerConfig
from .runs import CheckpointType
from .training import ModelID


@define
class CopyWeightsRequest(ForbidExtra):
    """Request to copy another user's saved weights into a project.

    Wire: 0.26.2 and later.
    """

    source_path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that the copy belongs to."""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's models, from 0."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the copy is deleted, 1 hour to 10 years; null keeps it."""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of the owner; clients send it as a header instead."""
    destination_project_id: str | None = field(default=None, validator=field_validator())
    """Project that the copy belongs to. (wire 0.34.0 and later)"""


@define
class CopyWeightsResponse(AllowExtra):
    """The copy.

    Wire: 0.26.2 and later.
    """

    tinker_path: str
    """The tinker:// path of the weights."""


@define
class ExternalWeightsUrlsResponse(AllowExtra):
    """URLs of the files of saved weights.

    Wire: 0.28.1 and later.

    A field that the server leaves out or garbles is None, except urls.
    """

    _essential = frozenset({"urls"})

    urls: dict[str, str]
    """URL of each file, by name."""
    expires: datetime
    """Expiry time of the URLs."""


@define
class LoadWeightsRequest(ForbidExtra):
    """Request to load saved weights into a model, or into a new one named by session_id and model_seq_id.

    Wire: 0.1.0 and later.
    """

    path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""
    model_id: ModelID | None = field(default=None, validator=field_validator())
    """The model; null creates a new one."""
    optimizer: bool | None = field(default=None, validator=field_validator())
    """True if the optimizer state is loaded too. (wire 0.6.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of the owner of the weights; null for the caller's weights. (wire 0.18.2 and later)"""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that a new model belongs to. (wire 0.24.1 and later)"""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's models, from 0, for a new model. (wire 0.24.1 and later)"""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model of a new model; null for the base model of the weights. (wire 0.24.1 and later)"""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run of a new model. (wire 0.24.1 and later)"""
    optimizer_config: OptimizerConfig | None = field(default=None, validator=field_validator())
    """Optimizer of a new model; null for AdamW. (wire 0.29.1 and later)"""
    type: Literal["load_weights"] = field(default="load_weights", validator=field_validator())
    """Tag of the request."""


@define
class LoadWeightsResponse(AllowExtra):
    """Result of load_weights.

    Wire: 0.1.0 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the loaded weights."""
    model_id: str | None = field(default=None)
    """The model. (wire 0.24.1 and later)"""
    type: Literal["load_weights"] | None = field(default=None)
    """Tag of the result."""


@define
class ParsedCheckpointTinkerPath(CheckpointPathMixin, AllowExtra):
    """The parts of a tinker:// path; clients create it, and it is never sent.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    tinker_path: str
    """The whole path, for example tinker://run/weights/0001."""
    training_run_id: str
    """The training run."""
    checkpoint_type: CheckpointType
    """Purpose of the checkpoint."""
    checkpoint_id: str
    """The checkpoint within its run, for example weights/0001."""


SamplingClientKind: TypeAlias = Literal["snapshot", "inflight"]
"""
Kind of sampling client; all inflight clients of a model sample from the weights saved last for any of them.

Wire: 0.38.0 and later.
"""


@define
class SaveWeightsExternalRequest(ForbidExtra):
    """Request to save weights for download.

    Wire: 0.28.1 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str = field(validator=field_validator())
    """Name of the checkpoint."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted, 1 hour to 10 years; null keeps it."""
    type: Literal["save_weights_external"] = field(default="save_weights_external", validator=field_validator())
    """Tag of the request."""
    age_encryption_recipients: list[str] | None = field(default=None, validator=field_validator())
    """Public age keys to encrypt the files for; null for no encryption. (wire 0.33.1 and later)"""


@define
class SaveWeightsExternalResponse(AllowExtra):
    """Weights saved to download, as users see them.

    Wire: 0.28.1 and later.
    """

    path: str
    """The tinker:// path of the saved weights."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsExternalResponseInternal(AllowExtra):
    """Result of save_weights_external.

    Wire: 0.28.1 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the saved weights."""
    size_bytes: int | None = field(default=None)
    """Size in bytes."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerRequest(ForbidExtra):
    """Request to save weights to sample from, under a name or directly into a new sampling session.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; omitted if sampling_session_seq_id is set."""
    sampling_session_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's sampling sessions, from 0; opens a sampling session on these weights. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted, 1 hour to 10 years; null keeps it. (wire 0.9.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    kind: SamplingClientKind = field(default="snapshot", validator=field_validator())
    """Kind of the sampling client that is opened on the weights. (wire 0.38.0 and later)"""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsForSamplerResponse(SaveSamplerWeightsMixin, AllowExtra):
    """Saved weights to sample from, as users see them.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    path: str
    """The tinker:// path of the saved weights."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerResponseInternal(AllowExtra):
    """Result of save_weights_for_sampler, with a path or a sampling session, as requested.

    Wire: 0.3.0 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the saved weights."""
    sampling_session_id: str | None = field(default=None)
    """The sampling session that was opened."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsRequest(ForbidExtra):
    """Request to save weights and optimizer state.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; null lets the server name it."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted, 1 hour to 10 years; null keeps it. (wire 0.9.0 and later)"""
    overwrite: bool = field(default=False, validator=field_validator())
    """True if a checkpoint of this name may be replaced. (wire 0.20.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    type: Literal["save_weights"] = field(default="save_weights", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsResponse(SaveWeightsMixin, AllowExtra):
    """Result of save_weights.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    path: str
    """The tinker:// path of the saved weights."""
    type: Literal["save_weights"] | None = field(default=None)
    """Tag of the result."""


@define
class WeightsInfoRequest(ForbidExtra):
    """Request to describe the base model and adapter of saved weights.

    Wire: 0.6.0 and later.
    """

    tinker_path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""


@define
class WeightsInfoResponse(AllowExtra):
    """Base model and adapter of saved weights.

    Wire: 0.6.0 and later.

    A field that the server leaves out or garbles is None, except base_model and lora_rank and train_unembed and train_mlp and train_attn.
    """

    _essential = frozenset({"base_model", "lora_rank", "train_unembed", "train_mlp", "train_attn"})

    base_model: str
    """Name of the base model."""
    is_lora: bool
    """True if the weights belong to an adapter."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    train_unembed: bool | None = field(default=None)
    """True if the unembedding is adapted. (wire 0.8.1 and later)"""
    train_mlp: bool | None = field(default=None)
    """True if the MLP layers are adapted. (wire 0.8.1 and later)"""
    train_attn: bool | None = field(default=None)
    """True if the attention layers are adapted. (wire 0.8.1 and later)"""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """Optimizer of a model with these weights. (wire 0.29.1 and later)"""
