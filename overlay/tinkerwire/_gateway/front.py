"""The side of the gateway that clients see: routing, reading and encoding for one wire version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Operation, WireRequest, WireResponse
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_generated.availability import FIELD_VERSIONS

from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._server.http.body_thread import BodyThread
from .._server.http.content_encoding import decompress
from .._server.http.encoding import ResultEncoder
from .._server.http.openapi import Document, load_contract
from .._server.http.responses import HttpError
from .._server.http.routing import Router
from .._server.http.validation import Validator
from .._wire.codec import is_decodable
from .._wire.contract_rules import contract_rules
from .matching import fits_all
from .recognition import ClientWire

OTHER_FORM_STATUSES = frozenset({404, 405, 415, 422})
"""Statuses of a request that may fit another wire version."""
UNKNOWN_FORM = 415
"""Status of a body whose media type or encoding a version lacks."""
DOT_SEGMENTS = frozenset({".", ".."})
"""Segments of a path that lead a server, or a proxy before it, to another path."""
_SLASH = re.compile(r"[/\\]")


class Front:
    """The server of one wire version, without handlers.

    Args:
        version: a version of the contract.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.document: Document = load_contract(version)
        self.router = Router(self.document)
        self.validator = Validator(self.document)
        self.encoder = ResultEncoder(version)
        self._rules = contract_rules(version, version, f"wire {version}")

    def has_field(self, model: str, field: str) -> bool:
        """Return whether the version has a field of a model."""
        return self._rules.may_have(FIELD_VERSIONS.get(model, {}).get(field))


@lru_cache(maxsize=16)
def front_of(version: str) -> Front:
    """Return the front of a version of the contract."""
    return Front(version)


@attrs.define(kw_only=True)
class ClientRequest:
    """A request of a client, whose body is read when it is needed.

    Args:
        front: the front of the client's wire version.
        operation: the operation.
        path: decoded values of the path's parameters.
        wire: the request as the client sent it, with header names in lower case.
        is_certain: True if the client speaks the version of the front; False if only the form suggests it.
    """

    front: Front
    operation: Operation
    path: Mapping[str, str]
    wire: WireRequest
    body_thread: BodyThread
    """Reads large bodies."""
    is_certain: bool = True
    names_version: bool = True
    """True if the client names its version in the headers; a body of any other is read, unless it is large."""
    packs_numbers: bool = False
    """Read numbers as arrays of the dtypes of protobuf; set before the body is read, if it is sent as protobuf."""
    _content: bytes | None = attrs.field(default=None, init=False)
    _body: Any = attrs.field(default=None, init=False)
    _is_read: bool = attrs.field(default=False, init=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by lower-case name."""
        return self.wire.headers

    @property
    def content(self) -> bytes:
        """Return the bytes of the body without their compression; empty without a body.

        Raises:
            HttpError: the body is not valid in its encoding, or too large.
        """
        if self._content is None:
            self._content = decompress(self.wire.content or b"", content_encoding(self.wire.headers))
        return self._content

    @property
    def body(self) -> Any:
        """Return the request model of the body; None without a body.

        Raises:
            HttpError: the body does not fit the client's wire version.
        """
        if not self._is_read:
            self._body = self.front.validator.parse_body(
                self.operation, self.wire.content, self.wire.headers, packs_numbers=self.packs_numbers
            )
            self._is_read = True
        return self._body

    async def read_body(self) -> Any:
        """Return :attr:`body`, after a large one was read off the event loop.

        Raises:
            HttpError: the body does not fit the client's wire version.
        """
        return self._body if self._is_read else await self.body_thread.run(self.wire, lambda: self.body)

    @property
    def query(self) -> dict[str, Any]:
        """Return the query parameters that the client sent, converted.

        Raises:
            HttpError: a parameter does not fit the client's wire version.
        """
        if not self.wire.query:
            return {}
        values = self.front.validator.parse_query(self.operation, self.wire.query)
        return {name: values[name] for name, _ in self.wire.query}

    @property
    def wants_protobuf(self) -> bool:
        """True if the client accepts results as protobuf."""
        return PROTOBUF in self.wire.headers.get("accept", "").lower()

    def takes_protobuf(self, result_type: type | None) -> bool:
        """Return whether the client expects results of a type as protobuf."""
        if result_type is not None and not is_decodable(result_type):
            return False
        return self.wants_protobuf

    def json_response(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> WireResponse:
        """Create a response with a model or a JSON value, in the client's wire version."""
        content = self.front.encoder.encode_json(value)
        return WireResponse(status=status, headers={"content-type": JSON, **(headers or {})}, content=content)


def read_request(wire: WireRequest, client: ClientWire, body_thread: BodyThread) -> ClientRequest:
    """Return the request of a client: in its version, or in the first likely version that the request fits.

    Raises:
        HttpError: the request fits no version that the client may speak; the error is that of the likeliest one that
            has the operation and the form of the body.
    """
    likeliest: HttpError | None = None
    for version in client.versions:
        front = front_of(version)
        try:
            operation, path = front.router.find(wire.method, wire.path)
            if any(part in DOT_SEGMENTS for value in path.values() for part in _SLASH.split(value)):
                raise HttpError(404, f"{wire.method} {wire.path} is not an endpoint of this server")
            request = ClientRequest(
                front=front,
                operation=operation,
                path=path,
                wire=wire,
                body_thread=body_thread,
                names_version=client.is_known,
                is_certain=_is_certain(operation.name, client, wire),
            )
            if not request.is_certain:
                _ = request.body, request.query
            return request
        except HttpError as error:
            if error.status not in OTHER_FORM_STATUSES:
                raise
            if likeliest is None or _is_more_specific(error, likeliest):
                likeliest = error
    assert likeliest is not None
    raise likeliest


def _is_more_specific(error: HttpError, other: HttpError) -> bool:
    """Return whether an error is about more than another: about the content, the form of the body, or the path."""

    def rank(status: int) -> int:
        return 2 if status in ENDPOINT_MISSING else int(status == UNKNOWN_FORM)

    return rank(error.status) < rank(other.status)


def _is_certain(operation: str, client: ClientWire, wire: WireRequest) -> bool:
    """Return whether a request need not be read to find out which of the client's versions it is in."""
    if len(client.versions) == 1:
        return True
    if not client.is_known or wire.query or "content-encoding" in wire.headers:
        return False
    return fits_all(operation, client.versions, media_type(wire.headers), wire.content or b"")


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type of a body, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def content_encoding(headers: Mapping[str, str]) -> str:
    """Return the encoding of a body; empty without one."""
    encoding = headers.get("content-encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty one for any other content."""
    try:
        value = parse_json(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def is_missing_endpoint(response: WireResponse, path: str) -> bool:
    """Return whether a response is about the path of a request, and not about a thing that the request names."""
    if response.status == 404:
        detail = json_object(response.content).get("detail")
        # Frameworks give this text, or none, for a path that they do not know.
        return detail is None or str(detail).strip(" .").lower() == "not found" or path in str(detail)
    return response.status == 405
