"""The types of the official SDK's HTTP library."""

from __future__ import annotations

import copy
import pickle
from typing import Any, get_type_hints

import httpx
import pytest

import tinkerwire as tw

MIXED = {"connect": 5.0, "read": 60.0, "write": None, "pool": 1}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((60,), {}),
        ((60,), {"connect": 5.0}),
        ((None,), {}),
        ((None,), {"pool": 2}),
        ((), MIXED),
        (((1, 2, 3, None),), {}),
    ],
)
def test_timeout_equals_httpx_timeout(arguments: Any, named: Any) -> None:
    """The four limits are the same, and httpx accepts the tuple."""
    ours, theirs = tw.Timeout(*arguments, **named), httpx.Timeout(*arguments, **named)
    assert ours.as_dict() == theirs.as_dict()
    assert httpx.AsyncClient(timeout=ours).timeout == theirs
    assert repr(ours) == repr(theirs)
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), eval(repr(ours), {"Timeout": tw.Timeout})):
        assert copied == ours
        assert (type(copied), copied.read) == (tw.Timeout, theirs.read)


@pytest.mark.parametrize(
    ("arguments", "named", "error"),
    [
        ((), {}, "connect has no limit"),
        ((), {"read": 1}, "connect has no limit"),
        (((1, 2),), {}, "a tuple must have the 4 values connect, read, write, pool, got 2"),
        (("60",), {}, "Timeout.connect: expected seconds or None, got str"),
        ((True,), {}, "got bool"),
        ((1,), {"pool": -1}, "Timeout.pool must be at least 0 s and finite, got -1"),
        ((float("inf"),), {}, "None sets no limit"),
    ],
)
def test_invalid_timeout_names_phase(arguments: Any, named: Any, error: str) -> None:
    """The error names the phase."""
    with pytest.raises((ValueError, TypeError), match=error):
        tw.Timeout(*arguments, **named)


def test_service_client_warns_about_timeout_argument() -> None:
    """The official SDK's clients accept any keyword; here a warning names it."""
    with pytest.warns(FutureWarning, match="timeout"), tw.ServiceClient(base_url="local", timeout=tw.Timeout(1)):
        pass


def test_request_options_type_dicts() -> None:
    """Plain dicts have the official names."""
    options: tw.RequestOptions = {"timeout": tw.Timeout(1), "max_retries": 2}
    assert options["max_retries"] == 2
    names = {"headers", "max_retries", "timeout", "params", "extra_json", "idempotency_key", "follow_redirects"}
    assert get_type_hints(tw.RequestOptions).keys() == names
