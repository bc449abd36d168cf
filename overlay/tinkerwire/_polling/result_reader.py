"""Results in responses: a value, the report of a failure, or a notice that the future is not finished."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from tinkerwire_base.call import WireResponse, default_converter, response_info
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.errors import APIResponseValidationError, RequestErrorCategory, RequestFailedError

from .._wire import codec
from .pending_result import PendingResult

T = TypeVar("T")

FAILURE_KEYS = ("error", "detail")
"""Keys that turn a response of status 200 into the report of a failure; servers differ."""


def parse_body(response: WireResponse) -> Any:
    """Return the JSON value of a body; None for protobuf and for a body that is not JSON."""
    if codec.is_protobuf(response):
        return None
    try:
        return parse_json(response.content)
    except ValueError:
        return None


def is_final(response: WireResponse, body: Any) -> bool:
    """Check whether a response ends the future: neither an error, nor "try again", nor the mere size of the result."""
    is_unfinished = isinstance(body, dict) and (
        body.get("type") == "try_again" or body.get("status") == "complete_metadata"
    )
    return response.status < 300 and not is_unfinished


def read_result(pending: PendingResult[T], response: WireResponse, body: Any) -> T:
    """Return the result in a final response.

    Args:
        pending: the future.
        response: the response.
        body: its JSON value, from :func:`parse_body`.

    Raises:
        RequestFailedError: the response reports that the request failed.
        APIResponseValidationError: the result does not fit the contract.
    """
    try:
        if codec.is_protobuf(response):
            return cast(T, codec.decode(response.content, pending.result_type or object))
        if body is None and pending.result_type is not None:
            raise ValueError("the body must be JSON and not null")
        if isinstance(body, dict):
            _raise_failure(pending, body)
            body.update({key: value for key, value in pending.null_defaults.items() if body.get(key) is None})
        if pending.result_type is None:
            return cast(T, None)
        result: T = default_converter().structure(body, pending.result_type)
    except ValueError as error:
        raise APIResponseValidationError(
            response_info(response), message=f"{pending.name}: the result does not fit the contract: {error}"
        ) from None
    return result


def _raise_failure(pending: PendingResult[Any], body: dict[str, Any]) -> None:
    for key in FAILURE_KEYS:
        if key in body:
            category = RequestErrorCategory.read(body.get("category"))
            raise RequestFailedError(f"{pending.name} failed: {body[key]}", pending.request_id, category)
