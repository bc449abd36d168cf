# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family service."""

from __future__ import annotations

from typing import Literal

from attrs import field
from tinkerwire_base.model import AllowExtra, define


@define
class GetServerCapabilitiesResponse(AllowExtra):
    """The base models of the server.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except supported_models.
    """

    _essential = frozenset({"supported_models"})

    supported_models: list[SupportedModel]
    """One entry per base model."""


@define
class HealthResponse(AllowExtra):
    """Response of a server that is up.

    Wire: 0.1.0 and later.
    """

    status: Literal["ok"] = field(default="ok")
    """Always "ok"."""


@define
class SupportedModel(AllowExtra):
    """A base model of the server; servers add keys to it freely.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_name.
    """

    _essential = frozenset({"model_name"})

    model_name: str | None = field(default=None)
    """Name for requests that create models or sample."""
    max_context_length: int | None = field(default=None)
    """Maximum number of tokens of prompt and sample together. (wire 0.18.2 and later)"""
    trainable: bool | None = field(default=None)
    """True if create_model accepts the model. (wire 0.26.2 and later)"""
    sampleable: bool | None = field(default=None)
    """True if create_sampling_session accepts the model. (wire 0.26.2 and later)"""
