"""What an endpoint stub returns: one call, described without sending it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import attrs

from .converter import Converter
from .errors import APIResponseValidationError, RequestInfo, ResponseInfo, status_error
from .unset import UNSET

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
JSON = "application/json"


@attrs.frozen(kw_only=True)
class Operation:
    """One row of the contract's endpoint table."""

    name: str
    tag: str
    method: str
    path: str
    """Template: ``/api/v1/sessions/{session_id}``."""
    request: Any = None
    """The model of the JSON body, None without body."""
    results: Mapping[int | None, Any]
    """What each status means: a type, or None for no content; key None stands for every other status."""
    accept: tuple[str, ...] = (JSON,)

    def result_type(self, status: int) -> Any:
        """The type of the answer's body at ``status``."""
        return self.results.get(status, self.results.get(None, Any))


@attrs.frozen(kw_only=True)
class WireRequest:
    """A call as it goes over the wire."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = attrs.field(repr=False)
    content: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class WireResponse:
    """An answer as it came over the wire; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = attrs.field(factory=dict)
    content: bytes = b""


@attrs.frozen
class Call(Generic[T]):
    """A call that is ready to be sent, by anything that can send HTTP; ``T`` is its result.

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
        """The call as bytes. Raises ValueError for a path value that cannot stand in a path."""
        operation = self.operation
        headers = {"accept": ", ".join(operation.accept)}
        content = None
        if self.body is not None:
            headers["content-type"] = JSON
            content = converter.encode(self.body)
        return WireRequest(
            method=operation.method,
            path=operation.path.format(**{name: _segment(name, value) for name, value in self.path.items()}),
            query=tuple((k, _text(v)) for k, v in self.query.items() if v is not None and v is not UNSET),
            headers=headers,
            content=content,
        )

    def parse(self, response: WireResponse, converter: Converter, url: str = "") -> T:
        """The result, or the APIStatusError / APIResponseValidationError that the answer amounts to."""
        request = RequestInfo(method=self.operation.method, url=url or self.operation.path)
        info = response_info(response)
        if response.status >= 300 and response.status not in self.operation.results:
            raise error_of(request, info)
        kind = self.operation.result_type(response.status)
        if kind is None:
            value: Any = None
        else:
            try:
                value = converter.decode(response.content, kind)
            except ValueError as fault:
                if response.status >= 400:
                    raise error_of(request, info) from None
                raise APIResponseValidationError(
                    f"{self.operation.name}: the answer does not fit the contract: {fault}",
                    request=request,
                    response=info,
                    body=info.text,
                ) from None
        if response.status >= 400:
            raise error_of(request, info, value)
        result: T = value
        return result

    def send(self, client: httpx.Client, converter: Converter | None = None) -> T:
        """Send through an ``httpx.Client`` with a base URL and return the result.

        Raises:
            APIStatusError: the server answered with an error status.
            APIResponseValidationError: the answer does not fit the contract.
        """
        converter = converter or default_converter()
        response = client.request(**_httpx_arguments(self.encode(converter)))
        return self.parse(_from_httpx(response), converter, str(response.url))

    async def asend(self, client: httpx.AsyncClient, converter: Converter | None = None) -> T:
        """:meth:`send` through an ``httpx.AsyncClient``."""
        converter = converter or default_converter()
        response = await client.request(**_httpx_arguments(self.encode(converter)))
        return self.parse(_from_httpx(response), converter, str(response.url))


_default: list[Converter] = []


def default_converter() -> Converter:
    """The converter that knows every wire version; built at its first use."""
    if not _default:
        _default.append(Converter())
    return _default[0]


def response_info(response: WireResponse) -> ResponseInfo:
    """The parts of an answer that errors keep."""
    text = response.content.decode("utf-8", "replace")
    return ResponseInfo(status_code=response.status, headers=dict(response.headers), text=text)


def error_of(request: RequestInfo, response: ResponseInfo, body: Any = None) -> Exception:
    """The APIStatusError for an answer of status >= 300; its text shows the server's body, whatever its shape."""
    shown = " ".join(response.text.split())
    if len(shown) > 1000:
        shown = shown[:1000] + " ..."
    status = response.status_code
    message = f"{request.method} {request.url}: HTTP {status}: {shown or 'no body'}"
    return status_error(status)(
        message, response=response, request=request, body=response.text if body is None else body
    )


def _segment(name: str, value: Any) -> str:
    text = str(value)
    if not text or any(part in ("", ".", "..") for part in text.split("/")):
        raise ValueError(f"{name}: {value!r} cannot stand in a path; give a non-empty id")
    return quote(text, safe="/:")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
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
