"""The run: tests requirements one after the other, within limits of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from .._futures.logger import log
from .._futures.timeout import wait_for
from .exchange import Exchange, find_submission
from .outcome import Outcome, Status
from .requirement import Requirement
from .subject.server import Server
from .violation import Blocked, NotApplicable, ServerLost, Violation

OnBegin = Callable[[Requirement], None]
OnOutcome = Callable[[Outcome], None]
ENDED_SESSION = "the server ended the session of the run during the test, and again when the test was repeated"
_HINDERING = (Status.FAILED, Status.BLOCKED, Status.ERROR)


async def run_requirements(
    server: Server,
    requirements: Sequence[Requirement],
    *,
    max_s: float = float("inf"),
    keep_going: bool = False,
    on_begin: OnBegin = lambda _: None,
    on_outcome: OnOutcome = lambda _: None,
) -> list[Outcome]:
    """Test requirements in order and return their outcomes.

    Args:
        server: the server; the caller closes it.
        requirements: what to test.
        max_s: time limit of the run; requirements after it are not run.
        keep_going: go on after the server was lost, for servers that come back.
        on_begin: called before each test.
        on_outcome: called after each test.
    """
    deadline = time.monotonic() + max_s
    outcomes: dict[str, Outcome] = {}
    end = ""
    for requirement in requirements:
        if not end and time.monotonic() > deadline:
            end = f"the run took longer than {max_s / 60:g} minutes"
        if end:
            outcome = Outcome(requirement=requirement, status=Status.NOT_RUN, reason=end)
        else:
            on_begin(requirement)
            outcome = await run_requirement(server, requirement, outcomes)
            if outcome.status is Status.FAILED and outcome.exchange is None and outcome.reason and not keep_going:
                end = f"the server was lost during {requirement.id}"
        outcomes[requirement.id] = outcome
        on_outcome(outcome)
    return list(outcomes.values())


async def run_requirement(server: Server, requirement: Requirement, earlier: dict[str, Outcome]) -> Outcome:
    """Test one requirement, once more if the server ends the session of the run meanwhile.

    Args:
        server: the server.
        requirement: what to test.
        earlier: the outcomes of the requirements before it by id.
    """
    reason = _reason_to_skip(server, requirement)
    if reason:
        return Outcome(requirement=requirement, status=Status.SKIPPED, reason=reason)
    failed = [name for name in requirement.needs if name in earlier and earlier[name].status in _HINDERING]
    if failed:
        reason = f"{', '.join(failed)} did not pass, and this test needs it"
        return Outcome(requirement=requirement, status=Status.BLOCKED, reason=reason)
    outcome = await _test(server, requirement)
    if not await _has_lost_session(server, outcome):
        return outcome
    log.warning("the server ended the session of the run; %s is tested again in a new one", requirement.id)
    outcome = await _test(server, requirement)
    if not await _has_lost_session(server, outcome):
        return outcome
    return Outcome(
        requirement=requirement,
        status=Status.BLOCKED,
        seconds=outcome.seconds,
        reason=ENDED_SESSION,
        exchange=outcome.exchange,
    )


async def _has_lost_session(server: Server, outcome: Outcome) -> bool:
    """Check whether a test proves nothing because the server has ended the session of the run; then renew it."""
    if outcome.status not in _HINDERING:
        return False
    with suppress(ServerLost):
        return await server.renew_session()
    return False


async def _test(server: Server, requirement: Requirement) -> Outcome:
    started = time.monotonic()

    def ended(status: Status, **details: object) -> Outcome:
        seconds = time.monotonic() - started
        exchange = details.get("exchange")
        submission = find_submission(exchange, server.client.recent) if isinstance(exchange, Exchange) else None
        return Outcome(
            requirement=requirement,
            status=status,
            seconds=seconds,
            submission=submission,
            **details,  # type: ignore[arg-type]
        )

    server.client.interrupted = None
    try:
        await wait_for(requirement.test(server), requirement.max_s)
        return ended(Status.PASSED)
    except Violation as error:
        details = {"expected": error.expected, "received": error.received, "parts": error.parts}
        return ended(Status.FAILED, exchange=error.exchange, **details)
    except NotApplicable as error:
        return ended(Status.SKIPPED, reason=str(error))
    except Blocked as error:
        return ended(Status.BLOCKED, reason=str(error), exchange=error.exchange)
    except ServerLost as error:
        return ended(Status.FAILED, expected="a server that keeps running", received=str(error), reason="lost")
    except asyncio.TimeoutError:
        last = server.client.interrupted or (server.client.recent[-1] if server.client.recent else None)
        expected = f"an end of the test within {requirement.max_s:g} s"
        return ended(Status.FAILED, expected=expected, received="none", exchange=last)
    except Exception as error:
        log.exception("%s: the kit failed", requirement.id)
        return ended(Status.ERROR, reason=f"the kit failed: {type(error).__name__}: {error}")
    finally:
        with suppress(ServerLost):
            await server.end_test()


def _reason_to_skip(server: Server, requirement: Requirement) -> str:
    if not requirement.applies_to(server.wire):
        until = "" if requirement.until is None else f", before {requirement.until}"
        return f"applies to wire {requirement.since} and later{until}"
    for name in requirement.operations:
        try:
            server.require_operation(name)
        except NotApplicable as error:
            return str(error)
    return ""
