"""Fault injection: delays and failures, reproducible by a seed, to test clients against."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import attrs
import orjson
from typing_extensions import Self

from tinkerwire._server.emulation.middleware import CallNext
from tinkerwire._server.options import known_operations, parse_options, validate_probability, validate_seconds
from tinkerwire_base.call import JSON, WireRequest, WireResponse

INJECTED_STATUSES = (500, 502, 503, 504)
HEADERS = {"content-type": JSON}


class ConnectionDropped(ConnectionResetError):
    """The server closes the connection without a response."""


@attrs.define(kw_only=True)
class FaultInjection:
    """Delays and failures to inject.

    The n-th request of an operation always meets the same fault for one seed, regardless of other requests.

    Args:
        seed: seed of the random choices.
        delay_s: delay of every request in seconds.
        p_408: probability of a response with status 408.
        p_429: probability of a response with status 429 and Retry-After.
        p_5xx: probability of a response with status 500, 502, 503 or 504.
        p_reset: probability that the connection is dropped before the request is handled.
        p_lost_reply: probability that the connection is dropped after the request was handled.
        retry_after_s: Retry-After of a 429, in seconds.
        only: names of the operations to inject faults into; None for all operations.

    Raises:
        ValueError: a probability is out of range, all add up to more than 1, or an operation is unknown.
    """

    seed: int = 0
    delay_s: float = attrs.field(default=0.0, validator=validate_seconds)
    p_408: float = attrs.field(default=0.0, validator=validate_probability)
    p_429: float = attrs.field(default=0.0, validator=validate_probability)
    p_5xx: float = attrs.field(default=0.0, validator=validate_probability)
    p_reset: float = attrs.field(default=0.0, validator=validate_probability)
    p_lost_reply: float = attrs.field(default=0.0, validator=validate_probability)
    retry_after_s: float = attrs.field(default=0.05, validator=validate_seconds)
    only: frozenset[str] | None = attrs.field(
        default=None, converter=attrs.converters.optional(frozenset), validator=known_operations()
    )
    counts: Counter[str] = attrs.field(factory=Counter, init=False)
    """Number of injected failures by kind: 408, 429, 5xx, reset, lost_reply."""
    _request_counts: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        total = sum(self._probabilities().values())
        if total > 1 + 1e-9:
            raise ValueError(f"the probabilities of failures add up to {total:g}; they must not exceed 1")

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> Self:
        """Parse a text such as ``p_429=0.1,delay_s=0.02,only=asample+forward``.

        Raises:
            ValueError: a part of the text is not valid; the error names it.
        """
        return parse_options(cls, text, seed=seed)

    async def handle(self, operation: str, request: WireRequest, call_next: CallNext) -> WireResponse:
        """Handle a request, or inject a fault; see :class:`~tinkerwire._server.emulation.middleware.Middleware`."""
        if self.only is not None and operation not in self.only:
            return await call_next(request)
        kind, rng = self._choose(operation)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if kind == "reset":
            raise ConnectionDropped(
                f"{operation}: fault injection dropped the connection on purpose before the handler ran"
            )
        if kind not in (None, "lost_reply"):
            return self._error_response(kind, rng)
        response = await call_next(request)
        if kind == "lost_reply":
            raise ConnectionDropped(
                f"{operation}: fault injection dropped the connection on purpose after the handler ran"
            )
        return response

    def _probabilities(self) -> dict[str, float]:
        return {
            "408": self.p_408,
            "429": self.p_429,
            "5xx": self.p_5xx,
            "reset": self.p_reset,
            "lost_reply": self.p_lost_reply,
        }

    def _choose(self, operation: str) -> tuple[str | None, random.Random]:
        """Return the kind of fault for the next request of an operation, and the generator that chose it."""
        number = self._request_counts[operation]
        self._request_counts[operation] += 1
        rng = random.Random(f"{self.seed}:{operation}:{number}")
        remaining = rng.random()
        for kind, probability in self._probabilities().items():
            if remaining < probability:
                self.counts[kind] += 1
                return kind, rng
            remaining -= probability
        return None, rng

    def _error_response(self, kind: str, rng: random.Random) -> WireResponse:
        status = rng.choice(INJECTED_STATUSES) if kind == "5xx" else int(kind)
        headers = {**HEADERS, "retry-after": f"{self.retry_after_s:g}"} if status == 429 else HEADERS
        body = orjson.dumps({"detail": f"fault injection: this server answers some requests with {status} on purpose"})
        return WireResponse(status=status, headers=headers, content=body)
