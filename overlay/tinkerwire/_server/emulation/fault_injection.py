"""Fault injection: delays and failures, reproducible by a seed, to test clients against."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterable

import attrs
import orjson
from typing_extensions import Self

from tinkerwire._server.emulation.middleware import CallNext
from tinkerwire._server.options import (
    known_operations,
    parse_options,
    read_names,
    require_seconds,
    require_type,
    validate_probability,
    validate_seconds,
    validate_seed,
)
from tinkerwire_base.call import JSON, WireRequest, WireResponse

INJECTED_STATUSES = (500, 502, 503, 504)
HEADERS = {"content-type": JSON}


class ConnectionDropped(ConnectionResetError):
    """The server closes the connection without a response."""


def _read_operations(only: str | Iterable[str] | None) -> frozenset[str] | None:
    return None if only is None else frozenset(read_names("only", only))


@attrs.define(kw_only=True)
class PlannedFault:
    """One fault for each of the next requests.

    Args:
        kind: a status such as ``500``, ``reset``, ``lost_reply`` or ``delay``.
        remaining: number of requests that still meet the fault.
        delay_s: delay of these requests in seconds.
        only: names of the operations to inject the fault into; None for all operations.
    """

    kind: str
    remaining: int
    delay_s: float = 0.0
    only: frozenset[str] | None = attrs.field(default=None, validator=known_operations())


@attrs.define(kw_only=True)
class FaultInjection:
    """Delays and failures to inject.

    The n-th request of an operation always meets the same fault for one seed, regardless of other requests. Planned
    faults come first: :meth:`fail_next`, :meth:`drop_next` and :meth:`delay_next` may be called at any time, on any
    thread. Polls and heartbeats are requests too; ``only`` names the operations that a plan is for.

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
        TypeError: an argument has the wrong type.
        ValueError: a probability is out of range, all add up to more than 1, or an operation is unknown.
    """

    seed: int = attrs.field(default=0, validator=validate_seed)
    delay_s: float = attrs.field(default=0.0, validator=validate_seconds)
    p_408: float = attrs.field(default=0.0, validator=validate_probability)
    p_429: float = attrs.field(default=0.0, validator=validate_probability)
    p_5xx: float = attrs.field(default=0.0, validator=validate_probability)
    p_reset: float = attrs.field(default=0.0, validator=validate_probability)
    p_lost_reply: float = attrs.field(default=0.0, validator=validate_probability)
    retry_after_s: float = attrs.field(default=0.05, validator=validate_seconds)
    only: frozenset[str] | None = attrs.field(default=None, converter=_read_operations, validator=known_operations())
    counts: Counter[str] = attrs.field(factory=Counter, init=False)
    """Number of injected faults by kind: 408, 429, 5xx, reset, lost_reply; planned ones by their status, or delay."""
    _request_counts: Counter[str] = attrs.field(factory=Counter, init=False)
    _planned: list[PlannedFault] = attrs.field(factory=list, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False, repr=False, eq=False)

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

    def fail_next(self, status: int, count: int = 1, *, only: str | Iterable[str] | None = None) -> None:
        """Answer the next ``count`` requests with a status, without handling them.

        Args:
            status: HTTP status from 400 to 599; the response to a 429 has Retry-After.
            count: number of requests.
            only: name or names of the operations to inject the fault into; None for all operations.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or an operation is unknown.
        """
        if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
            raise ValueError(f"status must be from 400 to 599, got {status!r}")
        self._plan(str(status), count, only)

    def drop_next(
        self, count: int = 1, *, only: str | Iterable[str] | None = None, after_handling: bool = False
    ) -> None:
        """Drop the connections of the next ``count`` requests without a response.

        Args:
            count: number of requests.
            only: see :meth:`fail_next`.
            after_handling: handle each request first, so that only its response is lost.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: ``count`` is out of range, or an operation is unknown.
        """
        require_type("after_handling", after_handling, bool, "True or False")
        self._plan("lost_reply" if after_handling else "reset", count, only)

    def delay_next(self, seconds: float, count: int = 1, *, only: str | Iterable[str] | None = None) -> None:
        """Handle each of the next ``count`` requests after a delay.

        Args:
            seconds: the delay.
            count: number of requests.
            only: see :meth:`fail_next`.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or an operation is unknown.
        """
        require_seconds("seconds", seconds)
        self._plan("delay", count, only, seconds)

    @property
    def planned_count(self) -> int:
        """Number of planned faults that no request has met yet."""
        with self._lock:
            return sum(fault.remaining for fault in self._planned)

    async def handle(self, operation: str, request: WireRequest, call_next: CallNext) -> WireResponse:
        """Handle a request, or inject a fault; see :class:`~tinkerwire._server.emulation.middleware.Middleware`."""
        planned = self._take_planned(operation)
        if planned is not None:
            kind: str | None = planned.kind
            await asyncio.sleep(planned.delay_s)
        elif self.only is not None and operation not in self.only:
            return await call_next(request)
        else:
            kind = self._choose(operation)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
        if kind == "reset":
            raise ConnectionDropped(
                f"{operation}: fault injection dropped the connection on purpose before the handler ran"
            )
        if kind is not None and kind not in ("lost_reply", "delay"):
            return self._error_response(int(kind))
        response = await call_next(request)
        if kind == "lost_reply":
            raise ConnectionDropped(
                f"{operation}: fault injection dropped the connection on purpose after the handler ran"
            )
        return response

    def _plan(self, kind: str, count: int, only: str | Iterable[str] | None, delay_s: float = 0.0) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"count must be a whole number of at least 1, got {count!r}")
        fault = PlannedFault(kind=kind, remaining=count, delay_s=delay_s, only=_read_operations(only))
        with self._lock:
            self._planned.append(fault)

    def _take_planned(self, operation: str) -> PlannedFault | None:
        """Return the oldest planned fault of an operation, for one request; None without one."""
        with self._lock:
            for fault in self._planned:
                if fault.only is None or operation in fault.only:
                    self.counts[fault.kind] += 1
                    fault.remaining -= 1
                    if not fault.remaining:
                        self._planned.remove(fault)
                    return fault
        return None

    def _probabilities(self) -> dict[str, float]:
        return {
            "408": self.p_408,
            "429": self.p_429,
            "5xx": self.p_5xx,
            "reset": self.p_reset,
            "lost_reply": self.p_lost_reply,
        }

    def _choose(self, operation: str) -> str | None:
        """Return the kind of fault for the next request of an operation, or its status; None for no fault."""
        number = self._request_counts[operation]
        self._request_counts[operation] += 1
        rng = random.Random(f"{self.seed}:{operation}:{number}")
        remaining = rng.random()
        for kind, probability in self._probabilities().items():
            if remaining < probability:
                self.counts[kind] += 1
                return str(rng.choice(INJECTED_STATUSES)) if kind == "5xx" else kind
            remaining -= probability
        return None

    def _error_response(self, status: int) -> WireResponse:
        headers = {**HEADERS, "retry-after": f"{self.retry_after_s:g}"} if status == 429 else HEADERS
        body = orjson.dumps({"detail": f"fault injection: this server answers some requests with {status} on purpose"})
        return WireResponse(status=status, headers=headers, content=body)
