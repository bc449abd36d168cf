"""The command ``tinkerwire doctor``."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from tinkerwire_base.errors import AuthenticationError, TinkerError

from .._connection.retry import RetryConfig
from .._transport.address import is_embedded, is_loopback, refuse_plain_http, resolve_base_url
from .client import silence_interrupts
from .config import find_key_source
from .errors import CommandFailed, clean_line
from .framework import SharedOptions, command, pass_options
from .output import Table, print_result

Status = Literal["ok", "warning", "failed"]

TIMEOUT_S = 10.0
SLOW_MS = 1000.0
"""Latency from which the check warns."""
MAX_CLOCK_SKEW_S = 60.0
"""Difference of the clocks from which tokens are rejected early or late."""
SAMPLES = 3


class Finding(NamedTuple):
    """Result of one check."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None


@command("doctor")
@pass_options
def cli(options: SharedOptions) -> None:
    """Check the connection to the server, step by step.

    Checks address, name lookup, proxy, connection, TLS, key, clock, dialect and latency. Each problem comes with the
    way out. The exit code is 1 if a check failed; a warning alone is a success.
    """
    checks = list(_run_checks(options))
    is_ok = all(check.status != "failed" for check in checks)
    shown = [check._replace(detail=clean_line(check.detail)) for check in checks]
    data = {
        "base_url": clean_line(options.base_url or os.environ.get("TINKER_BASE_URL") or "default"),
        "is_ok": is_ok,
        "checks": [check._asdict() for check in shown],
    }
    rows = [
        (check.name, check.status, f"{check.detail}; {check.remedy}" if check.remedy else check.detail)
        for check in shown
    ]
    print_result(options, data, Table(("Check", "Status", "Detail"), rows))
    if not is_ok:
        failed = [check.name for check in checks if check.status == "failed"]
        raise CommandFailed(f"failed: {', '.join(failed)}; see the details above")


def _run_checks(options: SharedOptions) -> Iterator[Finding]:
    """Yield the checks; after a failure, those that depend on it are left out."""
    try:
        url = resolve_base_url(options.base_url)
    except ValueError as error:
        yield Finding(
            "address", "failed", str(error), "set --base-url or TINKER_BASE_URL to an http(s) URL, or to local"
        )
        return
    source = "--base-url" if options.base_url else "TINKER_BASE_URL" if os.environ.get("TINKER_BASE_URL") else "default"
    yield Finding("address", "ok", f"{url} ({source})")
    key = _check_key(url)
    if not is_embedded(url):
        for check in (_check_lookup, _check_proxy, _check_connection):
            result = check(url)
            yield result
            if result.status == "failed":
                yield key
                return
    yield key
    if key.status == "failed":
        return
    yield from _check_server(options, url)


def _check_key(url: str) -> Finding:
    if is_embedded(url):
        return Finding("key", "ok", "the embedded server needs no key")
    try:
        source = find_key_source(url)
        if source is not None:
            refuse_plain_http(url, None)
    except (TinkerError, OSError, ValueError) as error:
        return Finding("key", "failed", str(error), "correct the setting; `tinkerwire config` lists all")
    if source is not None:
        return Finding("key", "ok", f"from {source}")
    if is_loopback(url):
        return Finding("key", "ok", "none; a server on this machine needs none by default")
    return Finding("key", "failed", "missing", "set TINKER_API_KEY, or run `tinkerwire auth login`")


def _find_proxy(url: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _check_lookup(url: str) -> Finding:
    host = urlsplit(url).hostname or ""
    if _find_proxy(url):
        return Finding("name lookup", "ok", "left to the proxy")
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return Finding("name lookup", "failed", f"{host}: {error}", "check the spelling of the address and the network")
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Finding("name lookup", "ok", f"{host} is {', '.join(addresses[:4])}")


def _check_proxy(url: str) -> Finding:
    proxy = _find_proxy(url)
    if proxy is None:
        return Finding("proxy", "ok", "none is used")
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    name = f"{parts.scheme}://{parts.hostname}:{parts.port or 80}"
    if parts.scheme not in ("http", "https"):
        remedy = "use an http proxy, or add the host to NO_PROXY"
        return Finding("proxy", "failed", f"{name} has a scheme that is not supported", remedy)
    return Finding("proxy", "ok", name)


def _check_connection(url: str) -> Finding:
    """Connect to the server, or to the proxy, and verify the certificate of a server without a proxy."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _find_proxy(url):
        return Finding("connection", "ok", "checked with the requests below, through the proxy")
    host = parts.hostname or ""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as connection:
            if parts.scheme != "https":
                return Finding("connection", "ok", f"{host} port {port}, without TLS")
            context = ssl.create_default_context()
            with context.wrap_socket(connection, server_hostname=host) as secured:
                return Finding("connection", "ok", f"{host} port {port}, {secured.version()}")
    except ssl.SSLError as error:
        if not isinstance(error, ssl.SSLCertVerificationError):
            remedy = "check the port, and write http:// if the server has no TLS"
            return Finding("connection", "failed", f"{host} port {port} does not speak TLS: {error}", remedy)
        remedy = "set SSL_CERT_FILE to the certificates of your organization, and check the clock"
        return Finding("connection", "failed", f"TLS: {error.verify_message}", remedy)
    except (OSError, ValueError) as error:
        remedy = "check the port, that the server runs, and the firewall"
        return Finding("connection", "failed", f"{host} port {port}: {error}", remedy)


def _check_server(options: SharedOptions, url: str) -> Iterator[Finding]:
    """Yield the checks that send requests."""
    from .._service import ServiceClient  # noqa: PLC0415

    silence_interrupts()
    retry = RetryConfig(progress_timeout=TIMEOUT_S)
    times: list[float] = []
    count = 0
    try:
        with ServiceClient(base_url=options.base_url, retry=retry) as service:
            for _ in range(SAMPLES):
                started = time.monotonic()
                count = len(service.get_server_capabilities().supported_models)
                times.append((time.monotonic() - started) * 1000)
            dialect = service.dialect
    except AuthenticationError as error:
        yield Finding("request", "failed", str(error), "check TINKER_API_KEY, or run `tinkerwire auth login`")
        return
    except TinkerError as error:
        yield Finding("request", "failed", str(error), "check that the address is that of a Tinker server")
        return
    except (OSError, ValueError) as error:
        yield Finding("settings", "failed", str(error), "correct the setting; `tinkerwire config` lists all")
        return
    yield Finding("request", "ok", f"the server accepts the credential and has {count} models")
    yield Finding("dialect", "ok", str(dialect))
    if not is_embedded(url):
        yield _check_clock(url)
    latency = min(times)
    is_slow = latency > SLOW_MS
    remedy = "check the network; long polls keep training fast in spite of latency" if is_slow else None
    yield Finding("latency", "warning" if is_slow else "ok", f"{latency:.0f} ms, best of {SAMPLES}", remedy)


def _check_clock(url: str) -> Finding:
    """Compare the clock with the Date header of the server."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415
    from urllib.error import HTTPError, URLError  # noqa: PLC0415
    from urllib.request import ProxyHandler, Request, build_opener  # noqa: PLC0415

    # The client uses no proxy for a server on this machine.
    opener = build_opener(ProxyHandler({}) if _find_proxy(url) is None else ProxyHandler())
    request = Request(f"{url}/api/v1/healthz", method="GET")
    try:
        try:
            with opener.open(request, timeout=TIMEOUT_S) as response:
                date = response.headers.get("date")
        except HTTPError as error:
            date = error.headers.get("date")
        skew = abs((parsedate_to_datetime(date or "") - datetime.now(timezone.utc)).total_seconds())
    except (URLError, OSError, ValueError, TypeError):
        return Finding("clock", "ok", "not compared; the server sends no date")
    if skew > MAX_CLOCK_SKEW_S:
        return Finding("clock", "warning", f"differs from the server's by {skew:.0f} s", "synchronize the clock (NTP)")
    return Finding("clock", "ok", f"within {max(skew, 1):.0f} s of the server's")
