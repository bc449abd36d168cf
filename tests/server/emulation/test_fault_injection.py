"""Failures on purpose: of the right kinds, in the right shares, the same for the same seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from support import virtual_time
from tinkerwire.local import ConnectionDropped, FaultInjection

ALL = {"p_408": 0.1, "p_429": 0.1, "p_5xx": 0.1, "p_reset": 0.1, "p_lost_reply": 0.1}


def _fates(call: Any, count: int = 200) -> list[int | str]:
    async def ask() -> int | str:
        try:
            return int((await call.send("GET", "healthz")).status)
        except ConnectionDropped:
            return "dropped"

    async def run() -> list[int | str]:
        return [await ask() for _ in range(count)]

    return asyncio.run(run())


def test_the_same_seed_fails_the_same_way(serve: Any) -> None:
    """Request by request; another seed fails another way."""
    first, again, other = (_fates(serve(fault_injection=FaultInjection(seed=seed, **ALL))) for seed in (3, 3, 4))
    assert first == again != other


def test_each_kind_comes_in_its_share(serve: Any) -> None:
    """Half of the requests go through, the other half meets the five kinds."""
    fault_injection = FaultInjection(seed=1, **ALL)
    fates = Counter(_fates(serve(fault_injection=fault_injection), 2000))
    assert 900 < fates[200] < 1100
    assert all(120 < count < 280 for count in fault_injection.met.values())
    assert fates.keys() == {200, 408, 429, 500, 502, 503, 504, "dropped"}


def test_other_operations_do_not_change_the_fate_of_one(serve: Any) -> None:
    """The n-th request of an operation meets its fate whatever runs beside it."""
    quiet, busy = (serve(fault_injection=FaultInjection(seed=3, p_5xx=0.5)) for _ in range(2))
    for _ in range(7):
        busy("GET", "sessions")
    assert _fates(quiet, 50) == _fates(busy, 50)


def test_only_the_named_operations_are_struck(serve: Any) -> None:
    """The others work."""
    call = serve(fault_injection=FaultInjection(p_5xx=1, only={"list_sessions"}))
    assert call("GET", "sessions").status >= 500
    assert call("GET", "healthz").status == 200


def test_push_back_says_when_to_come_again(serve: Any) -> None:
    """429 carries Retry-After."""
    reply = serve(fault_injection=FaultInjection(p_429=1, retry_after_s=2))("GET", "healthz")
    assert (reply.status, reply.headers["retry-after"]) == (429, "2")


def test_a_lost_reply_was_handled_and_a_reset_was_not(serve: Any) -> None:
    """After a lost reply the resend under the same key finds what the first one did."""
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    for kind, opened in (("p_lost_reply", 1), ("p_reset", 0)):
        fault_injection = FaultInjection(only={"create_session"}, **{kind: 1.0})
        call = serve(fault_injection=fault_injection)
        with pytest.raises(ConnectionDropped):
            call.post("create_session", body, key="k")
        assert len(call("GET", "sessions").body["sessions"]) == opened
        fault_injection.p_lost_reply = fault_injection.p_reset = 0.0
        assert call.post("create_session", body, key="k").status == 200
        assert len(call("GET", "sessions").body["sessions"]) == 1


def test_a_delay_holds_every_request(serve: Any) -> None:
    """Without holding others: they wait side by side."""
    call = serve(fault_injection=FaultInjection(delay_s=7.0))

    async def many() -> float:
        await asyncio.gather(*(call.send("GET", "healthz") for _ in range(20)))
        return asyncio.get_running_loop().time()

    assert virtual_time.run(many()) == pytest.approx(7.0)


def test_it_is_read_from_text() -> None:
    """As the command line gives it."""
    read = FaultInjection.parse("p_429=0.1, p_5xx=0.05,delay_s=0.01,only=asample+forward", seed=7)
    assert read == FaultInjection(seed=7, p_429=0.1, p_5xx=0.05, delay_s=0.01, only={"asample", "forward"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p_429", "NAME=VALUE"),
        ("p_999=0.1", "p_429"),
        ("p_429=lots", "'lots' is not a number"),
        ("p_429=2", "from 0 to 1"),
        ("p_429=nan", "from 0 to 1"),
        ("p_429=0.9,p_5xx=0.9", "add up to 1.8"),
        ("delay_s=-1", "0 or more"),
        ("only=nothing", "nothing"),
    ],
)
def test_what_it_cannot_be_is_refused(text: str, reason: str) -> None:
    """The text names the part that is wrong."""
    with pytest.raises(ValueError, match=reason):
        FaultInjection.parse(text)
