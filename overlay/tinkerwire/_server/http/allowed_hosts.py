"""Allowed hosts: protection against web pages that reach the server by DNS rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from tinkerwire._server.http.responses import HttpError

LOCALHOST = "localhost"
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class AllowedHosts:
    """Loopback names, the address at which a connection arrived, and further hosts.

    A page of another site reaches the server under a name of that site, which browsers send as Host. Browsers send
    the page's own address as Origin.

    Args:
        names: further names or addresses, without a port.
        command: the command that starts this server, for errors.

    Raises:
        ValueError: a name is not a host.
    """

    def __init__(self, names: Iterable[str] = (), command: str = "tinkerwire serve") -> None:
        self._hosts = {parse_host(name) for name in names}
        self._command = command

    def check(self, hosts: Iterable[str], origins: Iterable[str], own_address: str | None) -> None:
        """Reject a request for another host, or from a page of another site.

        Args:
            hosts: all Host headers of the request.
            origins: all Origin headers of the request.
            own_address: the address of the server's end of the connection.

        Raises:
            HttpError: 421 for another host, 403 for a page of another site.
        """
        values = list(hosts)
        if len(values) != 1 or not self._is_allowed(values[0], own_address):
            shown = ", ".join(ascii(host)[:200] for host in values) or "missing"
            raise HttpError(
                421,
                f"Host is {shown}, but this server only accepts loopback names, its own address and the hosts of "
                f"--allow-host; start it with {self._command} --allow-host HOST",
            )
        for origin in origins:
            if not self._is_allowed(_host_of(origin), own_address):
                raise HttpError(
                    403,
                    f"Origin is {ascii(origin)[:200]}, but pages of other sites are not allowed; start the server with "
                    f"{self._command} --allow-host HOST to allow the pages of a host",
                )

    def _is_allowed(self, text: str, own_address: str | None) -> bool:
        try:
            host = parse_host(text)
        except ValueError:
            return False
        if host in self._hosts or (own_address is not None and host == _parse_address(own_address)):
            return True
        if isinstance(host, str):
            return host == LOCALHOST or host.endswith(f".{LOCALHOST}")
        return host.is_loopback


@lru_cache(maxsize=256)
def parse_host(text: str) -> str | IPv4Address | IPv6Address:
    """Return the name or address in a Host header, in lower case, without port and trailing dot.

    Raises:
        ValueError: the text is not a host.
    """
    address = _parse_address(text)
    if not isinstance(address, str):
        return address
    match = _HOST.fullmatch(text)
    name = match["name"].lower().removesuffix(".") if match else ""
    if not name:
        raise ValueError(f"{ascii(text)[:200]} is not a host; pass a name or an address, such as gpu.example.org")
    if name.startswith("["):
        return ip_address(name[1:-1])
    return _parse_address(name)


@lru_cache(maxsize=256)
def _parse_address(text: str) -> str | IPv4Address | IPv6Address:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    # A dual-stack socket reports IPv4 addresses as IPv4-mapped IPv6 addresses.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
