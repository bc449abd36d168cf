# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family training."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_base.mixins import (
    LossConfigMixin,
)
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

from .inputs import Datum, TensorData
from .optimizers import AdamOptimizerConfig, AdamParams, OptimizerConfig, OtherOptimParams


@define
class CreateModelRequest(ForbidExtra):
    """Request to create a model to train.

    Wire: 0.1.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the model belongs to. (wire 0.3.0 and later)"""
    model_seq_id: int = field(validator=field_validator())
    """Index among the session's models, from 0. (wire 0.3.0 and later)"""
    base_model: str = field(validator=field_validator())
    """Name of the base model."""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run. (wire 0.2.0 and later)"""
    lora_config: LoraConfig | None = field(default=None, validator=field_validator())
    """The adapter; null trains the whole model."""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig, validator=field_validator())
    """Optimizer of the model. (wire 0.29.1 and later)"""
    type: Literal["create_model"] = field(default="create_model", validator=field_validator())
    """Tag of the request."""


@define
class CreateModelResponse(AllowExtra):
    """Result of create_model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID
    """The new model."""
    type: Literal["create_model"] = field(default="create_model")
    """Tag of the result."""


@define(kw_only=False)
class ForwardBackwardInput(LossConfigMixin, DataclassMethods, ForbidExtra):
    """Datums and the loss to compute on them.

    Wire: 0.1.0 and later.
    """

    data: list[Datum] = field(validator=field_validator())
    """The datums."""
    loss_fn: LossFnType = field(validator=field_validator())
    """The loss."""
    loss_fn_config: dict[str, LossConfigValue] | None = field(default=None)
    """Settings of the loss, by name; null for its defaults. (wire 0.3.0 and later)"""


@define(kw_only=False)
class ForwardBackwardOutput(DataclassMethods, AllowExtra):
    """Result of forward and forward_backward, as JSON; the loss itself is among the metrics.

    Wire: 0.1.0 to before 0.25.0.
    """

    loss_fn_output_type: str
    """Name of the kind of outputs."""
    loss_fn_outputs: list[LossFnOutput]
    """One map of tensors per datum, in the order of the datums."""
    metrics: dict[str, float]
    """Numbers over all datums, by name:reduction, for example loss:sum (nats)."""


@define(kw_only=False)
class ForwardBackwardRequest(DataclassMethods, ForbidExtra):
    """Request to compute a loss and its gradients, as JSON.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_backward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""


@define(kw_only=False)
class ForwardRequest(DataclassMethods, ForbidExtra):
    """Request to compute a loss without gradients.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""


@define
class GetInfoRequest(ForbidExtra):
    """Request to describe a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    type: Literal["get_info"] = field(default="get_info", validator=field_validator())
    """Tag of the request."""


@define
class GetInfoResponse(AllowExtra):
    """Description of a model.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_data and model_id.
    """

    _essential = frozenset({"model_data", "model_id"})

    model_data: ModelData
    """Names that belong to the model."""
    model_id: ModelID
    """The model."""
    is_lora: bool | None = field(default=None)
    """True if an adapter is trained."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    model_name: str | None = field(default=None)
    """Name of the base model."""
    type: Literal["get_info"] | None = field(default=None)
    """Tag of the response."""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """Optimizer of the model. (wire 0.29.1 and later)"""


@define
class LoraConfig(ForbidExtra):
    """Size and target layers of a LoRA adapter.

    Wire: 0.1.0 and later.
    """

    rank: int = field(validator=field_validator())
    """Inner dimension of the adapter."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of the initial weights; null draws a seed."""
    train_unembed: bool = field(default=True, validator=field_validator())
    """True if the unembedding is adapted."""
    train_mlp: bool = field(default=True, validator=field_validator())
    """True if the MLP layers are adapted."""
    train_attn: bool = field(default=True, validator=field_validator())
    """True if the attention layers are adapted."""


LossConfigValue: TypeAlias = float | str
"""
A setting of a loss.

Wire: 0.26.2 and later.
"""


LossFnType: TypeAlias = Literal[
    "cross_entropy",
    "importance_sampling",
    "ppo",
    "cispo",
    "dro",
    "gspo",
    "stable_reinforce",
    "custom",
]
"""
A loss that the server computes.

Wire: 0.1.0 and later.
"""


@define
class ModelData(AllowExtra):
    """Names that belong to a model.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_name and tokenizer_id.
    """

    _essential = frozenset({"model_name", "tokenizer_id"})

    arch: str | None = field(default=None)
    """Name of the architecture."""
    model_name: str | None = field(default=None)
    """Name of the base model."""
    tokenizer_id: str | None = field(default=None)
    """Name of the tokenizer, without the colon and the text after it. (wire 0.3.0 and later)"""


ModelID: TypeAlias = str
"""
Identifies a model under training, and its training run.

Wire: 0.1.0 and later.
"""


@define
class OptimStepRequest(ForbidExtra):
    """Request to update the weights with the accumulated gradients.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    adam_params: AdamParams | None = field(default=None, validator=field_validator())
    """Settings of an AdamW step; null if optimizer_params has other settings."""
    optimizer_params: OtherOptimParams | None = field(default=None, validator=field_validator())
    """Settings of a step of another optimizer; null if adam_params has the settings. (wire 0.29.1 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    type: Literal["optim_step"] = field(default="optim_step", validator=field_validator())
    """Tag of the request."""


@define
class OptimStepResponse(AllowExtra):
    """Result of optim_step.

    Wire: 0.1.0 and later.
    """

    metrics: dict[str, float] | None = field(default=None)
    """Numbers of the step, by name."""


LossFnOutput: TypeAlias = dict[str, TensorData]
"""
Output tensors of a loss for one datum, by name, such as logprobs (per target token).

Wire: 0.1.0 and later.
"""


@define
class UnloadModelRequest(ForbidExtra):
    """Request to unload a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    type: Literal["unload_model"] = field(default="unload_model", validator=field_validator())
    """Tag of the request."""


@define
class UnloadModelResponse(AllowExtra):
    """Result of unloading a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID
    """The unloaded model."""
    type: Literal["unload_model"] | None = field(default=None)
    """Tag of the result."""
