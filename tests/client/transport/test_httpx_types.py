"""The types of the official SDK's HTTP library: what one can say with them, and where."""

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
def test_it_means_what_httpx_means(arguments: Any, named: Any) -> None:
    """The same four times, and httpx takes it for them."""
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
        (((1, 2),), {}, "a tuple must have the four of connect, read, write, pool, got 2"),
        (("60",), {}, "Timeout.connect: expected seconds or None, got str"),
        ((True,), {}, "got bool"),
        ((1,), {"pool": -1}, "Timeout.pool must be at least 0 s and finite, got -1"),
        ((float("inf"),), {}, "None sets no limit"),
    ],
)
def test_what_is_no_time(arguments: Any, named: Any, error: str) -> None:
    """It is refused with the phase."""
    with pytest.raises((ValueError, TypeError), match=error):
        tw.Timeout(*arguments, **named)


def test_no_client_takes_it_silently() -> None:
    """The official SDK's clients have no such parameter either, but take any; ours warn and name it."""
    with pytest.warns(FutureWarning, match="timeout"), tw.ServiceClient(base_url="local", timeout=tw.Timeout(1)):
        pass


def test_request_options_are_a_type() -> None:
    """Of plain dicts, by the official names."""
    options: tw.RequestOptions = {"timeout": tw.Timeout(1), "max_retries": 2}
    assert options["max_retries"] == 2
    names = {"headers", "max_retries", "timeout", "params", "extra_json", "idempotency_key", "follow_redirects"}
    assert get_type_hints(tw.RequestOptions).keys() == names
