"""One request and its response, as they went over the wire, and the request as a curl line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson

from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse

from .._credentials.shareable_headers import is_shareable

MAX_TEXT = 4000
"""Characters of a body that a report shows."""


@attrs.frozen
class Exchange:
    """A request with its response."""

    request: WireRequest
    url: str
    response: WireResponse | None
    """None if no response came."""
    error: str
    """Reason why no response came; empty if one did."""
    seconds: float
    """Time from the request to the whole response."""

    @property
    def status(self) -> int:
        """Status of the response; 0 if none came."""
        return self.response.status if self.response else 0

    @property
    def is_success(self) -> bool:
        """True for a response with a status from 200 to 299."""
        return 200 <= self.status < 300

    @property
    def is_client_error(self) -> bool:
        """True for a response with a status from 400 to 499."""
        return 400 <= self.status < 500

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the response, with names in lower case; none if no response came."""
        return self.response.headers if self.response else {}

    @property
    def content(self) -> bytes:
        """Body of the response; empty if no response came."""
        return self.response.content if self.response else b""

    @property
    def media_type(self) -> str:
        """Media type of the response without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """Return the JSON value of the response; None for a body that is not JSON."""
        if self.media_type == PROTOBUF:
            return None
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError:
            return None

    def member(self, name: str) -> Any:
        """Return a member of the JSON object in the response; None without the member or such an object."""
        body = self.json()
        return body.get(name) if isinstance(body, dict) else None

    def describe(self) -> str:
        """Return the response in one line."""
        if self.response is None:
            return self.error
        return f"HTTP {self.status} {shorten(body_text(self.response.content, self.media_type), 300)}".strip()


def find_submission(poll: Exchange, recent: Sequence[Exchange]) -> Exchange | None:
    """Return the exchange that created the future of a poll; None for another request, or if it is not recent."""
    try:
        body = orjson.loads(poll.request.content or b"")
    except orjson.JSONDecodeError:
        return None
    request_id = body.get("request_id") if isinstance(body, dict) else None
    if not isinstance(request_id, str):
        return None
    for exchange in reversed(recent):
        if exchange.request.path != poll.request.path and exchange.member("request_id") == request_id:
            return exchange
    return None


def body_text(content: bytes | None, media_type: str) -> str:
    """Return a body as text; the size of a binary one."""
    if not content:
        return ""
    if media_type == PROTOBUF:
        return f"({len(content)} bytes of protobuf)"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"({len(content)} bytes of {media_type or 'no media type'})"


def shorten(text: str, length: int = MAX_TEXT) -> str:
    """Return a text of at most some characters."""
    return text if len(text) <= length else f"{text[:length]} ... ({len(text)} characters)"


def curl_line(exchange: Exchange) -> str:
    """Return a shell command that repeats the request, with ``$TINKER_API_KEY`` in place of the key."""
    request = exchange.request
    parts = ["curl", "-sS", "-i", "-X", request.method]
    for name, value in request.headers.items():
        if name.lower() == "x-api-key":
            parts.append('-H "x-api-key: $TINKER_API_KEY"')
        elif name.lower() == "x-idempotency-key" or is_shareable(name, value):
            parts += ["-H", shlex.quote(f"{name}: {value}")]
    prefix = ""
    content = request.content
    if content:
        media_type = request.headers.get("content-type", "").partition(";")[0]
        if media_type == PROTOBUF or b"\0" in content:
            prefix = f"printf %s {_base64(content)} | base64 -d | "
            parts += ["--data-binary", "@-"]
        else:
            parts += ["--data-binary", shlex.quote(shorten(content.decode("utf-8", "replace")))]
    return f"{prefix}{' '.join(parts)} {shlex.quote(exchange.url)}"


def _base64(content: bytes) -> str:
    from base64 import b64encode  # noqa: PLC0415

    return b64encode(content).decode() if len(content) <= MAX_TEXT else f"'({len(content)} bytes, in the JSON report)'"
