"""Errors of requests that got no response.

The errors of libraries end here. A transport raises APIConnectionError or APITimeoutError. Their ``__cause__`` is a
copy of the system's error, such as ConnectionRefusedError or gaierror. The library's own error may hold the headers of
the request, and so the API key.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TypeVar

from tinkerwire_base.call import WireRequest
from tinkerwire_base.errors import APIConnectionError, APITimeoutError, RequestInfo

E = TypeVar("E", bound=APIConnectionError)
CONNECT_TIMEOUT_S = 5.0
"""Time limit for looking up the name, connecting and the TLS handshake together."""
HINTS = {
    errno.EMFILE: "; this process has opened all files that it may open; raise the limit with ulimit -n, or set "
    "RetryConfig(max_connections=...) for fewer samples in flight",
    errno.EADDRNOTAVAIL: "; this machine has no free port for another connection; set "
    "RetryConfig(max_connections=...) for fewer samples in flight",
}
"""Ways out, by the number of the system's error."""


def describe_trust_store() -> str:
    """Return a text that names the trusted certificates, and how to trust others."""
    file = os.environ.get("SSL_CERT_FILE")
    if not file:
        return (
            "the system's certificate store is trusted; set SSL_CERT_FILE to trust the certificates of a file instead"
        )
    return f"SSL_CERT_FILE={file} is trusted" + ("" if Path(file).is_file() else ", but the file does not exist")


def timeout_error(request: WireRequest, base_url: str, timeout_s: float) -> APITimeoutError:
    """Make the error for a request without a response in time."""
    message = f"no response within {timeout_s:g} s"
    return _error(APITimeoutError, request, base_url, message, may_have_been_sent=True)


def no_time_error(
    request: WireRequest, base_url: str, message: str = "no time was left to send the request"
) -> APITimeoutError:
    """Make the error for a request that was not sent before the deadline of its operation."""
    return _error(APITimeoutError, request, base_url, message, may_have_been_sent=False)


def connect_timeout_error(
    request: WireRequest, base_url: str, limit_s: float = CONNECT_TIMEOUT_S, hint: str = ""
) -> APITimeoutError:
    """Make the error for a server that cannot be reached in time."""
    message = f"no connection within {limit_s:g} s{hint}"
    return _error(APITimeoutError, request, base_url, message, may_have_been_sent=False)


def connection_error(
    request: WireRequest, base_url: str, cause: Exception, hint: str = "", *, may_have_been_sent: bool = True
) -> APIConnectionError:
    """Make the error for a request that got no response; its text names the cause."""
    message = f"{type(cause).__name__}: {_without_password(str(cause))}".removesuffix(": ")
    system_error = _system_error(cause)
    hint += HINTS.get(system_error.errno, "") if system_error and system_error.errno else ""
    error = _error(APIConnectionError, request, base_url, message + hint, may_have_been_sent=may_have_been_sent)
    error.__cause__ = system_error or ConnectionError(message)
    return error


def _without_password(text: str) -> str:
    """Remove user and password from URLs: a text may hold the address of a proxy."""
    return re.sub(r"://[^/\s]*@", "://", text)


def _system_error(error: BaseException) -> OSError | None:
    """Return a copy of the system's error behind a library's, whose arguments and frames may hold headers."""
    visited: list[BaseException] = []
    innermost: OSError | None = None
    current: BaseException | None = error
    while current is not None and current not in visited:
        visited.append(current)
        system = getattr(current, "os_error", current)
        if isinstance(system, OSError) and type(system).__module__ in ("builtins", "socket", "ssl"):
            arguments = [_without_password(value) if isinstance(value, str) else value for value in system.args[:2]]
            innermost = type(system)(*arguments)
        current = current.__cause__ or current.__context__
    return innermost


def _error(kind: type[E], request: WireRequest, base_url: str, message: str, *, may_have_been_sent: bool) -> E:
    url = base_url + request.path
    info = RequestInfo(method=request.method, url=url)
    # Without a connection the server cannot have received the request: its seq_id is free again.
    return kind(info, f"{request.method} {url}: {message}", may_have_been_sent=may_have_been_sent)
