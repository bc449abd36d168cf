"""Limits of what a server keeps about finished work."""

from __future__ import annotations

import attrs


def _at_least_one(instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if not value >= 1:
        raise ValueError(f"{attribute.name} must be at least 1, got {value!r}")


def _positive(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not value > 0:
        raise ValueError(f"{attribute.name} must be above 0, got {value!r}")


@attrs.frozen(kw_only=True)
class RetentionPolicy:
    """Limits in time and memory of results, and of the records that recognize resent requests.

    A dropped result is answered with HTTP 410. A request that is resent after its result was dropped gets the same
    request id as before, and then 410: the work is not done twice. What the server does not recognize any more, because
    more than ``request_bytes`` of other requests came since, is a new request: an operation on a model is refused with
    409, as its seq_id was used, and a sample is drawn anew.

    Args:
        seconds: age at which a result is dropped, fetched or not.
        results: how many results are kept; those that were fetched are dropped first.
        unfetched_bytes: how much memory results take that were not fetched yet.
        fetched_bytes: how much memory results take that were fetched, kept in case a response was lost.
        request_bytes: how much memory each of three tables takes: idempotency keys, sequence numbers of samples, and
            sequence numbers of everything else.

    Raises:
        ValueError: a limit below 1, or seconds that are not above 0.
    """

    seconds: float = attrs.field(default=3600.0, validator=_positive)
    results: int = attrs.field(default=1_000_000, validator=_at_least_one)
    unfetched_bytes: int = attrs.field(default=2**30, validator=_at_least_one)
    fetched_bytes: int = attrs.field(default=256 * 2**20, validator=_at_least_one)
    request_bytes: int = attrs.field(default=32 * 2**20, validator=_at_least_one)
