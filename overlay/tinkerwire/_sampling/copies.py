"""Copies of a sampling client: by handle, by pickle, and after a fork."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
from typing_extensions import Self

from tinkerwire_base.validators import require_bool, require_optional

from .._connection.retry import RetryConfig, RetryIf
from .._credentials.authorization import KEY_HEADER
from .._credentials.shareable_headers import select_shareable_headers
from .._credentials.sources import HEADERS_VARIABLE, read_environment_headers, resolve_credential
from .._futures.awaitable_client import AwaitableClient
from .._futures.deadline import Deadline
from .._futures.fork_lock import ForkLock
from .._futures.future import APIFuture
from .._futures.logger import log
from .._lifecycle.connecting import connect, open_transport
from .._lifecycle.lifetime import Lifetime
from .._lifecycle.recording import continue_recording
from .._session.session import Session
from .._transport.address import is_embedded
from .._transport.backpressure import InFlightLimit
from .handles import SamplerHandle
from .sample_runner import SampleRunner
from .sample_seq_ids import SampleSeqIds, join_session

SessionKey = tuple[int, str, str, RetryConfig, tuple[tuple[str, str], ...], "Path | None"]
_lifetimes: weakref.WeakValueDictionary[SessionKey, Lifetime] = weakref.WeakValueDictionary()
_lock = ForkLock()


def join_shared_session(
    handle: SamplerHandle,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    trace_path: Path | None = None,
) -> Lifetime:
    """Join the session of another process.

    All handles of a session share a connection, except those with their own key or headers.

    Raises:
        TinkerError: the server needs an API key, and none is set.
        ValueError, TypeError: a header cannot be sent.
    """
    if api_key is not None or headers is not None:
        return _join(handle, api_key, headers or {}, trace_path)
    all_headers = tuple(sorted(handle.headers.items()))
    key = (os.getpid(), handle.base_url, handle.session_id, handle.retry, all_headers, trace_path)
    with _lock.current:
        lifetime = _lifetimes.get(key)
        if lifetime is None or lifetime.connection.closed:
            lifetime = _lifetimes[key] = _join(handle, None, {}, trace_path)
        return lifetime


def _join(handle: SamplerHandle, api_key: str | None, headers: Mapping[str, str], trace_path: Path | None) -> Lifetime:
    url = handle.base_url
    credential = resolve_credential(api_key, url, None)
    all_headers = {**read_environment_headers(), **handle.headers, **headers}
    connection = connect(url, credential, open_transport(url), handle.dialect, handle.retry, all_headers)
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
    continue_recording(connection, trace_path)
    return Lifetime(connection, partial(Session.join, session_id=handle.session_id))


T = TypeVar("T")


class CopyableSampler(AwaitableClient):
    """A sampling session, with the connection and the seq_ids of one client of it.

    Copies join the same sampling session over a connection of their process, and use their own range of seq_ids.
    """

    def __init__(
        self, session: Session, retry_config: RetryConfig | None, *, record_stability_info: bool = False
    ) -> None:
        require_optional("retry_config", retry_config, RetryConfig)
        require_bool("record_stability_info", record_stability_info)
        self._session = session
        self._connection = session.connection
        self._retry = retry_config or session.connection.retry
        limit = (
            session.connection.sampling_limit if retry_config is None else InFlightLimit(retry_config.max_connections)
        )
        self._runner = SampleRunner(session, self._retry, limit, SampleSeqIds())
        # Omitting the option also means False, and older wires do not have it.
        self._record_stability_info = True if record_stability_info else None
        # A reference that keeps the connection open for the lifetime of this client.
        self._owner = session.connection.owner
        self._base_model_name: str | None = None
        """None while the client does not know the base model."""
        self._session_id = ""
        """Id of the session in which the client was created; empty for copies."""
        self._inherited_context_length: int | None = None
        """Context length in the handle that this client was made from."""

    def get_sampler_handle(self) -> str:
        """Return a handle of this client, for :meth:`from_sampler_handle` in another process.

        Waits for the creation of the client. The handle is text without secrets.

        Raises:
            ValueError: the server is embedded in this process, or RetryConfig.retry_if is set.
            TinkerError: the creation of the client failed.
        """
        return self._handle(self._creation.result()).encode()

    @classmethod
    def from_sampler_handle(
        cls, handle: str, *, api_key: str | None = None, default_headers_overrides: Mapping[str, str] | None = None
    ) -> Self:
        """Create a client from a handle; the first sample sends the first request.

        The API key is sent to the address in the handle: accept handles only from trusted sources.

        Args:
            handle: the result of :meth:`get_sampler_handle`.
            api_key: as for ServiceClient.
            default_headers_overrides: headers of every request, which override those in the handle. A handle omits
                headers that may contain a credential: give them here, or set TINKERWIRE_HEADERS.

        Raises:
            ValueError: the text is not a handle of this version of the client, or a header cannot be sent.
            TinkerError: the server needs an API key, and none is set.
        """
        require_optional("api_key", api_key, str)
        require_optional("default_headers_overrides", default_headers_overrides, Mapping)
        return cls._from_handle(SamplerHandle.decode(handle), api_key, default_headers_overrides)

    @classmethod
    def _from_handle(
        cls,
        handle: SamplerHandle,
        api_key: str | None,
        headers: Mapping[str, str] | None = None,
        trace_path: Path | None = None,
    ) -> Self:
        lifetime = join_shared_session(handle, api_key, headers, trace_path)
        client = cls(lifetime.session, None, record_stability_info=handle.record_stability_info)
        client._become_copy(lifetime, handle)
        return client

    def __reduce__(self) -> tuple[Any, ...]:
        handle, retry_if = self._handle(self._creation.result()), self._retry.retry_if
        text = attrs.evolve(handle, retry=attrs.evolve(handle.retry, retry_if=None)).encode()
        return (_unpickle, (type(self), text, retry_if, self._connection.trace_path))

    def _handle(self, sampling_session_id: str) -> SamplerHandle:
        session_id, dialect = self._session.known_id, self._connection.known_dialect
        assert session_id is not None
        assert dialect is not None
        headers = select_shareable_headers(self._connection.headers)
        return SamplerHandle(
            base_url=self._connection.base_url,
            session_id=session_id,
            sampling_session_id=sampling_session_id,
            dialect=dialect,
            retry=self._retry,
            record_stability_info=bool(self._record_stability_info),
            headers=headers,
            omitted_headers=tuple(name for name in self._connection.headers if name not in headers),
            context_length=self._context_length(),
        )

    def _become_copy(self, lifetime: Lifetime, handle: SamplerHandle) -> None:
        """Continue as a copy, over a connection to the session of another process."""
        session = lifetime.session
        connection, sampling_session_id = session.connection, handle.sampling_session_id
        self._owner, self._session, self._connection = lifetime, session, connection
        self._retry = connection.retry
        self._inherited_context_length = handle.context_length
        creation: Future[str] = Future()
        creation.set_result(sampling_session_id)
        self._creation = APIFuture(creation)

        async def join() -> int:
            await session.id()
            return await join_session(connection, sampling_session_id)

        self._runner = SampleRunner(session, self._retry, connection.sampling_limit, SampleSeqIds(join))

    def _start(self, work: Callable[[], Coroutine[Any, Any, T]], kind: str) -> APIFuture[T]:
        """Start an operation; in a forked process, become a copy first."""
        self._join_in_fork()
        return self._connection.start(work, kind)

    def _start_sample(self, work: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline) -> APIFuture[T]:
        """Start a sample once the client's other samples leave room; in a forked process, become a copy first."""
        self._join_in_fork()
        return self._connection.start(work, "Sample", deadline, self._runner.start_queue)

    def _join_in_fork(self) -> None:
        is_forked = not self._connection.is_of_this_process and not is_embedded(self._connection.base_url)
        if is_forked and self._creation.state == "done":
            handle = self._handle(self._creation.result())
            lifetime = join_shared_session(handle, trace_path=self._connection.trace_path)
            self._become_copy(lifetime, handle)

    def _context_length(self) -> int | None:
        """Return the context length of the model, if it is known without a request."""
        context_length = self._connection.known_models.context_lengths.get(self._base_model_name or "")
        return context_length or self._inherited_context_length


def _unpickle(
    cls: type[CopyableSampler], text: str, retry_if: RetryIf | None, trace_path: Path | None = None
) -> CopyableSampler:
    handle = SamplerHandle.decode(text)
    handle = attrs.evolve(handle, retry=attrs.evolve(handle.retry, retry_if=retry_if))
    return cls._from_handle(handle, None, trace_path=trace_path)
