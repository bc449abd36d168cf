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
from concurrent.futures import Future
from typing import Any

import attrs

from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import ClientConfigResponse

from ..address import EMBEDDED, resolve_base_url
from ..credentials.sources import access_headers, resolve_credential
from ..futures.loop import LOOP
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
        if self.base_url == EMBEDDED:
            raise ValueError(
                f"a client of base_url={EMBEDDED!r} cannot go to another process: its server lives in this one; start "
                "`tinkerwire serve` and give its URL"
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


class Lease:
    """A connection to the session of another process, kept as long as any client in this one holds the lease."""

    def __init__(self, handle: SamplerHandle, api_key: str | None) -> None:
        url = handle.base_url
        credential = resolve_credential(api_key, url, None)
        transport = AiohttpTransport(url)
        self.connection = Connection(url, credential, transport, handle.dialect, handle.retry, access_headers())
        self.connection.telemetry = reporter_of(self.connection)
        self.session = Session.joined(self.connection, handle.session_id)
        LOOP.acquire()
        # At the end of the program nothing is done, as for a service that was never closed.
        weakref.finalize(self, _let_go, self.connection, self.session).atexit = False

    @staticmethod
    def of(handle: SamplerHandle, api_key: str | None = None) -> Lease:
        """The lease that all handles of a session share in this process; one of its own for a key of its own.

        Raises:
            TinkerError: no API key for a server that needs one.
        """
        if api_key is not None:
            return Lease(handle, api_key)
        place = (os.getpid(), handle.base_url, handle.session_id, handle.retry)
        with _lock:
            found = _leases.get(place)
            if found is None:
                found = _leases[place] = Lease(handle, None)
            return found


_leases: weakref.WeakValueDictionary[tuple[int, str, str, RetryConfig], Lease] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _forget() -> None:
    """In a forked child: nobody there can give the parent's lock back."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _let_go(connection: Connection, session: Session) -> None:
    if not connection.is_of_this_process:
        return
    connection.closed = True

    async def close() -> None:
        await connection.end_operations()
        try:
            await session.close("success", None)
        finally:
            await connection.close()

    def release(work: Future[None]) -> None:
        LOOP.release()

    LOOP.start(close).add_done_callback(release)
