"""The address of a server: where it comes from, and whether a credential may go there."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from tinkerwire_base.call import url_without_secrets
from tinkerwire_base.errors import TinkerError

SERVICE_DOMAIN = "thinkingmachines.dev"
DEFAULT_BASE_URL = "https://tinker.thinkingmachines.dev/services/tinker-prod"
EMBEDDED = "local"
"""The base URL of the embedded server, in this process and without a socket; ``local:FOLDER`` keeps its checkpoints."""
FOLDER_VARIABLE = "TINKERWIRE_LOCAL_FOLDER"
"""The folder of ``local``; without it that is a temporary one."""


def is_embedded(base_url: str) -> bool:
    """Return whether an address means the embedded server."""
    return base_url == EMBEDDED or base_url.startswith(f"{EMBEDDED}:")


def embedded_folder(base_url: str) -> Path | None:
    """Return the folder in a resolved address of the embedded server; None for a temporary one."""
    _, _, folder = base_url.partition(":")
    return Path(folder) if folder else None


def resolve_base_url(given: str | None) -> str:
    """The server's address: the argument, then TINKER_BASE_URL, then the Tinker service; no trailing slash."""
    address = given or os.environ.get("TINKER_BASE_URL") or DEFAULT_BASE_URL
    url = address.rstrip("/")
    if is_embedded(url):
        return _resolve_embedded(address)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"base_url: {url_without_secrets(url)!r} is not an http(s) URL; for the embedded server say "
            f"base_url={EMBEDDED!r} or '{EMBEDDED}:FOLDER'"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: addresses stand in error texts and logs, and this one may hold a password.
        raise ValueError("base_url: give scheme, host, port and path only; a credential goes into api_key=")
    return url


def is_tinker_service(base_url: str) -> bool:
    """Return whether an address is the Tinker service's own."""
    host = urlsplit(base_url).hostname or ""
    return host == SERVICE_DOMAIN or host.endswith(f".{SERVICE_DOMAIN}")


def _resolve_embedded(address: str) -> str:
    """The address with an absolute folder, so that it means the same folder wherever the program goes."""
    _, colon, folder = address.partition(":")
    if colon and not folder.strip():
        raise ValueError(f"base_url: {address!r} names no folder; say {EMBEDDED}:FOLDER, or {EMBEDDED} for none")
    folder = folder or os.environ.get(FOLDER_VARIABLE, "").strip()
    if not folder:
        return EMBEDDED
    try:
        return f"{EMBEDDED}:{Path(folder).expanduser().resolve()}"
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"base_url: {folder!r} is not a folder that can be used: {error}") from None


def is_loopback(base_url: str) -> bool:
    """Whether a server is on this machine, by its address: no name is looked up but ``localhost``."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_plain_http(base_url: str, hosts: Collection[str] | None) -> None:
    """Refuse to send a credential in the clear.

    Args:
        hosts: those that may have it all the same; default TINKER_PLAIN_HTTP_HOSTS, separated by commas.

    Raises:
        TinkerError: the server is on another machine, its address is plain http, and its host is not named.
    """
    parts = urlsplit(base_url)
    if parts.scheme != "http" or is_loopback(base_url):
        return
    named = os.environ.get("TINKER_PLAIN_HTTP_HOSTS", "").split(",") if hosts is None else hosts
    if parts.hostname not in {host.strip().strip("[]").lower() for host in named}:
        raise TinkerError(
            f"the API key would go over plain http to {parts.hostname}, to be read by anyone on the way; use https or "
            f"a tunnel to a loopback address, or name the host: plain_http_hosts=[{parts.hostname!r}] or "
            f"TINKER_PLAIN_HTTP_HOSTS={parts.hostname}"
        )
