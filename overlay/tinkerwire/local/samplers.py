"""Sampling sessions, and the engine's samplers behind them, of which the last used are kept ready."""

from __future__ import annotations

import threading
from collections import OrderedDict

import attrs

from tinkerwire.local.answers import Refusal
from tinkerwire.local.completions import Completions
from tinkerwire.local.engine import Adapter, ModelConfig, base_model
from tinkerwire.local.engine.sampler import Sampler
from tinkerwire.local.promises import Promise
from tinkerwire.local.sequence import Resends

MOST_READY = 16
"""Samplers with merged weights in memory; one more costs some milliseconds to make again."""


@attrs.define(eq=False)
class Weights:
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
    model_path: str | None = None
    weights: Weights = attrs.field(factory=Weights)
    samples: Resends[Promise] = attrs.field(factory=lambda: Resends("seq_id"))
    """Promises of asample by seq_id."""
    completions: Completions = attrs.field(factory=Completions)
    copies: int = 0
    """How many copies of its client have joined."""


class SamplingSessions:
    """All sampling sessions of a server; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._sessions: dict[str, SamplingSession] = {}
        self._ready: OrderedDict[str, tuple[Adapter | None, Sampler]] = OrderedDict()
        self._lock = threading.RLock()

    def add(self, session: SamplingSession) -> None:
        """Keep a sampling session; one of the same id is replaced."""
        self._sessions[session.sampler_id] = session

    def get(self, sampler_id: str) -> SamplingSession:
        """The sampling session, or Refusal 404."""
        session = self._sessions.get(sampler_id)
        if session is None:
            raise Refusal(404, f"there is no sampling session {sampler_id!r}; create_sampling_session gives one")
        return session

    def find(self, sampler_id: str) -> SamplingSession | None:
        """The sampling session, or None."""
        return self._sessions.get(sampler_id)

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
                if len(self._ready) > MOST_READY:
                    self._ready.popitem(last=False)
            self._ready.move_to_end(session.sampler_id)
            return sampler
