"""Walks along the links of the contract: each request uses what an earlier response returned.

The walk is the same in each run. The state machine of schemathesis draws its steps at random: six walks of eight steps
did not create a single model, and it rejects servers that give each thing an id of its own as flaky.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import attrs

from tinkerwire_base.call import JSON
from tinkerwire_generated.constants import RESULT_TYPES

from ..client.contract import Contract
from ..exchange import Exchange
from ..violation import expect
from .valid_requests import Scene

STARTS = ("create_session", "asample", "get_session", "get_training_run")
"""Operations from which walks start."""
NOT_WALKED = frozenset(
    {"delete_checkpoint", "finish_session", "list_sessions", "list_training_runs", "publish_checkpoint", "unload_model"}
)
"""Operations that end what the walk uses, or lead to what other runs own."""
PATH_FIELDS = frozenset({"path", "model_path", "tinker_path"})
"""Fields for a path of weights: each operation takes one kind of them only, and may refuse the others."""
NEED_MORE = frozenset({"optim_step"})
"""Operations that a server may refuse although all ids are right: a step needs gradients on some."""
MAX_REQUESTS = 60


@attrs.frozen
class LinkedRequest:
    """A request that a link describes, with the values that an earlier response gives it."""

    operation: str
    body: dict[str, Any]
    parameters: dict[str, Any]


def next_steps(contract: Contract, operation: str, exchange: Exchange) -> Iterator[LinkedRequest]:
    """Yield the requests that the links of a response describe.

    A link without a value in the response leads nowhere: the result of a future has an id or a path, not both.
    """
    if operation not in contract.operations or exchange.media_type != JSON:
        return
    response = contract.operations[operation]["responses"].get(str(exchange.status), {})
    if "$ref" in response:
        response = contract.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    for link in response.get("links", {}).values():
        body = {name: _value(text, exchange) for name, text in link.get("requestBody", {}).items()}
        parameters = {name: _value(text, exchange) for name, text in link.get("parameters", {}).items()}
        if None not in (*body.values(), *parameters.values()):
            yield LinkedRequest(link["operationId"], body, parameters)


async def walk(scene: Scene) -> int:
    """Follow each link once from each operation, and return the number of requests.

    Raises:
        Violation: an id of a response is refused where the contract links it, or the server fails.
    """
    contract, server = scene.server.contract, scene.server
    waiting: deque[LinkedRequest] = deque()
    for name in STARTS:
        if contract.has_operation(name):
            parameters = {"session_id": scene.session_id, "training_run_id": scene.model.id}
            waiting.append(LinkedRequest(name, {}, {key: parameters[key] for key in _path_parameters(contract, name)}))
    followed: set[tuple[str, str, tuple[str, ...]]] = set()
    numbers: dict[str, int] = {}
    count = 0
    while waiting and count < MAX_REQUESTS:
        step = waiting.popleft()
        if step.operation in NOT_WALKED or step.operation in server.missing:
            continue
        if contract.locate(step.operation)[0] != "GET" and not contract.request_schema(step.operation):
            continue
        method, path, body = await _request(scene, step, numbers)
        exchange, result = await scene.send(step.operation, method, path, body)
        count += 1
        if step.operation not in NEED_MORE and not PATH_FIELDS & step.body.keys():
            is_done = exchange.is_success and (result is None or result.failure is None)
            expect(is_done, f"a successful {step.operation} with the values of the link", exchange.describe(), exchange)
        expect(0 < exchange.status < 500, "a response other than a 5xx", exchange.describe(), exchange)
        source = "retrieve_future" if step.operation in RESULT_TYPES else step.operation
        for following in next_steps(contract, source, exchange):
            edge = (step.operation, following.operation, tuple(sorted(following.body)))
            if edge not in followed:
                followed.add(edge)
                waiting.append(following)
    return count


async def _request(scene: Scene, step: LinkedRequest, numbers: dict[str, int]) -> tuple[str, str, Any]:
    """Return method, path and body of a step: a valid request with the values of the link."""
    method, template = scene.server.contract.locate(step.operation)
    if method == "GET":
        path = template.format(**{name: quote(str(value), safe="/") for name, value in step.parameters.items()})
        return method, path.removeprefix("/api/v1/"), None
    method, path, body = await scene.body(step.operation)
    body = {**body, **step.body}
    model_id = body.get("model_id")
    if model_id != scene.model.id and "seq_id" in body and isinstance(model_id, str):
        # The first operation of another model has its own number.
        numbers[model_id] = body["seq_id"] = numbers.get(model_id, 0) + 1
    return method, path, body


def _path_parameters(contract: Contract, operation: str) -> list[str]:
    template = contract.locate(operation)[1]
    return [part[1:-1] for part in template.split("/") if part.startswith("{")]


def _value(expression: str, exchange: Exchange) -> Any:
    """Return the value of a runtime expression of OpenAPI in the JSON body of a response; None without one."""
    source, _, pointer = expression.partition("#")
    if source != "$response.body":
        return None
    value: Any = exchange.json()
    for part in pointer.strip("/").split("/"):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value
