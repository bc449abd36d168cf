"""State of a server: its parts, and the operations that involve several of them."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.custom_loss.graph import LossGraph
from tinkerwire._server.emulation.fault_injection import FaultInjection
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.emulation.server_emulation import ServerEmulation
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.futures.store import FutureStore
from tinkerwire._server.http.encoding import ResultEncoder
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.ordering.seq_ids import Deduplicator, NumberedRequests
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig
from tinkerwire._server.sessions.models import Models, TrainedModel
from tinkerwire._server.sessions.samplers import SamplingSessions
from tinkerwire._server.sessions.sessions import ServerSession, Sessions
from tinkerwire._server.sessions.tokens import Tokens
from tinkerwire._server.storage.archives import Archives
from tinkerwire._server.storage.checkpoint_paths import list_kinds
from tinkerwire._server.storage.checkpoints import Checkpoints
from tinkerwire._server.storage.runs import Runs


@attrs.frozen(kw_only=True)
class Settings:
    """Settings of a server, as :class:`~tinkerwire._server.app.EmbeddedServer` documents them."""

    wire_version: str
    long_poll_s: float
    session_ttl_s: float | None
    strict_sequence: bool
    gap_wait_s: float
    api_key: str | None
    seed: int | None
    max_queued_samples: int
    max_inline_bytes: int
    catalogue: Catalogue
    client_config: ClientConfig
    retention: RetentionPolicy
    quirks: Quirks
    fault_injection: FaultInjection | None
    clock: Callable[[], float]


log = logging.getLogger("tinkerwire._server")

JOIN_TIMEOUT_S = 2.0


class State:
    """The parts of a server. Handlers run with :attr:`lock` held; jobs of workers run without the lock.

    Args:
        folder: folder of training runs and checkpoints.
        settings: settings of the server.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.encoder = ResultEncoder(settings.wire_version)
        self.emulation = ServerEmulation(settings.quirks, settings.long_poll_s)
        self.futures = FutureStore(
            self.encoder,
            settings.retention,
            settings.clock,
            RequestIds(settings.quirks.ids),
            self.emulation.transform_result,
        )
        # Clients send thousands of samples; in a table of their own, these do not displace other requests.
        self.samples: NumberedRequests = BoundedTable(settings.retention.request_bytes)
        """Accepted samples by sampling session and seq_id."""
        self.requests: NumberedRequests = BoundedTable(settings.retention.request_bytes)
        """Other accepted requests by session or model and number."""
        self.sessions = Sessions(settings.session_ttl_s, settings.clock, self._release_session, self.requests)
        self.models = Models()
        self.samplers = SamplingSessions()
        self.losses: dict[str, LossGraph] = {}
        """Custom losses by loss_id."""
        self.runs = Runs(folder / "runs", settings.clock)
        self.checkpoints = Checkpoints(self.runs, list_kinds(load_contract(settings.wire_version)), settings.clock)
        self.archives = Archives(settings.clock)
        self.tokens = Tokens(settings.clock)
        self.sampling = Worker("tinkerwire-sampling", threads=max(1, os.cpu_count() or 1))

    def enqueue_training(self, model: TrainedModel, work: Callable[[], Any], seq_id: int | None = None) -> str:
        """Queue work on a model and return its request id.

        Args:
            model: the model to work on.
            work: the work; its return value is the result.
            seq_id: position of the work; without it, the work runs after all work that is queued already.
        """
        self.sessions.require_active(model.session_id)
        self.runs.mark_active(model.run)

        def enqueue(job: Callable[[], None]) -> None:
            if seq_id is None:
                model.worker.put(job)
            else:
                model.seq_ids.reorder_buffer.put(seq_id, job)

        return self.futures.submit(enqueue, work, model.model_id)

    def create_sample_deduplicator(self, sampler_id: str) -> Deduplicator:
        """Create a deduplicator for the samples of a sampling session."""
        return Deduplicator("seq_id", sampler_id, self.samples)

    def skip_seq_id(self, body: Any) -> None:
        """Let later operations on a model run without a rejected one.

        Args:
            body: body of the rejected request.
        """
        model = self.models.find(getattr(body, "model_id", None))
        seq_id = getattr(body, "seq_id", None)
        if model is not None and seq_id is not None:
            model.seq_ids.reorder_buffer.skip(seq_id)

    def derive_seed(self, *parts: object) -> int | None:
        """Derive a seed from the server's seed and ``parts``; None if the server does not have a seed."""
        if self.settings.seed is None:
            return None
        return random.Random(f"{self.settings.seed}:{parts}").getrandbits(31)

    def close(self) -> bool:
        """Stop all work and fail all pending results.

        Returns:
            True if every worker ended within :data:`JOIN_TIMEOUT_S`.
        """
        workers = [self.sampling]
        self.sampling.close()
        for model in self.models.close():
            model.close()
            workers.append(model.worker)
        self.futures.fail_pending(None, "the server was closed before this was done")
        ended = [worker.join(JOIN_TIMEOUT_S) for worker in workers]
        return all(ended)

    def _release_session(self, session: ServerSession) -> None:
        log.info("session %s expired", session.session_id)
        reason = f"session {session.session_id} expired"
        for model_id in session.model_ids:
            model = self.models.remove(model_id, 410, reason)
            if model is not None:
                model.close()
                self.futures.fail_pending(model_id, f"model {model_id} is gone: {reason}")
        for loss_id in session.loss_ids:
            del self.losses[loss_id]
        for sampler_id in session.sampler_ids:
            self.samplers.remove(sampler_id)
