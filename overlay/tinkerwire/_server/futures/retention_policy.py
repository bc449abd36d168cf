"""Retention policy: limits on the results and requests that a server keeps."""

from __future__ import annotations

from numbers import Real
from typing import Any

import attrs

from tinkerwire._server.options import count, require_type


def _validate_positive(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    require_type(attribute.name, value, Real, "a number")
    if not value > 0:
        raise ValueError(f"{attribute.name} must be above 0, got {value!r}")


@attrs.frozen(kw_only=True)
class RetentionPolicy:
    """Limits on the age and memory of results, and of the records that recognise resent requests.

    A dropped result is answered with HTTP 410. A request that is resent after its result was dropped gets its old
    request id, then 410: the work is not executed twice. After more than ``request_bytes`` of other requests, the
    server treats a resent request as a new one: it rejects an operation on a model with 409, because the seq_id was
    used, and draws a sample again.

    Limits in bytes count an entry as if it were in memory. Of the fetched results and of each table of requests, only
    the newest MiB is in memory; the rest is in temporary files in the folder that TMPDIR names, which end with the
    process.

    Args:
        seconds: age at which a result is dropped, fetched or not.
        results: maximum number of results; fetched results are dropped first.
        unfetched_bytes: maximum size of results that were not fetched yet.
        fetched_bytes: maximum size of fetched results, which are kept in case a response was lost.
        request_bytes: maximum size of each of three tables: idempotency keys, seq_ids of samples, and other
            sequence numbers.

    Raises:
        TypeError: a limit is not a number.
        ValueError: a limit is below 1, or ``seconds`` is not above 0.
    """

    seconds: float = attrs.field(default=3600.0, validator=_validate_positive)
    results: int = attrs.field(default=1_000_000, validator=count(1))
    unfetched_bytes: int = attrs.field(default=2**30, validator=count(1))
    fetched_bytes: int = attrs.field(default=256 * 2**20, validator=count(1))
    request_bytes: int = attrs.field(default=32 * 2**20, validator=count(1))
