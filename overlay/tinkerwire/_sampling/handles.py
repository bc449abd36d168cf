"""Sampling clients in other processes: a handle that says what to sample from, and the connection of its copies.

A handle holds no credential. The process that takes it finds its own, as a ServiceClient there would, and sends it
to the address in the handle: take handles only from whom you trust.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import ClientConfigResponse

from .._connection.retry import RetryConfig
from .._credentials.authorization import KEY_HEADER
from .._credentials.sources import HEADERS_VARIABLE, read_environment_headers, resolve_credential
from .._futures.fork_lock import ForkLock
from .._lifecycle.connecting import connect
from .._lifecycle.lifetime import Lifetime
from .._session.session import Session
from .._transport.address import is_embedded, resolve_base_url
from .._transport.aiohttp_transport import AiohttpTransport
from .._wire.dialect import Dialect

log = logging.getLogger("tinkerwire")
FORM = 1
"""Version of the form of handles."""
NOT_TEXT = ("retry_if", "retryable_exceptions")
"""Settings of a RetryConfig that text cannot hold."""


@attrs.frozen(kw_only=True)
class SamplerHandle:
    """What a sampling client is, for another process."""

    base_url: str
    session_id: str
    sampling_session_id: str
    dialect: Dialect
    retry: RetryConfig
    record_stability_info: bool
    headers: Mapping[str, str] = attrs.field(factory=dict)
    """The user's headers that hold no credential."""
    omitted_headers: tuple[str, ...] = ()
    """Names of the user's other headers, which did not travel."""
    context_length: int | None = None
    """The most tokens of prompt and sample together, where the client that made the handle knew it."""

    def encode(self) -> str:
        """The handle as text that may stand in URLs and command lines.

        Raises:
            ValueError: the server lives in this process alone.
        """
        if is_embedded(self.base_url):
            raise ValueError(
                f"a client of base_url={self.base_url!r} cannot go to another process: its server lives in this one; "
                "start `tinkerwire serve` and give its URL"
            )
        if self.retry.retry_if is not None:
            raise ValueError(
                "a client with RetryConfig.retry_if cannot be a handle, as a function is no text; pickle the client, "
                "or make it with a retry_config of its own"
            )
        dialect = {**attrs.asdict(self.dialect, recurse=False), "binary": sorted(self.dialect.binary)}
        dialect["config"] = default_converter().unstructure(self.dialect.config)
        state = {
            **attrs.asdict(self, recurse=False),
            "tinkerwire_handle": FORM,
            "dialect": dialect,
            "retry": attrs.asdict(self.retry, filter=lambda field, _: field.name not in NOT_TEXT),
        }
        return base64.urlsafe_b64encode(json.dumps(state, separators=(",", ":")).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> SamplerHandle:
        """The handle of a text.

        Raises:
            ValueError: it is no handle of this client.
        """
        try:
            state: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
            form = state.pop("tinkerwire_handle", None)
            if form != FORM:
                raise ValueError(f"its form is {form!r}, and {FORM} is known")
            dialect = state["dialect"]
            dialect["binary"] = frozenset(dialect["binary"])
            dialect["config"] = default_converter().structure(dialect["config"], ClientConfigResponse)
            state |= {"dialect": Dialect(**dialect), "retry": RetryConfig(**state["retry"])}
            state["headers"] = _checked_headers(state.get("headers", {}))
            state["omitted_headers"] = tuple(_checked_headers(dict.fromkeys(state.get("omitted_headers", ()), "")))
            return cls(**{**state, "base_url": resolve_base_url(state["base_url"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"handle: {str(text)[:40]!r} is not what get_sampler_handle of this version gives: {error}"
            ) from None


def joined(handle: SamplerHandle, api_key: str | None = None, headers: Mapping[str, str] | None = None) -> Lifetime:
    """Join the session of another process.

    All handles of a session share a connection, except those with a key or headers of their own.

    Raises:
        TinkerError: no API key for a server that needs one.
        ValueError, TypeError: a header that cannot be sent.
    """
    if api_key is not None or headers is not None:
        return _join(handle, api_key, headers or {})
    place = (os.getpid(), handle.base_url, handle.session_id, handle.retry, tuple(sorted(handle.headers.items())))
    with _lock.current:
        found = _lifetimes.get(place)
        if found is None or found.connection.closed:
            found = _lifetimes[place] = _join(handle, None, {})
        return found


def _join(handle: SamplerHandle, api_key: str | None, headers: Mapping[str, str]) -> Lifetime:
    url = handle.base_url
    credential = resolve_credential(api_key, url, None)
    found = {**read_environment_headers(), **handle.headers, **headers}
    connection = connect(url, credential, AiohttpTransport(url), handle.dialect, handle.retry, found)
    # The credential of this process takes the place of a key in a header.
    replaced = set() if credential is None else {KEY_HEADER}
    missing = sorted(set(handle.omitted_headers) - set(connection.headers) - replaced)
    if missing:
        log.warning(
            "sampler handle: headers of the client that made it did not travel, as they may hold a credential: %s; "
            "give them to from_sampler_handle(default_headers_overrides=...) or set %s",
            ", ".join(missing),
            HEADERS_VARIABLE,
        )
    return Lifetime(connection, partial(Session.join, session_id=handle.session_id))


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    if not all(isinstance(text, str) for item in headers.items() for text in item):
        raise TypeError("its headers are not text")
    return headers


Place = tuple[int, str, str, RetryConfig, tuple[tuple[str, str], ...]]
_lifetimes: weakref.WeakValueDictionary[Place, Lifetime] = weakref.WeakValueDictionary()
_lock = ForkLock()
