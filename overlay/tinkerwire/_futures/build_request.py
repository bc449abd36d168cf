"""Requests that create something on the server, recorded until the caller has it."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.conversion.json_text import parse_json

SHOWN_KEYS = ("model_id", "base_model", "path", "model_path", "source_path", "name", "sampling_session_id", "loss_id")
"""Keys of requests and responses that describe the created object; the others are settings or secrets."""
API_PREFIX = "/api/v1/"


@attrs.define(eq=False, slots=False, kw_only=True)
class BuildRequest:
    """Request that creates something on the server, such as a model or a checkpoint."""

    request: WireRequest
    response: asyncio.Task[WireResponse] | None = None
    """The attempt under way, which goes on without its caller; None between attempts."""
    request_id: str = ""
    """Id of the server's future; empty before the response."""
    model_id: str = ""
    """The model that was created; empty while it is not known."""
    may_be_accepted: bool = False
    """True if the server may have accepted an attempt whose response was lost."""
    result: dict[str, Any] = attrs.field(factory=dict)
    """The part of the response that describes the result."""

    @property
    def kind(self) -> str:
        """Return the name of the operation as in polls, such as ``CreateModel``."""
        return "".join(part.title() for part in self.request.path.removeprefix(API_PREFIX).split("_"))

    @cached_property
    def body(self) -> dict[str, Any]:
        """Return the body of the request."""
        value = parse_json(self.request.content or b"{}")
        return value if isinstance(value, dict) else {}

    @property
    def creates_model(self) -> bool:
        """Return whether the request creates a model; a load into an existing model does not."""
        return self.kind == "CreateModel" or (self.kind == "LoadWeights" and not self.body.get("model_id"))

    @property
    def details(self) -> dict[str, str]:
        """Return the known facts about the created object, for messages."""
        facts = {**self.body, **self.result, **({"model_id": self.model_id} if self.model_id else {})}
        return {key: str(facts[key]) for key in SHOWN_KEYS if facts.get(key)}
