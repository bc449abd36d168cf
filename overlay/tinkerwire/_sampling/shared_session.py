"""Connections to the sessions of other processes, shared by all handles of a session."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from functools import partial

from .._connection.retry import RetryConfig
from .._credentials.authorization import KEY_HEADER
from .._credentials.sources import HEADERS_VARIABLE, read_environment_headers, resolve_credential
from .._futures.fork_lock import ForkLock
from .._futures.logger import log
from .._lifecycle.connecting import connect
from .._lifecycle.lifetime import Lifetime
from .._session.session import Session
from .._transport.aiohttp_transport import AiohttpTransport
from .handles import SamplerHandle

SessionKey = tuple[int, str, str, RetryConfig, tuple[tuple[str, str], ...]]
_lifetimes: weakref.WeakValueDictionary[SessionKey, Lifetime] = weakref.WeakValueDictionary()
_lock = ForkLock()


def join_shared_session(
    handle: SamplerHandle, api_key: str | None = None, headers: Mapping[str, str] | None = None
) -> Lifetime:
    """Join the session of another process.

    All handles of a session share a connection, except those with their own key or headers.

    Raises:
        TinkerError: the server needs an API key, and none is set.
        ValueError, TypeError: a header cannot be sent.
    """
    if api_key is not None or headers is not None:
        return _join(handle, api_key, headers or {})
    key = (os.getpid(), handle.base_url, handle.session_id, handle.retry, tuple(sorted(handle.headers.items())))
    with _lock.current:
        lifetime = _lifetimes.get(key)
        if lifetime is None or lifetime.connection.closed:
            lifetime = _lifetimes[key] = _join(handle, None, {})
        return lifetime


def _join(handle: SamplerHandle, api_key: str | None, headers: Mapping[str, str]) -> Lifetime:
    url = handle.base_url
    credential = resolve_credential(api_key, url, None)
    all_headers = {**read_environment_headers(), **handle.headers, **headers}
    connection = connect(url, credential, AiohttpTransport(url), handle.dialect, handle.retry, all_headers)
    # The credential of this process replaces a key in a header.
    replaced = set() if credential is None else {KEY_HEADER}
    missing = sorted(set(handle.omitted_headers) - set(connection.headers) - replaced)
    if missing:
        log.warning(
            "sampler handle: it does not contain these headers of the original client, because they may contain a "
            "credential: %s; give them to from_sampler_handle(default_headers_overrides=...) or set %s",
            ", ".join(missing),
            HEADERS_VARIABLE,
        )
    return Lifetime(connection, partial(Session.join, session_id=handle.session_id))
