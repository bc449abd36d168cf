"""Sampling sessions, and a cache of the engine's samplers."""

from __future__ import annotations

import threading
from collections import OrderedDict

import attrs

from tinkerwire._server.engine import Adapter, ModelConfig, base_model
from tinkerwire._server.engine.sampler import Sampler
from tinkerwire._server.futures.completion_log import CompletionLog
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator

MAX_CACHED_SAMPLERS = 16
"""Maximum number of samplers with merged weights in memory; creating another one takes some milliseconds."""


@attrs.define(eq=False)
class AdapterRef:
    """A reference to the adapter of one or more sampling sessions; replacing the adapter affects all of them.

    Args:
        adapter: the adapter; None for the base model.
    """

    adapter: Adapter | None = None


@attrs.define(kw_only=True, eq=False)
class SamplingSession:
    """A sampling session.

    Args:
        sampler_id: id of the sampling session.
        base_model: name of the base model, which may be an alias.
        config: config of the base model.
        samples: detects resent samples by seq_id.
        model_path: the checkpoint; None for the base model and for weights that were never saved.
        weights: weights of this session, or weights that all inflight sessions of a model share.
        completions: finished samples.
        copy_count: number of copies of the client that have joined.
    """

    sampler_id: str
    base_model: str
    config: ModelConfig
    samples: Deduplicator
    model_path: str | None = None
    weights: AdapterRef = attrs.field(factory=AdapterRef)
    completions: CompletionLog = attrs.field(factory=CompletionLog)
    copy_count: int = 0


class SamplingSessions:
    """All sampling sessions of a server. Thread safe."""

    def __init__(self) -> None:
        self._sessions: dict[str, SamplingSession] = {}
        self._implicit: OrderedDict[str, SamplingSession] = OrderedDict()
        self._samplers: OrderedDict[str, tuple[Adapter | None, Sampler]] = OrderedDict()
        self._lock = threading.RLock()

    def add(self, session: SamplingSession) -> None:
        """Add a sampling session; it replaces one with the same id."""
        self._sessions[session.sampler_id] = session

    def has(self, sampler_id: str) -> bool:
        """Return whether a sampling session exists."""
        return sampler_id in self._sessions

    def get(self, sampler_id: str) -> SamplingSession:
        """Return a sampling session.

        Raises:
            HttpError: 404 if it does not exist.
        """
        session = self._sessions.get(sampler_id)
        if session is None:
            text = f"unknown sampling session {sampler_id!r}; create one with create_sampling_session"
            raise HttpError(404, text)
        return session

    def add_implicit(self, session: SamplingSession) -> None:
        """Add a session for samples that name a base model or path; it may replace the least recently used one."""
        self._implicit[session.sampler_id] = session
        if len(self._implicit) > MAX_CACHED_SAMPLERS:
            dropped_id, _ = self._implicit.popitem(last=False)
            with self._lock:
                self._samplers.pop(dropped_id, None)

    def find_implicit(self, sampler_id: str) -> SamplingSession | None:
        """Return a session of :meth:`add_implicit`, or None."""
        session = self._implicit.get(sampler_id)
        if session is not None:
            self._implicit.move_to_end(sampler_id)
        return session

    def remove(self, sampler_id: str) -> None:
        """Remove a sampling session."""
        with self._lock:
            self._sessions.pop(sampler_id, None)
            self._samplers.pop(sampler_id, None)

    def get_sampler(self, session: SamplingSession) -> Sampler:
        """Return the engine's sampler for the current weights of a session."""
        adapter = session.weights.adapter
        with self._lock:
            cached_adapter, sampler = self._samplers.get(session.sampler_id, (None, None))
            if sampler is None or cached_adapter is not adapter:
                sampler = Sampler(base_model(session.config.name), adapter)
                self._samplers[session.sampler_id] = adapter, sampler
                if len(self._samplers) > MAX_CACHED_SAMPLERS:
                    self._samplers.popitem(last=False)
            self._samplers.move_to_end(session.sampler_id)
            return sampler
