"""Tests of RetryConfig: delays, limits, the default decision about an error, and the header Retry-After."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._connection.retry import retry_after
from tinkerwire._connection.retry_rules import Decision, Loop, find_rule
from tinkerwire_base.errors import ResponseInfo, status_error

POLICIES = st.builds(
    tw.RetryConfig,
    retry_delay_base=st.floats(0, 10),
    retry_delay_max=st.floats(0, 100),
    jitter_factor=st.floats(0, 1),
    max_attempts=st.integers(1, 20),
    max_elapsed=st.floats(0, 1000),
    progress_timeout=st.floats(0, 1000),
    retry_after_max=st.floats(0, 100),
)


def make_status_error(status: int, **headers: str) -> tw.APIStatusError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status_error(status)("x", response=ResponseInfo(status_code=status, headers=names))


def is_retryable(error: tw.TinkerError) -> bool:
    return find_rule(Loop.REQUEST, error).decision is Decision.RETRY


ERRORS = st.one_of(
    st.just(tw.APIConnectionError(message="x")),
    st.just(tw.APITimeoutError(message="x")),
    st.integers(400, 599).map(make_status_error),
    st.builds(lambda s: make_status_error(429, retry_after=str(s)), st.floats(0, 1e6)),
)


@given(POLICIES, ERRORS, st.integers(1, 30), st.floats(0, 2000))
def test_delay_respects_all_limits(policy: tw.RetryConfig, error: tw.TinkerError, attempt: int, elapsed: float) -> None:
    """No delay is negative, too long, past max_attempts, or past the time limit of the operation."""
    wait = policy.wait_before_retry(error, attempt, elapsed)
    if wait is None:
        return
    assert 0 <= wait <= max(policy.retry_delay_max, policy.retry_after_max)
    assert attempt < policy.max_attempts
    assert elapsed + wait <= min(policy.max_elapsed, policy.progress_timeout)
    assert is_retryable(error)


@given(POLICIES, st.integers(1, 2000))
def test_delays_double_up_to_maximum_with_jitter(policy: tw.RetryConfig, attempt: int) -> None:
    """The delay is base x 2^(n-1), at most the maximum, and shortened by at most the jitter."""
    max_delay = min(policy.retry_delay_base * 2.0 ** min(attempt - 1, 60), policy.retry_delay_max)
    assert max_delay * (1 - policy.jitter_factor) <= policy.delay(attempt) <= max_delay


def test_default_delays_double_from_half_to_ten_seconds() -> None:
    """The delays are 0.5, 1, 2, 4, 8 and then 10 s, each up to a quarter shorter, at random."""
    policy = tw.RetryConfig()
    waits = [policy.delay(attempt) for attempt in range(1, 8)]
    for wait, max_delay in zip(waits, [0.5, 1, 2, 4, 8, 10, 10], strict=True):
        assert max_delay * 0.75 <= wait <= max_delay
    assert len({policy.delay(7) for _ in range(20)}) > 1


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 452), *range(500, 512), 599])
def test_only_timeouts_conflicts_limits_and_server_errors_are_retried(status: int) -> None:
    """The client retries 408, 409, 429 and 5xx only, unless the header x-should-retry decides."""
    assert is_retryable(make_status_error(status)) == (status in (408, 409, 429) or status >= 500)
    assert is_retryable(make_status_error(status, x_should_retry="true"))
    assert is_retryable(make_status_error(status, x_should_retry="TRUE"))
    assert not is_retryable(make_status_error(status, x_should_retry="false"))
    assert is_retryable(make_status_error(status, x_should_retry="perhaps")) == is_retryable(make_status_error(status))


@pytest.mark.parametrize("category", list(tw.RequestErrorCategory))
def test_reported_failures_are_not_retried(category: tw.RequestErrorCategory) -> None:
    """An operation that the server reports as failed is final."""
    assert not is_retryable(tw.RequestFailedError("x", "r", category))
    assert not is_retryable(tw.RequestTimeoutError("x"))
    assert not is_retryable(tw.ClientClosedError("x"))
    assert is_retryable(tw.APITimeoutError())


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "20", "retry-after": "7"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_prefers_milliseconds_and_ignores_invalid_values(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Milliseconds take precedence over seconds and HTTP dates; invalid values are ignored."""
    assert retry_after(headers) == seconds


def test_retry_after_date_is_relative_to_now() -> None:
    """A date means the time until then, with or without a time zone."""
    retry_at = datetime.now(timezone.utc) + timedelta(seconds=100)
    for text in (format_datetime(retry_at, usegmt=True), format_datetime(retry_at.replace(tzinfo=None))):
        seconds = retry_after({"retry-after": text})
        assert seconds is not None
        assert 60 < seconds <= 100


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text(max_size=40)))
def test_any_retry_after_header_is_parsed(headers: dict[str, str]) -> None:
    """Any header text leads to a number of seconds or None."""
    seconds = retry_after(headers)
    assert seconds is None or seconds >= 0


def test_retry_after_overrides_delay_up_to_limit() -> None:
    """A Retry-After header sets the delay, up to retry_after_max; zero is ignored."""
    policy = tw.RetryConfig(retry_delay_base=3.0, jitter_factor=0.0, retry_after_max=20.0)
    assert policy.wait_before_retry(make_status_error(429, retry_after="7"), 1, 0.0) == 7.0
    assert policy.wait_before_retry(make_status_error(503, retry_after="7000"), 1, 0.0) == 20.0
    assert policy.wait_before_retry(make_status_error(429, retry_after="0"), 1, 0.0) == 3.0
    assert policy.wait_before_retry(make_status_error(429), 1, 0.0) == 3.0


@pytest.mark.parametrize(
    "setting",
    [
        {"max_connections": 0},
        {"max_connections": -1},
        {"max_attempts": 0},
        {"jitter_factor": 1.5},
        {"jitter_factor": -0.1},
        {"progress_timeout": -1},
        {"retry_delay_base": -1},
    ],
)
def test_invalid_setting_is_named(setting: dict[str, Any]) -> None:
    """An invalid policy raises an error that names the setting."""
    with pytest.raises(ValueError, match=f"RetryConfig.{next(iter(setting))}"):
        tw.RetryConfig(**setting)
