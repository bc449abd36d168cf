"""Calls: the descriptions of requests that endpoint stubs return, and the reading of responses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import attrs

from .conversion.json_text import parse_json
from .errors import APIResponseValidationError, APIStatusError, RequestInfo, ResponseInfo, status_error
from .reflection import members_of
from .short_repr import short_repr
from .unset import UNSET
from .validators import require_text

if TYPE_CHECKING:
    import httpx

    from .conversion.converter import Converter

T = TypeVar("T")
JSON = "application/json"
PROTOBUF = "application/x-protobuf"


@attrs.frozen(kw_only=True, slots=False)
class Operation:
    """One row of the contract's endpoint table."""

    name: str
    tag: str
    method: str
    path: str
    """Template: ``/api/v1/sessions/{session_id}``."""
    multi_segment: tuple[str, ...] = ()
    """Path parameters whose slashes are not escaped."""
    get_request: Callable[[], Any] | None = None
    get_results: Callable[[], Mapping[int, Any]]
    accept: tuple[str, ...] = (JSON,)

    # Functions give the types, so that importing an endpoint creates no models.
    @cached_property
    def request(self) -> Any:
        """Return the model of the JSON body; None without a body."""
        return self.get_request() if self.get_request else None

    @cached_property
    def results(self) -> Mapping[int, Any]:
        """Return the type of the body by status; None for no content."""
        return self.get_results()

    def is_result(self, status: int) -> bool:
        """Return whether a response of ``status`` is a result: 408 is, if its type is among the results of 200."""
        if status < 300:
            return True
        kind = self.results.get(status, Any)
        return kind is None or kind in members_of(self.result_type(200))

    def result_type(self, status: int) -> Any:
        """Return the type of the body at ``status``, None for no content; other successes are like the first."""
        if status in self.results:
            return self.results[status]
        successes = [kind for code, kind in self.results.items() if code < 300]
        if status < 300 and successes:
            return successes[0]
        return None if status == 204 else Any


@attrs.frozen(kw_only=True)
class SizeLimit:
    """Maximum size of a decompressed body, and the setting that sets it."""

    max_bytes: int
    setting: str


@attrs.frozen(kw_only=True)
class ResponseLimits:
    """Maximum sizes of the response; None for any size."""

    result: SizeLimit | None = None
    error: SizeLimit | None = None

    def of(self, status: int) -> SizeLimit | None:
        """Return the limit for a response with this status."""
        return self.result if status < 300 else self.error


@attrs.frozen(kw_only=True)
class WireRequest:
    """The HTTP request of a call."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = attrs.field(repr=False)
    content: bytes | None = attrs.field(default=None, repr=False)
    limits: ResponseLimits = attrs.field(default=ResponseLimits(), repr=False, eq=False)


@attrs.frozen(kw_only=True)
class WireResponse:
    """An HTTP response; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = attrs.field(factory=dict)
    content: bytes = b""


@attrs.frozen
class Call(Generic[T]):
    """A call that any HTTP client can send; ``T`` is the type of its result.

    Attributes:
        operation: the endpoint.
        path: values of the path's parameters.
        query: query parameters; UNSET and None are left out.
        body: the request model, or None.
    """

    operation: Operation
    path: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    query: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    body: Any = attrs.field(default=None, kw_only=True)

    def encode(self, converter: Converter) -> WireRequest:
        """Encode the call as an HTTP request.

        Raises:
            ValueError: a value cannot be part of a path.
            DialectError, TypeError: the body cannot be sent; see :meth:`Converter.encode`.
        """
        operation = self.operation
        headers = {"accept": ", ".join(operation.accept)}
        content = None
        if self.body is not None:
            headers["content-type"] = JSON
            content = converter.encode(self.body)
        return WireRequest(
            method=operation.method,
            path=operation.path.format(
                **{name: _segment(name, value, name in operation.multi_segment) for name, value in self.path.items()}
            ),
            query=tuple((k, _text(k, v)) for k, v in self.query.items() if v is not None and v is not UNSET),
            headers=headers,
            content=content,
        )

    def parse(self, response: WireResponse, converter: Converter, url: str = "") -> T:
        """Return the result of a response, or raise its APIStatusError or APIResponseValidationError."""
        if not self.operation.is_result(response.status):
            raise error_of(self._request_info(url), response_info(response))
        kind = self.operation.result_type(response.status)
        value: Any = None
        if kind is not None:
            try:
                value = converter.decode(response.content, kind)
            except ValueError as error:
                request, info = self._request_info(url), response_info(response)
                if response.status >= 300:
                    raise error_of(request, info) from None
                raise APIResponseValidationError(
                    info,
                    _decoded(info.text),
                    f"{request.method} {request.url}: HTTP {response.status}: the response does not fit the contract: "
                    f"{error}: {_shorten(info.text)}",
                    request=request,
                ) from None
        result: T = value
        return result

    def _request_info(self, url: str) -> RequestInfo:
        return RequestInfo(method=self.operation.method, url=_without_user(url) or self.operation.path)

    def send(self, client: httpx.Client, converter: Converter | None = None) -> T:
        """Send the call through an ``httpx.Client`` with a base URL and return the result.

        Raises:
            APIStatusError: the server returned an error status.
            APIResponseValidationError: the response does not fit the contract.
            httpx.TransportError: the client received no response.
        """
        converter = converter or default_converter()
        response = client.request(**_httpx_arguments(self.encode(converter)))
        return self.parse(_from_httpx(response), converter, str(response.url))

    async def asend(self, client: httpx.AsyncClient, converter: Converter | None = None) -> T:
        """Send the call through an ``httpx.AsyncClient``; see :meth:`send`."""
        converter = converter or default_converter()
        response = await client.request(**_httpx_arguments(self.encode(converter)))
        return self.parse(_from_httpx(response), converter, str(response.url))


_default: list[Converter] = []


def default_converter() -> Converter:
    """Return the converter for all wire versions; it is built at first use."""
    # The converter imports cattrs, which takes 8 ms.
    from .conversion.converter import Converter  # noqa: PLC0415

    if not _default:
        _default.append(Converter(report=logging.getLogger("tinkerwire").warning))
    return _default[0]


def response_info(response: WireResponse) -> ResponseInfo:
    """Return the parts of a response that errors keep."""
    text = response.content.decode("utf-8", "replace")
    headers = dict(response.headers)
    if "location" in headers:
        headers["location"] = url_without_secrets(headers["location"])
    return ResponseInfo(status_code=response.status, headers=headers, text=text)


def error_of(request: RequestInfo, response: ResponseInfo) -> APIStatusError:
    """Make the APIStatusError of a response of status >= 300; its text contains the body of the response.

    Its ``body`` is the JSON value of the response, or else its text.
    """
    target = response.headers.get("location", "") if 300 <= response.status_code < 400 else ""
    redirect = f" redirects to {url_without_secrets(target)[:500]}, which is not followed" if target else ""
    return status_error(response.status_code)(
        f"{request.method} {request.url}: HTTP {response.status_code}{redirect}: {_shorten(response.text)}",
        response=response,
        request=request,
        body=_decoded(response.text),
    )


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:1000] + " ..." if len(plain) > 1000 else plain or "no body"


def _decoded(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except ValueError:
        return text.strip()


def url_without_secrets(url: str) -> str:
    """Return a URL, valid or not, without user, password, query and fragment."""
    plain = url.partition("?")[0].partition("#")[0]
    if "@" not in url:
        return plain
    scheme, mark, _ = url.partition("://")
    # A password may hold any character, so everything up to the last @ belongs to it.
    return (scheme + mark if mark else "") + url.rpartition("@")[2].partition("?")[0].partition("#")[0]


def _without_user(url: str) -> str:
    """Return a URL without user and password."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def _segment(name: str, value: Any, is_multi: bool) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected the id as a str, got {short_repr(value)} ({type(value).__name__})")
    require_text(name, value)
    # A dot segment changes the path, even if escaped.
    parts = value.split("/") if is_multi else [value]
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name}: {value!r} cannot be part of a path; pass a non-empty id")
    return "/".join(quote(part, safe=":") for part in parts)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        require_text(name, value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _httpx_arguments(request: WireRequest) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query,
        "headers": dict(request.headers),
        "content": request.content,
    }


def _from_httpx(response: httpx.Response) -> WireResponse:
    return WireResponse(status=response.status_code, headers=dict(response.headers), content=response.content)
