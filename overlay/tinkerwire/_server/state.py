"""State of a server: its parts, and the operations that involve several of them."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from tinkerwire._server.clock import SteadyClock
from tinkerwire._server.custom_loss.graph import LossGraph
from tinkerwire._server.emulation.fault_injection import FaultInjection
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.emulation.server_emulation import ServerEmulation
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.futures.store import FutureStore
from tinkerwire._server.http.encoding import ResultEncoder
from tinkerwire._server.http.idempotency import IdempotencyCache
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.options import count, typed, validate_seconds, validate_seed, validate_switch
from tinkerwire._server.ordering.accepted_requests import JournaledRequests
from tinkerwire._server.ordering.seq_ids import Deduplicator
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig
from tinkerwire._server.sessions.models import Effect, Models, TrainedModel
from tinkerwire._server.sessions.sample_queue import SampleQueue
from tinkerwire._server.sessions.samplers import SamplingSession, SamplingSessions
from tinkerwire._server.sessions.sessions import ServerSession, Sessions
from tinkerwire._server.sessions.tokens import Tokens
from tinkerwire._server.storage.archives import Archives
from tinkerwire._server.storage.atomic_files import pack_arrays
from tinkerwire._server.storage.checkpoint_paths import list_kinds
from tinkerwire._server.storage.checkpoints import Checkpoints
from tinkerwire._server.storage.journal import Journal
from tinkerwire._server.storage.runs import Runs


@attrs.frozen(kw_only=True)
class Settings:
    """Settings of a server, as :class:`~tinkerwire._server.app.EmbeddedServer` documents them."""

    wire_version: str
    long_poll_s: float = attrs.field(validator=validate_seconds)
    session_ttl_s: float | None = attrs.field(validator=attrs.validators.optional(validate_seconds))
    strict_sequence: bool = attrs.field(validator=validate_switch)
    gap_wait_s: float = attrs.field(validator=validate_seconds)
    api_key: str | None = attrs.field(validator=attrs.validators.optional(typed(str, "a str")))
    seed: int | None = attrs.field(validator=attrs.validators.optional(validate_seed))
    max_queued_samples: int = attrs.field(validator=count(0))
    max_inline_bytes: int = attrs.field(validator=count(0))
    catalogue: Catalogue
    client_config: ClientConfig
    retention: RetentionPolicy = attrs.field(validator=typed(RetentionPolicy, "a RetentionPolicy"))
    quirks: Quirks = attrs.field(validator=typed(Quirks, "a Quirks"))
    fault_injection: FaultInjection | None = attrs.field(
        validator=attrs.validators.optional(typed(FaultInjection, "a FaultInjection"))
    )
    clock: Callable[[], float] | None = attrs.field(validator=attrs.validators.optional(typed(Callable, "a function")))


log = logging.getLogger("tinkerwire._server")

JOIN_TIMEOUT_S = 2.0


class State:
    """The parts of a server. Handlers run with :attr:`lock` held; jobs of workers run without the lock.

    Args:
        folder: folder of training runs and checkpoints.
        settings: settings of the server.
        lock: lock of the server.
        journal: records all of this state that later requests need; one without a file records nothing.
    """

    def __init__(self, folder: Path, settings: Settings, lock: threading.RLock, journal: Journal) -> None:
        self.settings = settings
        self.lock = lock
        self.journal = journal
        self.encoder = ResultEncoder(settings.wire_version)
        self.emulation = ServerEmulation(settings.quirks, settings.long_poll_s)
        clock = settings.clock or time.time
        age_clock = settings.clock or SteadyClock(journal.read_last_time())
        run = journal.read_setting("run")
        ids = RequestIds(settings.quirks.ids, run)
        if run is None:
            journal.write_setting("run", ids.run)
        self.futures = FutureStore(
            self.encoder, settings.retention, age_clock, ids, self.emulation.transform_result, journal
        )
        request_bytes = settings.retention.request_bytes
        # Clients send thousands of samples; in a table of their own, these do not displace other requests.
        self.samples = JournaledRequests(request_bytes, "sample", journal)
        """Accepted samples by sampling session and seq_id."""
        self.requests = JournaledRequests(request_bytes, "request", journal)
        """Other accepted requests by session or model and number."""
        self.idempotency_cache = IdempotencyCache(request_bytes, journal.add_response, journal.remove_response)
        self.sessions = Sessions(settings.session_ttl_s, age_clock, self._release_session, self.requests, journal)
        self.models = Models()
        self.samplers = SamplingSessions()
        self.losses: dict[str, LossGraph] = {}
        """Custom losses by loss_id."""
        self.runs = Runs(folder / "runs", clock)
        self.checkpoints = Checkpoints(self.runs, list_kinds(load_contract(settings.wire_version)), clock)
        self.archives = Archives(clock)
        self.tokens = Tokens(clock)
        self.sample_queue = SampleQueue(self.samplers.get_sampler)
        self.loss_worker = Worker("tinkerwire-losses")
        self._stopped_workers: list[Worker] = []

    def enqueue_training(
        self,
        model: TrainedModel,
        work: Callable[[], Any],
        seq_id: int | None = None,
        effect: Effect = Effect.NONE,
        record: Callable[[], None] | None = None,
    ) -> str:
        """Queue work on a model and return its request id.

        Args:
            model: the model to work on.
            work: the work; its return value is the result.
            seq_id: position of the work; without it, the work runs after all work that is queued already.
            effect: effect of the work on the model.
            record: records an object that the work created, in the transaction of its result.
        """
        self.sessions.require_active(model.session_id)
        self.runs.mark_active(model.run)

        def enqueue(job: Callable[[], None]) -> None:
            if seq_id is None:
                model.worker.put(job)
            else:
                model.seq_ids.reorder_buffer.put(seq_id, job)

        def record_effect(number: int) -> None:
            model.record(number, seq_id, effect)
            if record is not None:
                record()

        def give_up() -> None:
            if seq_id is not None:
                # Without it, a server that resumes the state would wait for an operation that nobody sends again.
                self.journal.add_skipped(model.model_id, seq_id)

        measured = work if effect is Effect.NONE else partial(model.measure, work)
        return self.futures.submit(enqueue, measured, model.model_id, record=record_effect, give_up=give_up)

    def record_sampler(self, sampler: SamplingSession, session_id: str, weights_id: str | None) -> None:
        """Record a new sampling session.

        Args:
            sampler: the sampling session.
            session_id: the session that it belongs to.
            weights_id: id of its weights; None for those of the base model.
        """
        adapter = sampler.weights.adapter
        if not (self.journal.is_durable and self.samplers.has(sampler.sampler_id)):
            return
        if weights_id is not None and adapter is not None:
            arrays = pack_arrays(adapter.params)
            self.journal.put_weights(weights_id, attrs.asdict(adapter.settings), arrays)
        self.journal.add_sampler(sampler.sampler_id, session_id, sampler.base_model, sampler.model_path, weights_id)

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
            self.journal.add_skipped(model.model_id, seq_id)
            model.seq_ids.reorder_buffer.skip(seq_id)

    def derive_seed(self, *parts: object) -> int | None:
        """Derive a seed from the server's seed and ``parts``; None if the server does not have a seed."""
        if self.settings.seed is None:
            return None
        return random.Random(f"{self.settings.seed}:{parts}").getrandbits(31)

    def stop(self, reason: str | None) -> None:
        """Stop all work without waiting for the running steps.

        Args:
            reason: the reason for which pending operations fail; None if another server resumes them.
        """
        self.sample_queue.close()
        self.loss_worker.close()
        for model in self.models.close():
            model.close()
            self._stopped_workers.append(model.worker)
        self.futures.close(reason)

    def join(self, timeout_s: float = JOIN_TIMEOUT_S) -> bool:
        """Wait ``timeout_s`` seconds for each worker that :meth:`stop` stopped; return True if all have ended."""
        ended = [worker.join(timeout_s) for worker in (self.loss_worker, *self._stopped_workers)]
        return self.sample_queue.join(timeout_s) and all(ended)

    def _release_session(self, session: ServerSession) -> None:
        log.info("session %s expired", session.session_id)
        reason = f"session {session.session_id} expired"
        for model_id in session.model_ids:
            model = self.models.remove(model_id, 410, reason)
            if model is not None:
                model.close()
                self.futures.fail_pending(model_id, f"model {model_id} is gone: {reason}")
        for loss_id in session.loss_ids:
            self.losses.pop(loss_id, None)
        for sampler_id in session.sampler_ids:
            self.samplers.remove(sampler_id)
        self.journal.remove_session(session.session_id, session.model_ids, session.sampler_ids)
