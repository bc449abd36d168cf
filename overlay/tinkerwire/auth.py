"""The credential and the address: where they come from, and a wrapper that never shows a secret."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from tinkerwire_base.errors import TinkerError

DEFAULT_BASE_URL = "https://tinker.thinkingmachines.dev/services/tinker-prod"
EMBEDDED = "local"
"""The base URL that stands for the embedded server, in this process and without a socket."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Secret:
    """A value that repr, str and format do not show; :meth:`reveal` is the only way out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, to be put on the wire and nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


def resolve_base_url(given: str | None) -> str:
    """The server's address: the argument, then TINKER_BASE_URL, then the Tinker service; no trailing slash."""
    url = (given or os.environ.get("TINKER_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
    if url == EMBEDDED:
        return url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"base_url: {url!r} is not an http(s) URL; for the embedded server say base_url={EMBEDDED!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: addresses stand in error texts and logs, and this one may hold a password.
        raise ValueError("base_url: give scheme, host, port and path only; a credential goes into api_key=")
    return url


def resolve_api_key(given: str | None, base_url: str) -> Secret | None:
    """The API key: the argument, then TINKER_API_KEY; only the embedded and loopback servers do without.

    Raises:
        TinkerError: there is none, or it would go over plain http to another machine.
    """
    value = given or os.environ.get("TINKER_API_KEY") or ""
    if base_url == EMBEDDED:
        return None
    parts = urlsplit(base_url)
    is_loopback = parts.hostname in LOOPBACK
    if not value:
        if is_loopback:
            return None
        raise TinkerError(
            "no API key: give api_key=, set TINKER_API_KEY, or use the embedded server "
            f"with base_url={EMBEDDED!r} (or TINKER_BASE_URL={EMBEDDED})"
        )
    if not value.isascii() or any(ch.isspace() or not ch.isprintable() for ch in value):
        raise TinkerError(
            "the API key holds blanks or characters beyond printable ASCII; check how it was copied"
        )
    if parts.scheme == "http" and not is_loopback:
        raise TinkerError(
            f"the API key would go over plain http to {parts.hostname}; use https, or a tunnel to a loopback address"
        )
    return Secret(value)
