"""Tests of RetryConfig: delays, limits, the default decision about an error, and the header Retry-After."""

from __future__ import annotations

import math
import sys
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._connection.retry import retry_after, server_retry_after
from tinkerwire._connection.retry_rules import Decision, Loop, error_types, find_rule
from tinkerwire_base.call import ResponseLimits, SizeLimit
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


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"max_result_bytes": 1.5}, "an int"),
        ({"max_response_bytes": "1"}, "an int"),
        ({"max_attempts": 1.5}, "an int"),
        ({"max_connections": 1.5}, "an int"),
        ({"enable_retry_logic": 1}, "True or False"),
        ({"enable_stuck_detection": "yes"}, "True or False"),
        ({"jitter_factor": "0.5"}, "a number"),
        ({"retryable_exceptions": [OSError]}, "a tuple of exceptions"),
        ({"retryable_exceptions": (OSError, 3)}, "exception classes"),
        ({"retryable_exceptions": (OSError, int)}, "exception classes"),
        ({"retry_if": 404}, "a plain function"),
        ({"progress_timeout": True}, "seconds"),
        ({"retry_delay_base": "1"}, "seconds"),
        ({"retry_delay_max": None}, "seconds"),
        ({"max_elapsed": math.nan}, "seconds"),
        ({"retry_after_max": math.nan}, "seconds"),
    ],
)
def test_setting_of_wrong_type_is_named(setting: dict[str, Any], expected: str) -> None:
    """The error has the setting and the type that it must have."""
    (name,) = setting
    with pytest.raises(TypeError, match=rf"RetryConfig\.{name}\b.*expected {expected}"):
        tw.RetryConfig(**setting)


@pytest.mark.parametrize("name", ["max_result_bytes", "max_response_bytes"])
def test_size_limit_is_at_least_one_byte(name: str) -> None:
    """One byte is the least limit, and None sets none."""
    settings: dict[str, Any] = {name: 1}
    assert getattr(tw.RetryConfig(**settings), name) == 1
    assert getattr(tw.RetryConfig(**{name: None}), name) is None
    with pytest.raises(ValueError, match=f"RetryConfig.{name} must be at least 1 byte, got 0"):
        tw.RetryConfig(**{name: 0})


@pytest.mark.parametrize(
    "setting",
    [
        {"max_attempts": 1},
        {"max_connections": 1},
        {"max_connections": None},
        {"jitter_factor": 0},
        {"jitter_factor": 1},
        {"progress_timeout": 0},
        {"retry_delay_max": 0},
        {"max_elapsed": math.inf},
        {"retry_after_max": int(sys.float_info.max)},
    ],
)
def test_settings_accept_their_limits(setting: dict[str, Any]) -> None:
    """The least and the largest value of a setting are valid."""
    ((name, value),) = setting.items()
    assert getattr(tw.RetryConfig(**setting), name) == value


@pytest.mark.parametrize("name", ["progress_timeout", "retry_delay_base", "max_elapsed"])
def test_integer_beyond_floats_is_too_large(name: str) -> None:
    """An int that no float holds raises an error with the setting, which names math.inf."""
    with pytest.raises(ValueError, match=f"RetryConfig.{name}: .* is too large; math.inf sets no limit"):
        tw.RetryConfig(**{name: 10**400})


def test_default_limits_are_those_that_nobody_set() -> None:
    """Each of the three settings that limit retries ends the defaults; other settings do not."""
    assert tw.RetryConfig().has_default_limits
    assert tw.RetryConfig(retry_delay_base=3.0, max_connections=7).has_default_limits
    for setting in ({"max_attempts": 9}, {"max_elapsed": 299.0}, {"retry_if": lambda error: None}):
        assert not tw.RetryConfig(**setting).has_default_limits  # type: ignore[arg-type]


def test_limits_of_responses_name_their_settings() -> None:
    """Only results have the limit of results; errors and other responses have the smaller one."""
    policy = tw.RetryConfig(max_result_bytes=2000, max_response_bytes=100)
    small = SizeLimit(max_bytes=100, setting="RetryConfig.max_response_bytes")
    large = SizeLimit(max_bytes=2000, setting="RetryConfig.max_result_bytes")
    assert policy.response_limits(is_result=True) == ResponseLimits(result=large, error=small)
    assert policy.response_limits(is_result=False) == ResponseLimits(result=small, error=small)
    unlimited = tw.RetryConfig(max_result_bytes=None, max_response_bytes=None)
    assert unlimited.response_limits(is_result=True) == ResponseLimits(result=None, error=None)


def test_retries_end_at_each_limit_exactly() -> None:
    """A retry may start at the very end of max_elapsed and of the time limit, but not after it."""
    error = make_status_error(500)
    policy = tw.RetryConfig(retry_delay_base=1.0, jitter_factor=0.0, max_elapsed=10.0, max_attempts=3)
    assert policy.wait_before_retry(error, 1, 9.0) == 1.0
    assert policy.wait_before_retry(error, 1, 9.1) is None
    assert policy.wait_before_retry(error, 2, 8.0) == 2.0
    assert policy.wait_before_retry(error, 3, 0.0) is None
    assert attrs.evolve(policy, progress_timeout=5.0).wait_before_retry(error, 1, 4.5) is None
    assert attrs.evolve(policy, progress_timeout=5.0).wait_before_retry(error, 1, 4.0) == 1.0
    unlimited = attrs.evolve(policy, progress_timeout=5.0, enable_stuck_detection=False)
    assert unlimited.time_limit == math.inf
    assert unlimited.wait_before_retry(error, 1, 4.5) == 1.0


def test_permanent_error_is_retried_only_by_the_users_decision() -> None:
    """An error that looks permanent ends retries, unless retry_if returns True."""
    error = make_status_error(500)
    assert tw.RetryConfig().wait_before_retry(error, 1, 0.0) is not None
    assert tw.RetryConfig().wait_before_retry(error, 1, 0.0, is_permanent=True) is None
    decided = tw.RetryConfig(retry_if=lambda error: True)
    assert decided.wait_before_retry(error, 1, 0.0, is_permanent=True) is not None
    assert tw.RetryConfig(retry_if=lambda error: False).wait_before_retry(error, 1, 0.0) is None
    assert not tw.RetryConfig().should_retry(make_status_error(409), Loop.POLL)
    assert tw.RetryConfig().should_retry(make_status_error(409), Loop.REQUEST)


def test_delay_of_late_attempts_stays_finite() -> None:
    """Without a maximum, the delay stops to grow before it overflows."""
    policy = tw.RetryConfig(retry_delay_base=1.0, retry_delay_max=math.inf, jitter_factor=0.0)
    assert policy.delay(5) == 16.0
    assert policy.delay(61) == policy.delay(5000) == 2.0**60


def test_jitter_only_shortens_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share by which a delay is shortened is the jitter factor times a random number."""
    monkeypatch.setattr("random.random", lambda: 0.5)
    assert tw.RetryConfig(retry_delay_base=8.0, jitter_factor=0.25).delay(1) == 7.0


def test_deadline_has_the_limit_and_its_setting() -> None:
    """The deadline of an operation ends after progress_timeout, which its error names."""
    deadline = tw.RetryConfig(progress_timeout=7.0).deadline()
    assert (deadline.seconds, deadline.setting) == (7.0, "RetryConfig.progress_timeout")


def test_impossible_date_requests_no_delay() -> None:
    """Dates that no calendar holds request no delay, and zero milliseconds are read as such."""
    assert retry_after({"retry-after": "Fri, 99 Dec 2030 23:59:59 GMT"}) is None
    assert retry_after({"retry-after-ms": "0"}) == 0.0


def test_only_responses_request_a_delay() -> None:
    """Errors without a response request none, and a delay of zero does not count."""
    assert server_retry_after(make_status_error(503, retry_after="3")) == 3.0
    assert server_retry_after(make_status_error(503, retry_after="0")) is None
    assert server_retry_after(tw.APIConnectionError(message="x")) is None


def test_unsent_operation_frees_its_seq_id_without_a_connection_only() -> None:
    """An operation whose request may have arrived keeps its seq_id."""
    unsent, sent, unknown = (tw.APIConnectionError(message="x") for _ in range(3))
    unsent.may_have_been_sent, sent.may_have_been_sent = False, True
    other = tw.TinkerError("x")
    other.may_have_been_sent = False
    decisions = [find_rule(Loop.SUBMISSION, error).name for error in (unsent, sent, unknown, other)]
    assert decisions == ["unsent operation", *["lost response"] * 3]


def test_header_without_a_value_matches_no_rule() -> None:
    """A response without x-should-retry does not match the rows about the header."""
    names = [find_rule(Loop.REQUEST, make_status_error(status)).name for status in (404, 500)]
    assert names == ["other error", "server error"]
    assert find_rule(Loop.REQUEST, make_status_error(404, x_should_retry="True")).name == "header true"


def test_errors_of_a_decision_are_those_of_its_rows() -> None:
    """Samplers catch the errors of the rows of their loop that have the decision."""
    assert error_types(Loop.SAMPLE, Decision.RESAMPLE) == (tw.FutureExpiredError,)
    assert error_types(Loop.SAMPLE, Decision.REQUEUE) == (tw.RateLimitError,)
    assert error_types(Loop.NAMED_SAVE, Decision.RESAMPLE) == ()
