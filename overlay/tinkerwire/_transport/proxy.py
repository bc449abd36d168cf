"""The proxy that the environment names for an address."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from .address import is_loopback, parse_http_url


def environment_proxy(base_url: str) -> str | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY set for an address, if any.

    Loopback addresses have no proxy.

    Raises:
        ValueError: the kind of the proxy is not supported, or its address is invalid.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  (it loads half of the mail and web modules)

    parts = urlsplit(base_url)
    host, proxies = parts.hostname or "", getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    # An API key may be sent over plain http to this machine; through a proxy it would leave the machine.
    if (
        not proxy
        or is_loopback(base_url)
        or proxy_bypass(host)
        or proxy_bypass(parts.netloc)
        or _is_in(proxies.get("no"), host)
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    name = f"{parts.scheme.upper()}_PROXY or ALL_PROXY"
    scheme = proxy.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise ValueError(
            f"{name}: {scheme} proxies are not supported; use an http proxy, add {host} to NO_PROXY, or pass "
            "http_client=httpx.AsyncClient(proxy=...), which supports socks with httpx[socks]"
        )
    proxy_url = parse_http_url(proxy)
    if proxy_url is None or proxy_url.fragment or proxy_url.query:
        # The error does not show the address, which may hold a password.
        raise ValueError(f"{name} must be a URL; in a user or password, write # as %23, / as %2F and so on")
    return proxy


def _is_in(ranges: str | None, host: str) -> bool:
    """Return whether a host is an address in one of the ranges of NO_PROXY, such as 10.0.0.0/8."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    for entry in (ranges or "").split(","):
        try:
            if "/" in entry and address in ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False
