"""Sampling sessions, and the engine's samplers behind them, of which the last used are kept ready."""

from __future__ import annotations

import threading
from collections import OrderedDict

import attrs

from tinkerwire._server.engine import Adapter, ModelConfig, base_model
from tinkerwire._server.engine.sampler import Sampler
from tinkerwire._server.futures.completion_log import CompletionLog
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator

MAX_READY = 16
"""Samplers with merged weights in memory; one more costs some milliseconds to make again."""


@attrs.define(eq=False)
class AdapterRef:
    """What sampling sessions sample from; another adapter in its place changes it for all of them.

    Args:
        adapter: None for the base model.
    """

    adapter: Adapter | None = None


@attrs.define(kw_only=True, eq=False)
class SamplingSession:
    """A sampling session.

    Args:
        base_model: the name that the server offers it under.
        config: the engine's model of that name.
        model_path: the checkpoint; None for the base model, and for weights that were never saved.
        weights: its own, or those that all inflight sessions of a model share.
    """

    sampler_id: str
    base_model: str
    config: ModelConfig
    samples: Deduplicator
    """Request ids of asample by seq_id."""
    model_path: str | None = None
    weights: AdapterRef = attrs.field(factory=AdapterRef)
    completions: CompletionLog = attrs.field(factory=CompletionLog)
    copies: int = 0
    """How many copies of its client have joined."""


class SamplingSessions:
    """All sampling sessions of a server; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._sessions: dict[str, SamplingSession] = {}
        self._direct: OrderedDict[str, SamplingSession] = OrderedDict()
        self._ready: OrderedDict[str, tuple[Adapter | None, Sampler]] = OrderedDict()
        self._lock = threading.RLock()

    def add(self, session: SamplingSession) -> None:
        """Keep a sampling session; one of the same id is replaced."""
        self._sessions[session.sampler_id] = session

    def has(self, sampler_id: str) -> bool:
        """Say whether there is such a sampling session."""
        return sampler_id in self._sessions

    def get(self, sampler_id: str) -> SamplingSession:
        """The sampling session, or Refusal 404."""
        session = self._sessions.get(sampler_id)
        if session is None:
            raise HttpError(404, f"there is no sampling session {sampler_id!r}; create_sampling_session gives one")
        return session

    def add_direct(self, session: SamplingSession) -> None:
        """Keep a session that no client opened, for samples of a base model or path, in place of the one used least."""
        self._direct[session.sampler_id] = session
        if len(self._direct) > MAX_READY:
            dropped, _ = self._direct.popitem(last=False)
            with self._lock:
                self._ready.pop(dropped, None)

    def direct(self, sampler_id: str) -> SamplingSession | None:
        """Return such a session, or None."""
        session = self._direct.get(sampler_id)
        if session is not None:
            self._direct.move_to_end(sampler_id)
        return session

    def remove(self, sampler_id: str) -> None:
        """Forget a sampling session."""
        with self._lock:
            self._sessions.pop(sampler_id, None)
            self._ready.pop(sampler_id, None)

    def sampler(self, session: SamplingSession) -> Sampler:
        """The engine's sampler of a session, with its weights as they are now."""
        adapter = session.weights.adapter
        with self._lock:
            made_of, sampler = self._ready.get(session.sampler_id, (None, None))
            if sampler is None or made_of is not adapter:
                sampler = Sampler(base_model(session.config.name), adapter)
                self._ready[session.sampler_id] = adapter, sampler
                if len(self._ready) > MAX_READY:
                    self._ready.popitem(last=False)
            self._ready.move_to_end(session.sampler_id)
            return sampler
