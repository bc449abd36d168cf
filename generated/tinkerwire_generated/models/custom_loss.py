# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family custom_loss."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)


@define
class CreateCustomLossRequest(ForbidExtra):
    """Request to upload a loss for the server to compute.

    Wire: 0.36.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the loss belongs to."""
    custom_loss_seq_id: int = field(validator=field_validator())
    """Index among the session's custom losses, from 0."""
    name: str = field(validator=field_validator())
    """Name of the loss."""
    inputs: list[CustomLossInput] = field(validator=field_validator())
    """Inputs of the loss, at most 16; the first is logprobs."""
    graph: CustomLossGraph = field(validator=field_validator())
    """Computation of the loss."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss", validator=field_validator())
    """Tag of the request."""


@define
class CreateCustomLossResponse(AllowExtra):
    """Result of create_custom_loss.

    Wire: 0.36.0 and later.
    """

    loss_id: str
    """Identifier for loss_id in the loss_fn_config of loss custom."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss")
    """Tag of the result."""


@define
class CustomLossGraph(ForbidExtra):
    """A computation, as steps in order.

    Wire: 0.36.0 and later.
    """

    nodes: list[CustomLossNode] = field(validator=field_validator())
    """The steps."""
    format: Literal[1] = field(default=1, validator=field_validator())
    """Version of the format."""


@define
class CustomLossInput(ForbidExtra):
    """An input of a custom loss.

    Wire: 0.36.0 and later.
    """

    name: str = field(validator=field_validator())
    """Name of the input."""
    rank: CustomLossInputRank = field(validator=field_validator())
    """Number of dimensions."""


CustomLossInputRank: TypeAlias = Literal[0, 1, 2]
"""
Number of dimensions of an input.

Wire: 0.36.0 and later.
"""


@define
class CustomLossNode(ForbidExtra):
    """One step of a computation.

    Wire: 0.36.0 and later.
    """

    op: CustomLossNodeOp = field(validator=field_validator())
    """Kind of the step."""
    name: str = field(validator=field_validator())
    """Name of the value."""
    target: str = field(validator=field_validator())
    """Function or attribute of the step."""
    args: list[Any] = field(factory=list, validator=field_validator())
    """Positional values; references, tuples, slices and the like are objects with one key."""
    kwargs: dict[str, Any] = field(factory=dict, validator=field_validator())
    """Values by name."""


CustomLossNodeOp: TypeAlias = Literal[
    "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"
]
"""
Kind of a step, as torch.fx names it.

Wire: 0.36.0 and later.
"""
