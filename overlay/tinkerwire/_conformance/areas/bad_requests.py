"""Requirements on requests made from the schemas of the contract, bad ones and valid ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import attrs

from ..client.contract import Contract
from ..client.futures import RESULT_TIMEOUT_S, find_failure, is_final_rejection
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..schema_requests.bad_bodies import BadBody, BadBodyMaker
from ..schema_requests.generated_requests import generate_requests
from ..schema_requests.links import walk
from ..schema_requests.valid_requests import FAMILIES, Scene
from ..subject.server import Server
from ..violation import Blocked, NotApplicable, Violation, expect

AREA = Area("BAD", "bad_requests", "Requests made from the schemas: bad and valid ones")
WAS_ACCEPTED = "accepted"
MAX_NAMED = 5
"""Errors that a failure names."""
GENERATED_REQUESTS = 8
"""Generated requests to each operation."""
MAX_GENERATED_S = 30.0
"""Time for the generated requests to a family: a server that compiles for each shape takes seconds for one."""
OWN_IDS = frozenset(
    {
        "model_id",
        "session_id",
        "sampling_session_id",
        "seq_id",
        "model_seq_id",
        "sampling_session_seq_id",
        "target",
        "timeout",
    }
)
"""Fields that name what the run owns; with generated values in them, most requests would only test unknown ids."""
OWN_NAMES = frozenset({"path", "source_path", "tinker_path", "base_model", "request_id"})
"""Fields that every second request has generated values in."""
MakeBodies = Callable[[BadBodyMaker, Any], Iterator[BadBody]]
NOUNS = {
    "session": "sessions",
    "training": "models and training",
    "sampling": "sampling",
    "futures": "futures",
    "weights": "weights",
}
BAD_KINDS: tuple[tuple[str, str, MakeBodies], ...] = (
    (
        "Reject a request without a required field with 422, and name the field.",
        "without a required field",
        BadBodyMaker.missing,
    ),
    (
        "Check the types of all fields before you use them, and reject wrong ones with 422.",
        "with a value of a wrong type",
        BadBodyMaker.wrong_types,
    ),
    (
        "Check the limits and enumerations of the contract, integers of 64 bits among them, and answer with 422.",
        "with a value beyond its limits",
        BadBodyMaker.out_of_bounds,
    ),
)


def _register(number: int, family: str, remedy: str, error: str, make_bodies: MakeBodies) -> None:
    async def test(server: Server) -> None:
        await _expect_refusals(server, family, make_bodies)

    # A server may take a default for a missing field; that it does not answer with a 5xx is a requirement below.
    register = AREA.may if make_bodies is BadBodyMaker.missing else AREA.should
    register(
        number,
        sentence=f"Requests about {NOUNS[family]} {error} are refused with a 4xx, or their work fails.",
        contract=FAMILIES[family],
        remedy=remedy,
        needs=("MOD-001", "SMP-001"),
    )(test)


for _row, _family in enumerate(FAMILIES):
    for _column, (_remedy, _error, _make_bodies) in enumerate(BAD_KINDS):
        _register(1 + len(BAD_KINDS) * _row + _column, _family, _remedy, _error, _make_bodies)


def _register_valid(number: int, family: str) -> None:
    async def test(server: Server) -> None:
        await _send_generated(server, family)

    AREA.should(
        number,
        sentence=f"Requests about {NOUNS[family]} that fit the schemas are never answered with a 5xx.",
        contract=FAMILIES[family],
        remedy="Answer what you cannot do with a 4xx, or with a failure of the work: clients retry a 5xx for minutes.",
        needs=("MOD-001", "SMP-001"),
        max_s=2 * MAX_GENERATED_S + RESULT_TIMEOUT_S,
    )(test)


for _row, _family in enumerate(FAMILIES):
    _register_valid(1 + len(BAD_KINDS) * len(FAMILIES) + _row, _family)


@attrs.frozen
class _Problem:
    """A bad request that was not refused."""

    text: str
    received: str
    exchange: Exchange | None


@attrs.frozen
class _Findings:
    """Outcome of the bad requests of one kind to a family."""

    sent: int
    problems: tuple[_Problem, ...]
    reason: str
    """Reason why valid requests were rejected; empty if the server took them."""


async def _send_bad(server: Server, family: str, make_bodies: MakeBodies) -> _Findings:
    """Send all bad bodies of one kind to the operations of a family that take valid ones."""
    scene = await Scene.create(server)
    sent, problems, reason = 0, [], ""
    for operation in scene.operations(family):
        method, path, body = await scene.body(operation)
        exchange, result = await scene.send(operation, method, path, body)
        if not exchange.is_success or (result is not None and result.failure is not None):
            # A server that rejects valid requests, too, would pass; other requirements report it.
            if exchange.status != 501:
                reason = f"a valid {operation}: {exchange.describe()}"
            continue
        method, path, body = await scene.body(operation)
        for bad in make_bodies(_bad_body_maker(server.contract, operation), body):
            sent += 1
            try:
                exchange, result = await scene.send(operation, method, path, bad.body)
                received = _problem(exchange)
            except Violation as error:
                received, exchange = error.received, error.exchange or exchange
            if received:
                problems.append(_Problem(f"{operation}, {bad.error}: {received}", received, exchange))
    return _Findings(sent, tuple(problems), reason)


async def _expect_refusals(server: Server, family: str, make_bodies: MakeBodies) -> None:
    """Raise Violation unless all bad requests of one kind to a family are refused."""
    found = await _share_findings(server, family, make_bodies)
    _expect_no_problems(found.problems, found.sent, "a refusal of every bad request")
    if not found.sent and found.reason:
        raise Blocked(found.reason)
    if not found.sent:
        raise NotApplicable("the schemas have no such limits")


async def _share_findings(server: Server, family: str, make_bodies: MakeBodies) -> _Findings:
    async def send() -> _Findings:
        return await _send_bad(server, family, make_bodies)

    return await server.share(f"bad requests about {family}, {make_bodies.__name__}", send)


def _expect_no_problems(problems: Sequence[_Problem], sent: int, expected: str) -> None:
    if problems:
        more = f"; and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
        text = "; ".join(problem.text for problem in problems[:MAX_NAMED])
        raise Violation(expected, f"{len(problems)} of {sent} were not: {text}{more}", problems[0].exchange)


@AREA.should(
    2 + (len(BAD_KINDS) + 1) * len(FAMILIES),
    contract=tuple(name for names in FAMILIES.values() for name in names),
    remedy="Reject a request without a required field with 422, or take a default; a 5xx is retried for minutes.",
    needs=("MOD-001", "SMP-001"),
)
async def missing_fields_are_answered(server: Server) -> None:
    """A request without a required field is answered, with neither a 5xx nor an endless wait."""
    problems: list[_Problem] = []
    sent = 0
    for family in FAMILIES:
        found = await _share_findings(server, family, BadBodyMaker.missing)
        sent += found.sent
        problems += [problem for problem in found.problems if problem.received != WAS_ACCEPTED]
    _expect_no_problems(problems, sent, "a response to every request without a required field")


@AREA.must(
    1 + (len(BAD_KINDS) + 1) * len(FAMILIES),
    contract=("create_session", "create_model", "asample", "retrieve_future", "get_info"),
    remedy="Take each id that you returned where the contract links it.",
    needs=("MOD-001", "SMP-001", "TRN-001"),
    breaks=[Breakage("0.3.0", None, Feature.CONNECT, "cannot use what it created")],
)
async def links_can_be_followed(server: Server) -> None:
    """Each id in a response is accepted where the links of the contract lead, from the session to saved weights."""
    await walk(await Scene.create(server))


async def _send_generated(server: Server, family: str) -> None:
    """Send requests that schemathesis makes, with the ids of this run, to the operations of a family."""
    scene = await Scene.create(server)
    deadline = time.monotonic() + MAX_GENERATED_S
    for operation in scene.operations(family):
        method, template = server.contract.locate(operation)
        generated = await asyncio.to_thread(
            generate_requests, server.contract.document, method, template, GENERATED_REQUESTS
        )
        for number, request in enumerate(generated):
            if time.monotonic() > deadline:
                return
            _, path, own = await scene.body(operation)
            names = OWN_IDS if number % 2 else OWN_IDS | OWN_NAMES
            body = {**request.body, **{name: value for name, value in own.items() if name in names}}
            exchange, _ = await scene.send(operation, method, path, body)
            await _require_answer(server, operation, exchange)


async def _require_answer(server: Server, operation: str, exchange: Exchange) -> None:
    """Raise Violation for a 5xx, no response, or one that the contract does not have."""
    if exchange.status == 501:
        return
    answered = exchange.response is not None and exchange.status < 500
    expect(answered, "a response other than a 5xx", exchange.describe(), exchange)
    if exchange.request.path.endswith(operation):
        server.client.require_contract(operation, exchange)


@lru_cache(maxsize=64)
def _bad_body_maker(contract: Contract, operation: str) -> BadBodyMaker:
    """Return the maker of bad bodies of an operation, which keeps the validators that it compiled."""
    return BadBodyMaker(contract.document, contract.request_schema(operation) or {})


def _problem(exchange: Exchange) -> str:
    """Return what is wrong with the response to a bad request; an empty text for a refusal."""
    if exchange.response is None:
        return exchange.error
    if exchange.status == 200:
        return WAS_ACCEPTED if find_failure(exchange) is None else ""
    return "" if is_final_rejection(exchange) else exchange.describe()
