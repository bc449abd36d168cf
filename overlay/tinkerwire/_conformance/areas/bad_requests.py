"""Requirements on requests made from the schemas of the contract, bad ones and valid ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..bad_bodies import BadBody, SchemaFaults
from ..exchange import Exchange
from ..refusal import is_refused
from ..requirement import Area
from ..server import Server
from ..valid_requests import FAMILIES, Scene
from ..violation import Blocked, NotApplicable, Violation

AREA = Area("BAD", "bad_requests", "Requests made from the schemas: bad and valid ones")
MAX_NAMED = 5
"""Faults that a failure names."""
MakeBodies = Callable[[SchemaFaults, Any], Iterator[BadBody]]
NOUNS = {
    "session": "sessions",
    "training": "models and training",
    "sampling": "sampling",
    "futures": "futures",
    "weights": "weights",
}
KINDS: tuple[tuple[str, str, MakeBodies], ...] = (
    (
        "Reject a request without a required field with 422, and name the field.",
        "without a required field",
        SchemaFaults.missing,
    ),
    (
        "Check the types of all fields before you use them, and reject wrong ones with 422.",
        "with a value of a wrong type",
        SchemaFaults.wrong_types,
    ),
    (
        "Check the limits and enumerations of the contract, integers of 64 bits among them, and answer with 422.",
        "with a value beyond its limits",
        SchemaFaults.out_of_bounds,
    ),
)


def _register(number: int, family: str, remedy: str, fault: str, make_bodies: MakeBodies) -> None:
    async def test(server: Server) -> None:
        await _expect_refusals(server, family, make_bodies)

    test.__doc__ = f"Requests about {NOUNS[family]} {fault} are refused with a 4xx, or their work fails."
    decorate = AREA.should(number, contract=FAMILIES[family], remedy=remedy, needs=("MOD-001", "SMP-001"))
    decorate(test)


for _row, _family in enumerate(FAMILIES):
    for _column, (_remedy, _fault, _make_bodies) in enumerate(KINDS):
        _register(1 + len(KINDS) * _row + _column, _family, _remedy, _fault, _make_bodies)


async def _expect_refusals(server: Server, family: str, make_bodies: MakeBodies) -> None:
    """Send all bad bodies of one kind to the operations of a family that take valid ones."""
    scene = await Scene.create(server)
    sent, faults = 0, []
    reason = ""
    first: Exchange | None = None
    for operation in scene.operations(family):
        method, path, body = await scene.body(operation)
        exchange, result = await scene.send(operation, method, path, body)
        if exchange.status >= 300 or (result is not None and result.failure is not None):
            # A server that rejects valid requests, too, would pass; other requirements report it.
            if exchange.status != 501:
                reason = f"a valid {operation}: {exchange.describe()}"
            continue
        method, path, body = await scene.body(operation)
        for bad in make_bodies(_faults(server, operation), body):
            sent += 1
            exchange, result = await scene.send(operation, method, path, bad.body)
            problem = _problem(exchange)
            if problem:
                faults.append(f"{operation}, {bad.fault}: {problem}")
                first = first or exchange
    if faults:
        more = f"; and {len(faults) - MAX_NAMED} more" if len(faults) > MAX_NAMED else ""
        text = f"{len(faults)} of {sent} were not: {'; '.join(faults[:MAX_NAMED])}{more}"
        raise Violation("a refusal of every bad request", text, first)
    if not sent and reason:
        raise Blocked(reason)
    if not sent:
        raise NotApplicable("the schemas have no such limits")


def _faults(server: Server, operation: str) -> SchemaFaults:
    schema = server.contract.request_schema(operation)
    return SchemaFaults(server.contract.document, schema or {})


def _problem(exchange: Exchange) -> str:
    """Return what is wrong with the response to a bad request; an empty text for a refusal."""
    if exchange.response is None:
        return exchange.error
    try:
        return "" if is_refused(exchange) else "accepted"
    except Violation as error:
        return error.received
