"""All that a server knows, and the few steps that touch several parts of it."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.store import FutureStore
from tinkerwire._server.http.encoding import ResultEncoder
from tinkerwire._server.http.openapi import contract
from tinkerwire._server.ordering.seq_ids import Deduplicator, NumberedRequests
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig
from tinkerwire._server.sessions.models import Models, TrainedModel
from tinkerwire._server.sessions.samplers import SamplingSessions
from tinkerwire._server.sessions.sessions import Session, Sessions
from tinkerwire._server.sessions.tokens import Tokens
from tinkerwire._server.settings import RetentionPolicy
from tinkerwire._server.storage.archives import Archives
from tinkerwire._server.storage.bounded import BoundedTable
from tinkerwire._server.storage.checkpoint_paths import kinds_in
from tinkerwire._server.storage.checkpoints import Checkpoints
from tinkerwire._server.storage.runs import Runs

log = logging.getLogger("tinkerwire._server")

JOIN_S = 2.0


@attrs.frozen(kw_only=True)
class Settings:
    """How a server behaves; see :class:`~tinkerwire._server.app.EmbeddedServer` for each."""

    wire_version: str
    long_poll_s: float
    session_ttl_s: float | None
    strict_sequence: bool
    gap_wait_s: float
    max_queued_samples: int
    max_inline_bytes: int
    catalogue: Catalogue
    config: ClientConfig
    seed: int | None
    retention: RetentionPolicy
    clock: Callable[[], float]


class State:
    """The parts of a server. Its lock is held while a handler runs; jobs on workers run without it."""

    def __init__(
        self, folder: Path, settings: Settings, ids: RequestIds, dress: Callable[[Any], Any] = lambda value: value
    ) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.encoder = ResultEncoder(settings.wire_version)
        self.futures = FutureStore(self.encoder, settings.retention, settings.clock, ids, dress)
        # Samples come by the thousand; they have a table of their own, so that they do not push out the others.
        self.samples: NumberedRequests = BoundedTable(settings.retention.request_bytes)
        """Samples that were accepted, by sampling session and seq_id."""
        self.requests: NumberedRequests = BoundedTable(settings.retention.request_bytes)
        """Other requests that were accepted, by session or model and number."""
        self.sessions = Sessions(settings.session_ttl_s, settings.clock, self._release, self.requests)
        self.models = Models()
        self.samplers = SamplingSessions()
        self.runs = Runs(folder / "runs", settings.clock)
        self.checkpoints = Checkpoints(self.runs, kinds_in(contract(settings.wire_version)), settings.clock)
        self.archives = Archives(settings.clock)
        self.tokens = Tokens(settings.clock)
        self.sampling = Worker("tinkerwire-sampling", threads=max(1, os.cpu_count() or 1))

    def train(self, model: TrainedModel, work: Callable[[], Any], seq_id: int | None = None) -> str:
        """Queue work on a model and return its request id.

        Work with a seq_id waits for its turn; other work comes after all that is queued already.
        """
        self.sessions.alive(model.session_id)
        self.runs.touch(model.run)

        def put(job: Callable[[], None]) -> None:
            if seq_id is None:
                model.worker.put(job)
            else:
                model.sequence.turns.put(seq_id, job)

        return self.futures.run(put, work, model.model_id)

    def resends_of(self, sampler_id: str) -> Deduplicator:
        """Return what recognizes the samples of a sampling session by their seq_ids."""
        return Deduplicator("seq_id", sampler_id, self.samples)

    def skip(self, body: Any) -> None:
        """Let operations on a model not wait for one that was refused."""
        model = self.models.find(getattr(body, "model_id", None))
        seq_id = getattr(body, "seq_id", None)
        if model is not None and seq_id is not None:
            model.sequence.turns.skip(seq_id)

    def seed_for(self, *what: object) -> int | None:
        """A seed for what came without one: drawn from the server's, None when it has none."""
        if self.settings.seed is None:
            return None
        return random.Random(f"{self.settings.seed}:{what}").getrandbits(31)

    def close(self) -> bool:
        """Stop all work; what has no result yet fails. False when some is still at it after :data:`JOIN_S`."""
        workers = [self.sampling]
        self.sampling.close()
        for model in self.models.close():
            model.close()
            workers.append(model.worker)
        self.futures.abandon(None, "the server was closed before this was done")
        ended = [worker.join(JOIN_S) for worker in workers]
        return all(ended)

    def _release(self, session: Session) -> None:
        log.info("session %s expired", session.session_id)
        reason = f"session {session.session_id} expired"
        for model_id in session.model_ids:
            model = self.models.remove(model_id, 410, reason)
            if model is not None:
                model.close()
                self.futures.abandon(model_id, f"model {model_id} is gone: {reason}")
        session.losses.clear()
        for sampler_id in session.sampler_ids:
            self.samplers.remove(sampler_id)
