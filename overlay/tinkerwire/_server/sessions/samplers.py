"""Sampling sessions, and a cache of the engine's samplers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache

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


WeightsKey = tuple[str, Adapter | None]
"""Name of a base model, and the adapter, if any."""


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
    completions: CompletionLog = attrs.Factory(lambda self: CompletionLog(self.sampler_id), takes_self=True)
    copy_count: int = 0

    @property
    def weights_key(self) -> WeightsKey:
        """The current weights."""
        return self.config.name, self.weights.adapter


class SamplingSessions:
    """All sampling sessions of a server. Thread safe."""

    def __init__(self) -> None:
        self._sessions: dict[str, SamplingSession] = {}
        self._implicit: OrderedDict[str, SamplingSession] = OrderedDict()
        self._samplers = lru_cache(MAX_CACHED_SAMPLERS)(_create_sampler)
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
            self._implicit.popitem(last=False)

    def find_implicit(self, sampler_id: str) -> SamplingSession | None:
        """Return a session of :meth:`add_implicit`, or None."""
        session = self._implicit.get(sampler_id)
        if session is not None:
            self._implicit.move_to_end(sampler_id)
        return session

    def remove(self, sampler_id: str) -> None:
        """Remove a sampling session."""
        self._sessions.pop(sampler_id, None)

    def get_sampler(self, key: WeightsKey) -> Sampler:
        """Return the engine's sampler for weights."""
        # With a lock, because lru_cache would let two threads create the same sampler.
        with self._lock:
            return self._samplers(*key)


def _create_sampler(model: str, adapter: Adapter | None) -> Sampler:
    return Sampler(base_model(model), adapter)
