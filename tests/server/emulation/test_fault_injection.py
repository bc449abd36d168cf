"""Fault injection: the right kinds of failures, with the right probabilities, reproducible by a seed."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from support import virtual_time
from support.server_fixtures import Caller, ServerFactory
from tinkerwire.local import ConnectionDropped, FaultInjection

ALL = {"p_408": 0.1, "p_429": 0.1, "p_5xx": 0.1, "p_reset": 0.1, "p_lost_reply": 0.1}


def send_many(call: Caller, count: int = 200) -> list[int | str]:
    """Send requests and return the status of each, or "dropped"."""

    async def send() -> int | str:
        try:
            return (await call.send("GET", "healthz")).status
        except ConnectionDropped:
            return "dropped"

    async def run() -> list[int | str]:
        return [await send() for _ in range(count)]

    return asyncio.run(run())


def test_equal_seeds_inject_equal_faults(serve: ServerFactory) -> None:
    """Equal seeds fail the same requests; another seed fails others."""
    first, repeated, different = (
        send_many(serve(fault_injection=FaultInjection(seed=seed, **ALL))) for seed in (3, 3, 4)
    )
    assert first == repeated != different


def test_each_fault_has_its_probability(serve: ServerFactory) -> None:
    """Half of the requests succeed, and five kinds of injected faults share the other half."""
    fault_injection = FaultInjection(seed=1, **ALL)
    outcomes = Counter(send_many(serve(fault_injection=fault_injection), 2000))
    assert 900 < outcomes[200] < 1100
    assert all(120 < count < 280 for count in fault_injection.counts.values())
    assert outcomes.keys() == {200, 408, 429, 500, 502, 503, 504, "dropped"}


def test_other_operations_do_not_change_the_faults_of_an_operation(serve: ServerFactory) -> None:
    """The n-th request of an operation gets the same injected fault, regardless of other requests."""
    quiet, busy = (serve(fault_injection=FaultInjection(seed=3, p_5xx=0.5)) for _ in range(2))
    for _ in range(7):
        busy("GET", "sessions")
    assert send_many(quiet, 50) == send_many(busy, 50)


def test_only_the_named_operations_fail(serve: ServerFactory) -> None:
    """Operations that ``only`` does not name succeed."""
    call = serve(fault_injection=FaultInjection(p_5xx=1, only={"list_sessions"}))
    assert call("GET", "sessions").status >= 500
    assert call("GET", "healthz").status == 200


def test_429_has_retry_after(serve: ServerFactory) -> None:
    """A 429 has the configured Retry-After."""
    reply = serve(fault_injection=FaultInjection(p_429=1, retry_after_s=2))("GET", "healthz")
    assert (reply.status, reply.headers["retry-after"]) == (429, "2")


def test_lost_reply_was_handled_and_reset_was_not(serve: ServerFactory) -> None:
    """After a lost reply, a resend with the same key returns the first outcome."""
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    for kind, created in (("p_lost_reply", 1), ("p_reset", 0)):
        fault_injection = FaultInjection(only={"create_session"}, **{kind: 1.0})
        call = serve(fault_injection=fault_injection)
        with pytest.raises(ConnectionDropped):
            call.post("create_session", body, key="k")
        assert len(call("GET", "sessions").body["sessions"]) == created
        fault_injection.p_lost_reply = fault_injection.p_reset = 0.0
        assert call.post("create_session", body, key="k").status == 200
        assert len(call("GET", "sessions").body["sessions"]) == 1


def test_delayed_requests_run_in_parallel(serve: ServerFactory) -> None:
    """Twenty delayed requests take as long as one."""
    call = serve(fault_injection=FaultInjection(delay_s=7.0))

    async def send_in_parallel() -> float:
        await asyncio.gather(*(call.send("GET", "healthz") for _ in range(20)))
        return asyncio.get_running_loop().time()

    assert virtual_time.run(send_in_parallel()) == pytest.approx(7.0)


def test_planned_faults_meet_the_next_requests_in_order(serve: ServerFactory) -> None:
    """Planned faults come before faults by probability, each for as many requests as planned."""
    fault_injection = FaultInjection(p_408=1)
    call = serve(fault_injection=fault_injection)
    fault_injection.fail_next(429, count=2)
    fault_injection.drop_next()
    fault_injection.fail_next(418)
    assert fault_injection.planned_count == 4
    assert send_many(call, 5) == [429, 429, "dropped", 418, 408]
    assert fault_injection.counts == {"429": 2, "reset": 1, "418": 1, "408": 1}
    assert fault_injection.planned_count == 0


def test_planned_faults_wait_for_their_operations(serve: ServerFactory) -> None:
    """Other operations than the named ones meet no fault, and leave the plan as it is."""
    fault_injection = FaultInjection()
    call = serve(fault_injection=fault_injection)
    fault_injection.fail_next(500, only="list_sessions")
    assert send_many(call, 3) == [200, 200, 200]
    assert fault_injection.planned_count == 1
    assert call("GET", "sessions").status == 500
    assert call("GET", "sessions").status == 200


def test_planned_loss_of_a_reply_handles_the_request(serve: ServerFactory) -> None:
    """The request whose response is dropped has its effect."""
    fault_injection = FaultInjection()
    call = serve(fault_injection=fault_injection)
    fault_injection.drop_next(only={"create_session"}, after_handling=True)
    with pytest.raises(ConnectionDropped):
        call.create_session()
    assert len(call("GET", "sessions").body["sessions"]) == 1


def test_planned_delay_is_for_its_requests_only(serve: ServerFactory) -> None:
    """The next requests are delayed, and later ones are not."""
    fault_injection = FaultInjection()
    call = serve(fault_injection=fault_injection)
    fault_injection.delay_next(7.0, count=2)

    async def send() -> list[float]:
        loop, times = asyncio.get_running_loop(), []
        for _ in range(3):
            assert (await call.send("GET", "healthz")).status == 200
            times.append(loop.time())
        return times

    assert virtual_time.run(send()) == pytest.approx([7.0, 14.0, 14.0])


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("fail_next", {"status": 200}, "status must be from 400 to 599, got 200"),
        ("fail_next", {"status": "500"}, "status must be"),
        ("fail_next", {"status": 500, "count": 0}, "count must be a whole number of at least 1, got 0"),
        ("drop_next", {"count": 1.5}, "count must be"),
        ("drop_next", {"only": "generate"}, "unknown operation generate; choose from"),
        ("delay_next", {"seconds": -1}, "seconds must be 0 or more"),
        ("delay_next", {"seconds": float("nan")}, "seconds must be 0 or more"),
    ],
)
def test_invalid_plans_are_rejected(method: str, arguments: dict[str, object], reason: str) -> None:
    """An invalid argument raises ValueError, and plans nothing."""
    fault_injection = FaultInjection()
    with pytest.raises(ValueError, match=reason):
        getattr(fault_injection, method)(**arguments)
    assert fault_injection.planned_count == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", "x"), ("delay_s", "x"), ("p_408", None), ("retry_after_s", True), ("only", 3), ("only", [3])],
)
def test_arguments_of_wrong_types_are_rejected(name: str, value: object) -> None:
    """The error names the argument."""
    with pytest.raises(TypeError, match=f"{name}: expected "):
        FaultInjection(**{name: value})  # type: ignore[arg-type]


def test_one_operation_needs_no_list() -> None:
    """A name alone is the name of an operation, as in a plan."""
    assert FaultInjection(only="asample") == FaultInjection(only={"asample"})


def test_options_are_parsed() -> None:
    """The text of the command line sets the same options as the constructor."""
    parsed = FaultInjection.parse("p_429=0.1, p_5xx=0.05,delay_s=0.01,only=asample+forward", seed=7)
    assert parsed == FaultInjection(seed=7, p_429=0.1, p_5xx=0.05, delay_s=0.01, only={"asample", "forward"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p_429", "write p_429=VALUE"),
        ("p_999=0.1", "unknown option 'p_999'; choose from delay_s, p_408, p_429"),
        ("seed=7", "unknown option 'seed'"),
        ("p_429=lots", "'lots' is not a number"),
        ("p_429=2", "from 0 to 1"),
        ("p_429=nan", "from 0 to 1"),
        ("p_429=0.9,p_5xx=0.9", "add up to 1.8"),
        ("delay_s=-1", "0 or more"),
        ("delay_s=inf", "0 or more"),
        ("only=nothing", "unknown operation nothing"),
    ],
)
def test_invalid_options_are_rejected_by_name(text: str, reason: str) -> None:
    """The error names the invalid part."""
    with pytest.raises(ValueError, match=reason):
        FaultInjection.parse(text)
