"""The hosts under which a server answers, so that a web page cannot reach it by DNS rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from tinkerwire._server.http.responses import HttpError

LOCALHOST = "localhost"
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class AllowedHosts:
    """Loopback names, the address at which a connection arrived, and the hosts that were named.

    A page of another site reaches the server under a name of that site, which browsers send as Host; they send the
    page's own address as Origin.

    Args:
        named: names or addresses, without a port.

    Raises:
        ValueError: one of them is not a host.
    """

    def __init__(self, named: Iterable[str] = ()) -> None:
        self._named = {parse_host(name) for name in named}

    def check(self, hosts: Iterable[str], origins: Iterable[str], own_address: str | None) -> None:
        """Refuse a request for another host, or from a page of another site.

        Args:
            hosts: all Host headers of the request.
            origins: all Origin headers.
            own_address: the address of the server's end of the connection.

        Raises:
            Refusal: 421 for another host, 403 for a page of another site.
        """
        given = list(hosts)
        if len(given) != 1 or not self._is_allowed(given[0], own_address):
            shown = ", ".join(ascii(host)[:200] for host in given) or "missing"
            raise HttpError(
                421,
                f"Host is {shown}, and this server answers only for loopback names, its own address and the hosts of "
                "--allow-host; start it with tinkerwire serve --allow-host HOST",
            )
        for origin in origins:
            if not self._is_allowed(_host_of(origin), own_address):
                raise HttpError(
                    403,
                    f"Origin is {ascii(origin)[:200]}, and pages of other sites have no access; start the server with "
                    "tinkerwire serve --allow-host HOST to let in those of a host",
                )

    def _is_allowed(self, text: str, own_address: str | None) -> bool:
        try:
            host = parse_host(text)
        except ValueError:
            return False
        if host in self._named or (own_address is not None and host == _address(own_address)):
            return True
        if isinstance(host, str):
            return host == LOCALHOST or host.endswith(f".{LOCALHOST}")
        return host.is_loopback


def parse_host(text: str) -> str | IPv4Address | IPv6Address:
    """Return the name or address in a Host header, without case, port and trailing dot; ValueError without one."""
    bare = _address(text)
    if not isinstance(bare, str):
        return bare
    match = _HOST.fullmatch(text)
    name = match["name"].lower().removesuffix(".") if match else ""
    if not name:
        raise ValueError(f"{ascii(text)[:200]} is not a host; give a name or an address, such as gpu.example.org")
    if name.startswith("["):
        return ip_address(name[1:-1])
    return _address(name)


def _address(text: str) -> str | IPv4Address | IPv6Address:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    # A socket for both families shows addresses of the older one as those of the newer.
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
