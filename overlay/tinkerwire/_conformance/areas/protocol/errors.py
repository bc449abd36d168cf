"""Requirements on errors: their form, the field that they name, and bodies that are not JSON."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.call import JSON

from ...checks.session_requests import expect_session, plain_session_request, session_body, session_request, try_session
from ...discovery.probes import UNKNOWN_ID, names_field
from ...exchange import Exchange
from ...subject.server import Server
from ...violation import expect
from .area import AREA


@AREA.should(
    60,
    contract=("create_session 422", "ErrorBody.detail"),
    remedy="Answer invalid requests with a JSON object that has detail; clients show it to users.",
    needs=("SES-001",),
)
async def errors_are_json(server: Server) -> None:
    """An error is a JSON object with a detail."""
    exchange = await _invalid(server, tags=5)
    expect(exchange.media_type == JSON, JSON, exchange.media_type or "no media type", exchange)
    expect(bool(exchange.member("detail")), "a detail", exchange.describe(), exchange)


@AREA.should(
    61,
    contract="create_session 422",
    remedy="Name the wrong field in the error, as FastAPI does in loc.",
    needs=("SES-001",),
)
async def error_names_wrong_field(server: Server) -> None:
    """The error for a field of the wrong type names the field."""
    exchange = await _invalid(server, user_metadata=5)
    expect(names_field(exchange, "user_metadata"), "an error that names user_metadata", exchange.describe(), exchange)


@AREA.should(
    62,
    contract="session_heartbeat 422",
    remedy="Name the missing field in the error, as FastAPI does in loc.",
    needs=("SES-005",),
)
async def error_names_missing_field(server: Server) -> None:
    """The error for a missing field names the field."""
    exchange = await server.client.send(server.client.json_request("POST", "session_heartbeat", {}))
    expect(exchange.is_client_error, "422", exchange.describe(), exchange)
    expect(names_field(exchange, "session_id"), "an error that names session_id", exchange.describe(), exchange)


@AREA.should(
    63,
    contract="create_session 422",
    remedy="Use 422 or 400 for requests that do not fit the contract.",
    needs=("SES-001",),
)
async def invalid_request_has_its_status(server: Server) -> None:
    """A request that does not fit the contract is answered with 422 or 400."""
    exchange = await _invalid(server, tags=5)
    expect(exchange.status in (400, 422), "422", exchange.describe(), exchange)


@AREA.must(
    64,
    contract="create_session 422",
    remedy="Answer a body that is not JSON with 400 or 422; a 5xx is retried for minutes.",
    needs=("SES-001",),
)
async def malformed_json_is_rejected(server: Server) -> None:
    """A body that is not JSON is rejected with a status from 400 to 499."""
    for content in (b"", b'{"tags": [', b"\xff\xfe\x00"):
        exchange = await try_session(server, plain_session_request(server, content))
        expect(exchange.is_client_error, "400 or 422", exchange.describe(), exchange)


@AREA.should(
    68,
    contract="create_session 422",
    remedy="Answer a body with NaN or Infinity with 400 or 422; errors that quote such a value must be JSON, too.",
    needs=("PRO-064",),
)
async def nan_is_rejected(server: Server) -> None:
    """A body with NaN, which is not JSON, is rejected with a status from 400 to 499."""
    exchange = await try_session(server, plain_session_request(server, b'{"tags": [NaN]}'))
    expect(exchange.is_client_error, "400 or 422", exchange.describe(), exchange)


@AREA.must(
    65,
    contract="create_session 422",
    remedy="Answer a JSON body that is not an object with 400 or 422.",
    needs=("SES-001",),
)
async def other_json_is_rejected(server: Server) -> None:
    """A JSON body that is not an object is rejected with a status from 400 to 499."""
    for content in (b"null", b"[]", b'"text"', b"5", b"true"):
        exchange = await try_session(server, plain_session_request(server, content))
        expect(exchange.is_client_error, "400 or 422", exchange.describe(), exchange)


@AREA.must(
    66,
    contract="get_info 404",
    remedy="Do not answer 408, 409, 429 or a 5xx for things that do not exist: clients retry these for minutes.",
    needs=("MOD-002",),
)
async def missing_things_are_not_retried(server: Server) -> None:
    """A request for something that does not exist has a status that clients do not retry."""
    for path, body in (
        ("get_info", {"model_id": UNKNOWN_ID}),
        ("session_heartbeat", {"session_id": UNKNOWN_ID}),
        ("optim_step", {"model_id": UNKNOWN_ID, "adam_params": {"learning_rate": 0.0}, "seq_id": 1}),
    ):
        exchange = await server.client.send(server.client.json_request("POST", path, body))
        is_final = exchange.response is not None and exchange.status not in (408, 409, 429) and exchange.status < 500
        expect(is_final, "a status that is not retried", exchange.describe(), exchange)


@AREA.should(
    67,
    contract="create_session 422",
    remedy="Limit the depth of JSON bodies, and reject deeper ones with 400 or 422.",
    needs=("SES-001",),
)
async def deep_json_is_no_server_error(server: Server) -> None:
    """A body that is nested very deeply is answered without a server error, and later requests are, too."""
    depth = 20_000
    content = b'{"tags":[],"sdk_version":"0.3.0","user_metadata":{"a":' + b"[" * depth + b"]" * depth + b"}}"
    exchange = await try_session(server, plain_session_request(server, content))
    is_fine = exchange.response is not None and exchange.status < 500
    expect(is_fine, "a status below 500", exchange.describe(), exchange)
    await expect_session(server, session_request(server))


async def _invalid(server: Server, **fields: Any) -> Exchange:
    """Try to create a session with wrong fields, and return the rejection."""
    exchange = await try_session(server, plain_session_request(server, session_body(server, **fields)))
    expect(exchange.is_client_error, "a status from 400 to 499", exchange.describe(), exchange)
    return exchange
