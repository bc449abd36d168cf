"""Responses with a future in place of a value, or a value in place of a future.

The contract has one of the two for each operation. Servers differ: one creates a sampling session in the background,
another trains before it responds. Clients follow the response.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import attrs

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.reflection import fields_of, wire_name
from tinkerwire_generated import models
from tinkerwire_generated.constants import RESULT_TYPES

from . import codec

ALWAYS_VALUES = frozenset(
    {
        # Polls need what these give.
        "auth_config",
        "auth_token",
        "client_config",
        "client_dynamic_config",
        "retrieve_future",
        "retrieve_futures",
        # No operation waits for the results of these calls.
        "cancel_future",
        "finish_session",
        "healthz",
        "session_heartbeat",
        "telemetry",
    }
)
FUTURE_KEYS = frozenset({"request_id", "model_id", "type", "status", "queue_state", "sample_sequence_ids"})
"""Keys of a future, which do not belong to the result."""
FINISHED = frozenset({"complete", "completed", "done", "finished", "ok", "ready", "success", "succeeded"})
"""Statuses of a response that has the result."""


@attrs.frozen
class ImmediateResult:
    """The response to an operation that already has its result."""

    response: WireResponse


@attrs.frozen
class DeferredResult(Exception):
    """A response with a future in place of a value."""

    request_id: str
    request_type: str
    """The name of the operation as polls give it, such as ``CreateSamplingSession``."""
    result_type: Any
    """None for a result without content."""


# As text, which does not create the model at import.
Submission: TypeAlias = "models.UntypedAPIFuture | ImmediateResult"


def deferred_result(call: Call[Any], response: WireResponse) -> DeferredResult | None:
    """Return the future that a response has in place of the value of the contract; None for a value."""
    name = call.operation.name
    # Most responses have no request_id, and need not be parsed twice.
    if response.status >= 300 or name in ALWAYS_VALUES or b'"request_id"' not in response.content:
        return None
    value = _object(response)
    request_id = value.get("request_id")
    if not isinstance(request_id, str) or not request_id or value.get("error") is not None:
        return None
    kind = call.operation.result_type(response.status)
    # A server may also give a value the id of its request. Without an expected value, only the status shows a future.
    if not _is_unfinished(value) and (kind is None or _has_result(kind, value)):
        return None
    return DeferredResult(request_id, "".join(part.title() for part in name.split("_")), kind)


def result_type(operation: str) -> type:
    """Return the type of the result of an operation that the server queues."""
    kind: type = getattr(models, RESULT_TYPES[operation])
    return kind


def has_immediate_result(call: Call[models.UntypedAPIFuture], response: WireResponse) -> bool:
    """Check whether the response to an operation has its result in place of the future of the contract."""
    kind = result_type(call.operation.name)
    if codec.is_protobuf(response):
        return codec.is_decodable(kind)
    value = _object(response)
    if isinstance(value.get("request_id"), str):
        return not _is_unfinished(value) and _has_result(kind, value)
    keys, type_name = _result_keys(kind)
    return not keys.isdisjoint(value) or (type_name is not None and value.get("type") == type_name)


def _object(response: WireResponse) -> dict[str, Any]:
    try:
        value = parse_json(response.content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_unfinished(value: Mapping[str, Any]) -> bool:
    status = value.get("status")
    return isinstance(status, str) and status.lower() not in FINISHED


def _has_result(kind: type, value: Mapping[str, Any]) -> bool:
    """Check whether an object with a request_id has a field of a result that futures do not have."""
    return any(value.get(key) is not None for key in _result_keys(kind)[0] - FUTURE_KEYS)


@cache
def _result_keys(kind: type) -> tuple[frozenset[str], str | None]:
    """Return the keys of a result, and the value of its key ``type``."""
    fields = fields_of(kind)
    types = [field.default for field in fields if wire_name(field) == "type"]
    return frozenset(map(wire_name, fields)) - {"type"}, types[0] if types else None
