"""Requests that make the server build something, recorded until the caller has what was built."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.conversion.converter import parse_json

SHOWN_KEYS = ("model_id", "base_model", "path", "model_path", "source_path", "name", "sampling_session_id", "loss_id")
"""Keys of requests and responses that tell people what is built; the others are settings or secrets."""
API_PREFIX = "/api/v1/"


@attrs.define(eq=False, slots=False, kw_only=True)
class BuildRequest:
    """One request that makes the server build something, such as a model or a checkpoint."""

    request: WireRequest
    response: asyncio.Task[WireResponse] | None = None
    """The attempt under way, which goes on without its caller; None between attempts."""
    request_id: str = ""
    """The future that the server gave; empty while there is none."""
    model_id: str = ""
    """The model that was created; empty while it is not known."""
    may_be_accepted: bool = False
    """True if the server may have accepted an attempt whose response was lost."""
    result: dict[str, Any] = attrs.field(factory=dict)
    """The part of the response that describes the result."""

    @property
    def kind(self) -> str:
        """The name of the operation as polls give it, such as ``CreateModel``."""
        return "".join(part.title() for part in self.request.path.removeprefix(API_PREFIX).split("_"))

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        value = parse_json(self.request.content or b"{}")
        return value if isinstance(value, dict) else {}

    @property
    def creates_model(self) -> bool:
        """True if the request creates a model; a load into an existing model does not."""
        return self.kind == "CreateModel" or (self.kind == "LoadWeights" and not self.body.get("model_id"))

    @property
    def details(self) -> dict[str, str]:
        """The known facts about the thing that is built, for messages."""
        known = {**self.body, **self.result, **({"model_id": self.model_id} if self.model_id else {})}
        return {key: str(known[key]) for key in SHOWN_KEYS if known.get(key)}
