"""One step of a program with the official SDK, and the run of several steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import attrs

from tinkerwire_base.conversion.versioning import parse_version

from ..violation import Violation
from .official_client import OfficialClient

T = TypeVar("T")


class NotReached(Exception):
    """An earlier step failed, whose result this one needs."""


@attrs.frozen
class Step:
    """One thing that programs do.

    Args:
        name: name of the method, or a few words.
        run: sends the requests; raises Violation where the SDK raises an error.
        since: first version of the SDK that can do it.
        until: first version that can no longer do it; None for none.
    """

    name: str
    run: Callable[[OfficialClient], Awaitable[None]]
    since: str = "0.3.0"
    until: str | None = None

    def applies_to(self, version: str) -> bool:
        """Check whether a version of the SDK can do it."""
        parsed = parse_version(version)
        return parse_version(self.since) <= parsed and (self.until is None or parsed < parse_version(self.until))


def require(value: T | None) -> T:
    """Return what an earlier step made; raise NotReached without it."""
    if not value:
        raise NotReached
    return value


async def run_steps(sdk: OfficialClient, steps: Sequence[Step]) -> None:
    """Do all steps, and raise one Violation with those that failed."""
    failed: list[tuple[Step, Violation]] = []
    for step in steps:
        if not step.applies_to(sdk.version):
            continue
        try:
            await step.run(sdk)
        except Violation as error:
            failed.append((step, error))
        except NotReached:
            continue
    if failed:
        parts = [(step.name, str(error)) for step, error in failed]
        received = "; ".join(f"{step.name} fails: {error.received}" for step, error in failed)
        raise Violation(failed[0][1].expected, received, failed[0][1].exchange, parts)
