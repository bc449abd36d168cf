"""A server that fails on purpose, the same way for the same seed: clients rehearse failures on it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable

import attrs
import orjson
from typing_extensions import Self

from tinkerwire_base.call import JSON, WireResponse
from tinkerwire_generated.operations import OPERATIONS

SERVER_FAULTS = (500, 502, 503, 504)
HEADERS = {"content-type": JSON}


class ConnectionDropped(ConnectionResetError):
    """The connection is broken in place of an answer."""


@attrs.frozen(kw_only=True)
class InjectedFault:
    """What happens to one request.

    Args:
        response: the answer in place of handling it, if any.
        reset: drop the connection before it is handled.
        lost_reply: handle it, and drop the connection in place of answering.
    """

    response: WireResponse | None = None
    reset: bool = False
    lost_reply: bool = False


NONE = InjectedFault()


def _share(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{attribute.name}: {value!r} is no probability; give a number from 0 to 1")


def _not_negative(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{attribute.name}: {value!r} is no time; give seconds, 0 or more")


def _names(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


@attrs.define(kw_only=True)
class FaultInjection:
    """Delays and failures. The n-th request of an operation meets the same fate whatever else goes on.

    Args:
        seed: of the draws.
        delay_s: seconds that every request waits first.
        p_408: share of requests answered 408; p_429, with Retry-After, and p_5xx (500, 502, 503 or 504) alike.
        p_reset: share whose connection is dropped before they are handled.
        p_lost_reply: share that is handled and whose connection is then dropped.
        retry_after_s: what a 429 asks for, in seconds.
        only: names of the operations that it is for; None for all.

    Raises:
        ValueError: a share that is none, shares of more than 1 in all, or an unknown operation.
    """

    seed: int = 0
    delay_s: float = attrs.field(default=0.0, validator=_not_negative)
    p_408: float = attrs.field(default=0.0, validator=_share)
    p_429: float = attrs.field(default=0.0, validator=_share)
    p_5xx: float = attrs.field(default=0.0, validator=_share)
    p_reset: float = attrs.field(default=0.0, validator=_share)
    p_lost_reply: float = attrs.field(default=0.0, validator=_share)
    retry_after_s: float = attrs.field(default=0.05, validator=_not_negative)
    only: frozenset[str] | None = attrs.field(default=None, converter=_names)
    met: Counter[str] = attrs.field(factory=Counter, init=False)
    """How often each kind of failure happened: 408, 429, 5xx, reset, lost_reply."""
    _counts: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        total = self.p_408 + self.p_429 + self.p_5xx + self.p_reset + self.p_lost_reply
        if total > 1 + 1e-9:
            raise ValueError(f"the shares of failures add up to {total:g}; they must not exceed 1")
        unknown = sorted((self.only or frozenset()) - OPERATIONS.keys())
        if unknown:
            raise ValueError(f"only: {', '.join(unknown)} is no operation; there are {', '.join(OPERATIONS)}")

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> Self:
        """Read ``p_429=0.1,delay_s=0.02,only=asample+forward``; ValueError names what is wrong."""
        values: dict[str, object] = {}
        numbers = {field.name for field in attrs.fields(cls) if field.init} - {"seed", "only"}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals or name not in numbers | {"only"}:
                raise ValueError(
                    f"{part!r} is not understood; write NAME=VALUE, with one of {', '.join(sorted(numbers))}, only"
                )
            if name == "only":
                values[name] = frozenset(value.split("+"))
                continue
            try:
                values[name] = float(value)
            except ValueError:
                raise ValueError(f"{part!r}: {value!r} is not a number") from None
        return cls(seed=seed, **values)  # type: ignore[arg-type]

    async def before(self, operation: str) -> InjectedFault:
        """What happens to the next request of an operation, after the delay."""
        if self.only is not None and operation not in self.only:
            return NONE
        error = self._draw(operation)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        return error

    def _draw(self, operation: str) -> InjectedFault:
        number = self._counts[operation]
        self._counts[operation] += 1
        dice = random.Random(f"{self.seed}:{operation}:{number}")
        draw = dice.random()
        kinds = {
            "408": self.p_408,
            "429": self.p_429,
            "5xx": self.p_5xx,
            "reset": self.p_reset,
            "lost_reply": self.p_lost_reply,
        }
        for kind, share in kinds.items():
            if draw < share:
                self.met[kind] += 1
                return self._fault(kind, dice)
            draw -= share
        return NONE

    def _fault(self, kind: str, dice: random.Random) -> InjectedFault:
        if kind == "reset":
            return InjectedFault(reset=True)
        if kind == "lost_reply":
            return InjectedFault(lost_reply=True)
        status = dice.choice(SERVER_FAULTS) if kind == "5xx" else int(kind)
        headers = {**HEADERS, "retry-after": f"{self.retry_after_s:g}"} if status == 429 else HEADERS
        body = orjson.dumps({"detail": f"{status} on purpose: this server was told to misbehave"})
        return InjectedFault(response=WireResponse(status=status, headers=headers, content=body))
