"""The proxy that the environment names for an address."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from .address import is_loopback


def environment_proxy(base_url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name for an address; none for this machine's own.

    Raises:
        ValueError: one of a kind that is not spoken, or that is no address.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  (it loads half of the mail and web modules)

    parts = urlsplit(base_url)
    host, proxies = parts.hostname or "", getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    # A key may go in the clear to this machine because it does not leave it; through a proxy it would.
    if (
        not proxy
        or is_loopback(base_url)
        or proxy_bypass(host)
        or proxy_bypass(parts.netloc)
        or _is_in(proxies.get("no"), host)
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    name, found = f"{parts.scheme.upper()}_PROXY or ALL_PROXY", urlsplit(proxy)
    if found.scheme not in ("http", "https"):
        raise ValueError(
            f"{name}: {found.scheme} proxies are not spoken; name an http one, put {host} into NO_PROXY, or give "
            "http_client=httpx.AsyncClient(proxy=...), which speaks more with httpx[socks]"
        )
    if not _is_address(found):
        # Not shown, as it may hold a password.
        raise ValueError(f"{name}: not an address; in a user or password, write # as %23, / as %2F and so on")
    return proxy


def _is_in(ranges: str | None, host: str) -> bool:
    """Whether a host is an address in one of the ranges among the entries of NO_PROXY, as in 10.0.0.0/8."""
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


def _is_address(parts: SplitResult) -> bool:
    try:
        return bool(parts.hostname) and parts.port is not False and not parts.fragment and not parts.query
    except ValueError:
        return False
