"""The address of a server: its sources, and checks whether a credential may be sent to it."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tinkerwire_base.call import url_without_secrets
from tinkerwire_base.errors import TinkerError

SERVICE_DOMAIN = "thinkingmachines.dev"
DEFAULT_BASE_URL = "https://tinker.thinkingmachines.dev/services/tinker-prod"
EMBEDDED = "local"
"""The base URL of the embedded server in this process; ``local:FOLDER`` keeps its checkpoints."""
REPLAY = "replay"
"""The base URL ``replay:FILE`` answers requests from a recording."""
FOLDER_VARIABLE = "TINKERWIRE_LOCAL_FOLDER"
"""The variable that sets the folder of ``local``; by default the folder is temporary."""


_recorded_addresses: dict[str, str] = {}


def is_replay(base_url: str) -> bool:
    """Return whether an address means a recording."""
    return base_url.startswith(f"{REPLAY}:")


def replay_file(base_url: str) -> Path:
    """Return the file in a resolved address of a recording."""
    return Path(base_url.partition(":")[2])


def set_recorded_address(base_url: str, recorded: str) -> None:
    """Set the address of the server that a recording was made with."""
    _recorded_addresses[base_url] = recorded


def is_embedded(base_url: str) -> bool:
    """Return whether an address means the embedded server."""
    return base_url == EMBEDDED or base_url.startswith(f"{EMBEDDED}:")


def embedded_folder(base_url: str) -> Path | None:
    """Return the folder in a resolved address of the embedded server; None for a temporary one."""
    _, _, folder = base_url.partition(":")
    return Path(folder) if folder else None


def resolve_base_url(base_url: str | None) -> str:
    """Return the server's address without a trailing slash: the argument, TINKER_BASE_URL, or the Tinker service."""
    address = base_url or os.environ.get("TINKER_BASE_URL") or DEFAULT_BASE_URL
    url = address.rstrip("/")
    if is_replay(address):
        return _resolve_replay(address)
    if is_embedded(url):
        return _resolve_embedded(address)
    parts = parse_http_url(url)
    if parts is None:
        raise ValueError(
            f"base_url: {url_without_secrets(url)!r} is not an http(s) URL; for the embedded server use "
            f"base_url={EMBEDDED!r} or '{EMBEDDED}:FOLDER', for a recording '{REPLAY}:FILE'"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        # The error does not show the address, which may hold a password.
        raise ValueError("base_url must have scheme, host, port and path only; pass a credential as api_key=")
    return url


def address_without_secrets(address: str) -> str:
    """Return an address, valid or not, without user, password and query; paths of files and folders stay complete."""
    return address if is_embedded(address) or is_replay(address) else url_without_secrets(address)


def parse_http_url(url: str) -> SplitResult | None:
    """Return the parts of an http or https URL with a host and a valid port, if any; None for other text."""
    try:
        parts = urlsplit(url)
        # Reading the port checks it.
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_valid else None


def is_tinker_service(base_url: str) -> bool:
    """Return whether an address is the Tinker service's own, or that of a recording of it."""
    host = urlsplit(_recorded_addresses.get(base_url, base_url)).hostname or ""
    return host == SERVICE_DOMAIN or host.endswith(f".{SERVICE_DOMAIN}")


def _resolve_replay(address: str) -> str:
    file = address.partition(":")[2].strip()
    if not file:
        raise ValueError(f"base_url: {address!r} does not name a file; use {REPLAY}:FILE")
    try:
        return f"{REPLAY}:{Path(file).expanduser().resolve()}"
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"base_url: the file {file!r} cannot be used: {error}") from None


def _resolve_embedded(address: str) -> str:
    """Return the address with an absolute folder, which does not depend on the working directory."""
    _, colon, folder = address.partition(":")
    if colon and not folder.strip():
        raise ValueError(
            f"base_url: {address!r} does not name a folder; use {EMBEDDED}:FOLDER, or {EMBEDDED} for a temporary folder"
        )
    folder = folder or os.environ.get(FOLDER_VARIABLE, "").strip()
    if not folder:
        return EMBEDDED
    try:
        return f"{EMBEDDED}:{Path(folder).expanduser().resolve()}"
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"base_url: the folder {folder!r} cannot be used: {error}") from None


def is_loopback(base_url: str) -> bool:
    """Return whether an address is on this machine; of names, only ``localhost`` is."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_plain_http(base_url: str, hosts: Collection[str] | None) -> None:
    """Raise an error if a credential would be sent over plain http to another machine.

    Args:
        base_url: the address of the server.
        hosts: hosts that may receive a credential over plain http; default TINKER_PLAIN_HTTP_HOSTS, comma-separated.

    Raises:
        TinkerError: the address is plain http, and its host is neither this machine nor among ``hosts``.
    """
    parts = urlsplit(base_url)
    if parts.scheme != "http" or is_loopback(base_url):
        return
    named = os.environ.get("TINKER_PLAIN_HTTP_HOSTS", "").split(",") if hosts is None else hosts
    if parts.hostname not in {host.strip().strip("[]").lower() for host in named}:
        raise TinkerError(
            f"the API key would be sent unencrypted, over plain http, to {parts.hostname}; use https or a tunnel to a "
            f"loopback address, or allow the host: plain_http_hosts=[{parts.hostname!r}] or "
            f"TINKER_PLAIN_HTTP_HOSTS={parts.hostname}"
        )
