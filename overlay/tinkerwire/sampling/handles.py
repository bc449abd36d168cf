"""Sampling clients in other processes: a handle that says what to sample from, and the connection of its copies.

A handle holds no credential. The process that takes it finds its own, as a ServiceClient there would, and sends it
to the address in the handle: take handles only from whom you trust.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import weakref
from typing import Any

import attrs

from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import ClientConfigResponse

from ..address import is_embedded, resolve_base_url
from ..credentials.sources import access_headers, resolve_credential
from ..lifecycle import Lifetime
from ..sending.connection import Connection
from ..sending.retry import RetryConfig
from ..sending.transport import AiohttpTransport
from ..session import Session
from ..telemetry.reporter import reporter_of
from ..wire.dialect import Dialect

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
            return cls(**{**state, "base_url": resolve_base_url(state["base_url"])})
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise ValueError(
                f"handle: {str(text)[:40]!r} is not what get_sampler_handle of this version gives: {fault}"
            ) from None


def joined(handle: SamplerHandle, api_key: str | None = None) -> Lifetime:
    """Join the session of another process: all handles of it share a connection, one with a key of its own does not.

    Raises:
        TinkerError: no API key for a server that needs one.
    """
    if api_key is not None:
        return _join(handle, api_key)
    place = (os.getpid(), handle.base_url, handle.session_id, handle.retry)
    with _lock:
        found = _lifetimes.get(place)
        if found is None or found.connection.closed:
            found = _lifetimes[place] = _join(handle, None)
        return found


def _join(handle: SamplerHandle, api_key: str | None) -> Lifetime:
    url = handle.base_url
    credential = resolve_credential(api_key, url, None)
    connection = Connection(url, credential, AiohttpTransport(url), handle.dialect, handle.retry, access_headers())
    connection.telemetry = reporter_of(connection)
    return Lifetime(connection, Session.joined(connection, handle.session_id))


_lifetimes: weakref.WeakValueDictionary[tuple[int, str, str, RetryConfig], Lifetime] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _forget() -> None:
    """Replace the lock in a forked child, where the thread that holds it may not exist."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
