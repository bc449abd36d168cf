# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family optimizers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    at_least,
    at_most,
    field_validator,
)


@define
class AdamOptimizerConfig(ForbidExtra):
    """Configuration of AdamW as the optimizer of a model.

    Wire: 0.29.1 and later.
    """

    type: Literal["adamw"] = field(default="adamw", validator=field_validator())
    """Tag of the optimizer."""


@define
class AdamParams(ForbidExtra):
    """Settings of one AdamW step.

    Wire: 0.1.0 and later.

    Example:
        >>> params = tinker.AdamParams(learning_rate=0.001, weight_decay=0.01)
        >>> params.beta2
        0.95
    """

    learning_rate: float = field(default=0.0001, validator=field_validator())
    """Step size."""
    beta1: float = field(default=0.9, validator=field_validator())
    """Decay per step of the mean of gradients."""
    beta2: float = field(default=0.95, validator=field_validator())
    """Decay per step of the mean of squared gradients."""
    eps: float = field(default=1e-12, validator=field_validator())
    """Term added to the divisor against division by zero."""
    weight_decay: float = field(default=0.0, validator=field_validator())
    """Decay of the weights, times the step size, decoupled from the gradient. (wire 0.7.0 and later)"""
    grad_clip_norm: float = field(default=0.0, validator=field_validator())
    """Maximum global norm of the gradient; 0 for no limit. (wire 0.7.0 and later)"""


@define
class DimuonOptimizerConfig(ForbidExtra):
    """Configuration of Dimuon as the optimizer of a model.

    Wire: 0.29.1 and later.
    """

    type: Literal["dimuon"] = field(default="dimuon", validator=field_validator())
    """Tag of the optimizer."""
    version: Literal[1] = field(default=1, validator=field_validator())
    """Version of the optimizer."""


@define
class DimuonParams(ForbidExtra):
    """Settings of one Dimuon step.

    Wire: 0.29.1 and later.
    """

    learning_rate: float = field(validator=field_validator(at_least(0.0)))
    """Step size."""
    type: Literal["dimuon"] = field(default="dimuon", validator=field_validator())
    """Tag of the optimizer."""
    grad_clip_norm: float = field(default=0.0, validator=field_validator())
    """Maximum global norm of the gradient; 0 for no limit."""
    beta1: float = field(
        default=0.9,
        validator=field_validator(at_least(0.0), at_most(1.0, exclusive=True)),
    )
    """Decay per step of the mean of gradients."""
    damping: float = field(
        default=0.0001,
        validator=field_validator(at_least(0.0, exclusive=True)),
        metadata={"until": "0.30.4"},
    )
    """Damping of the step. (wire to before 0.30.4)"""
    rank_lr_correction_exponent: float = field(default=0.175, validator=field_validator(), metadata={"until": "0.30.4"})
    """Exponent of the adapter rank in the correction of the step size. (wire to before 0.30.4)"""


@define
class OptimParamsBase(AllowExtra):
    """Settings of one step of any optimizer.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimParams: TypeAlias = AdamParams | DimuonParams | OptimParamsBase
"""
Settings of one step of any optimizer.

Wire: 0.29.1 and later.
"""


@define
class OptimizerConfigBase(AllowExtra):
    """Configuration of any optimizer of a model, with any settings.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimizerConfig: TypeAlias = AdamOptimizerConfig | DimuonOptimizerConfig | OptimizerConfigBase
"""
Optimizer of a model; any optimizer may be named.

Wire: 0.29.1 and later.
"""


OtherOptimParams: TypeAlias = DimuonParams | OptimParamsBase
"""
Settings of one step of an optimizer other than AdamW.

Wire: 0.29.1 and later.
"""
