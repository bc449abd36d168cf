"""Checks of the way to a server that send no request: proxy, name lookup, connection and TLS."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import SplitResult, urlsplit

from .._transport.address import parse_http_url
from .._transport.connector import port_of
from .._transport.errors import CONNECT_TIMEOUT_S
from .._transport.proxy import environment_proxy
from .finding import Finding, has_failed


def check_network(url: str) -> list[Finding]:
    """Check the way to the server of a resolved address, or to the proxy in front of it; blocks.

    The list ends with the first failure. It is empty for the embedded server and for recordings.
    """
    if parse_http_url(url) is None:
        return []
    try:
        proxy = environment_proxy(url)
    except ValueError as error:
        return [Finding("proxy", "failed", str(error), "correct the variable, or add the host to NO_PROXY")]
    peer = urlsplit(url if proxy is None else proxy)
    shown = "none is used" if proxy is None else f"{peer.scheme}://{peer.hostname}:{port_of(peer)}"
    findings = [Finding("proxy", "ok", shown), _check_lookup(peer)]
    if not has_failed(findings):
        findings.append(_check_connection(peer))
    return findings


def _check_lookup(peer: SplitResult) -> Finding:
    host = peer.hostname or ""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return Finding("name lookup", "failed", f"{host}: {error}", "check the spelling of the address and the network")
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Finding("name lookup", "ok", f"{host} is {', '.join(addresses[:4])}")


def _check_connection(peer: SplitResult) -> Finding:
    """Connect to the server or the proxy; with TLS, verify its certificate."""
    host, port = peer.hostname or "", port_of(peer)
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_S) as connection:
            if peer.scheme != "https":
                return Finding("connection", "ok", f"{host} port {port}, without TLS")
            context = ssl.create_default_context()
            with context.wrap_socket(connection, server_hostname=host.rstrip(".")) as secured:
                return Finding("connection", "ok", f"{host} port {port}, {secured.version()}")
    except ssl.SSLCertVerificationError as error:
        remedy = "set SSL_CERT_FILE to the certificates of your organization, and check the clock"
        return Finding("connection", "failed", f"TLS: {error.verify_message}", remedy)
    except ssl.SSLError as error:
        remedy = "check the port, and write http:// if the server has no TLS"
        return Finding("connection", "failed", f"{host} port {port} does not speak TLS: {error}", remedy)
    except (OSError, ValueError) as error:
        remedy = "check the port, that the server runs, and the firewall"
        return Finding("connection", "failed", f"{host} port {port}: {error}", remedy)
