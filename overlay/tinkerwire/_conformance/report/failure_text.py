"""A failure as plain text: what was expected, what came, the request, and what to do."""

from __future__ import annotations

from ..exchange import curl_line
from ..outcome import Outcome, Status
from .run_report import describe_breakage


def list_details(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the parts of the description of an outcome that is not a success, as names and texts."""
    details = []
    if outcome.status is Status.FAILED:
        details += [("expected", outcome.expected), ("received", outcome.received)]
    elif outcome.reason:
        details.append(("reason", outcome.reason))
    if outcome.exchange is not None:
        if outcome.submission is not None:
            details.append(("request", curl_line(outcome.submission)))
        details.append(("request" if outcome.submission is None else "poll", curl_line(outcome.exchange)))
        # Most texts about what was received contain the response already.
        if outcome.exchange.describe() not in outcome.received:
            details.append(("response", outcome.exchange.describe()))
    if outcome.status is Status.FAILED:
        details.append(("remedy", outcome.requirement.remedy))
        details += [("breaks", describe_breakage(breakage)) for breakage in outcome.requirement.breaks]
    return details


def describe_failure(outcome: Outcome) -> str:
    """Return the requirement and the details of its outcome, one a line."""
    requirement = outcome.requirement
    lines = [f"{requirement.id} {requirement.level.value}: {requirement.sentence}"]
    lines += [f"  {name + ':':10}{text}" for name, text in list_details(outcome)]
    return "\n".join(lines)
