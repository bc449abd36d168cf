"""Models under training, each with its own worker, seq_ids and model of the engine."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from time import perf_counter
from typing import TypeVar

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.engine import EngineError, LoraModel, ModelConfig, base_model
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator, SeqIdLog
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.samplers import AdapterRef
from tinkerwire._server.storage.atomic_files import pack_arrays, unpack_arrays
from tinkerwire._server.storage.journal import Journal
from tinkerwire._server.storage.runs import Run

T = TypeVar("T")

REMOVED_BYTES = 4 * 2**20
"""Maximum memory of the reasons for which models were removed; the newest are kept."""


MAX_REPLAY_S = 1.0
"""Computing time of the operations to replay after a restart, beyond which the model is recorded instead."""


class Effect(Enum):
    """The effect of an operation on the state of its model, which decides what the journal records."""

    NONE = "none"
    REPLAYED = "replayed"
    """The operation changes the state, and has the same effect whenever it runs."""
    RECORDED = "recorded"
    """The operation changes the state and depends on more than the state."""
    REMOVED = "removed"
    """The operation removes the model."""


class TrainedModel:
    """A model under training. Only jobs of its worker may use :attr:`engine`.

    Args:
        run: the training run.
        config: config of the base model.
        session_id: the session that the model belongs to.
        requests: detects resent operations.
        journal: records the model.
        strict_sequence: reject operations that leave a gap in the seq_ids.
        gap_wait_s: seconds for which operations behind a gap wait.
    """

    def __init__(
        self,
        run: Run,
        config: ModelConfig,
        session_id: str,
        requests: Deduplicator,
        journal: Journal,
        *,
        strict_sequence: bool,
        gap_wait_s: float,
    ) -> None:
        self.run = run
        self.config = config
        self.session_id = session_id
        self.worker = Worker(f"tinkerwire-{run.run_id}")
        self.seq_ids = SeqIdLog(self.worker.put, requests, strict=strict_sequence, gap_wait_s=gap_wait_s)
        self.inflight_weights = AdapterRef()
        """Weights that all inflight samplers of this model share."""
        self._engine: LoraModel | None = None
        self._journal = journal
        self._is_recorded = False
        self._executed_seq_id = 0
        self._replay_s = 0.0

    @property
    def model_id(self) -> str:
        """Id of the model and of its training run."""
        return self.run.run_id

    def close(self, *, finish: bool = False) -> None:
        """Reject further work.

        Args:
            finish: run all queued and held work first; otherwise drop it.
        """
        if finish:
            self.seq_ids.reorder_buffer.flush()
        self.seq_ids.reorder_buffer.close()
        self.worker.close(finish=finish)

    def build(self) -> None:
        """Create the engine's model: the first job of the worker."""
        self._engine = LoraModel(base_model(self.config.name), self.run.settings)

    def restore(self, last_seq_id: int) -> None:
        """Continue a model of the journal after the operation with a seq_id."""
        self._is_recorded = True
        self._executed_seq_id = last_seq_id
        self.seq_ids.reorder_buffer.resume_after(last_seq_id)

    def measure(self, work: Callable[[], T]) -> T:
        """Do work that may be replayed after a restart, and return its result."""
        start = perf_counter()
        try:
            return work()
        finally:
            self._replay_s += perf_counter() - start

    def record(self, number: int, seq_id: int | None, effect: Effect) -> None:
        """Record the effect of an executed operation, in the transaction of its result."""
        self._executed_seq_id = max(self._executed_seq_id, seq_id or 0)
        if effect is Effect.REMOVED:
            self._journal.remove_model(self.model_id)
            return
        if effect is Effect.RECORDED or (effect is Effect.REPLAYED and self._replay_s > MAX_REPLAY_S):
            self._journal.put_model(self.model_id, self.session_id, self._executed_seq_id, self._take_snapshot())
            self._is_recorded = True
            self._replay_s = 0.0
            return
        self._journal.set_last_seq_id(self.model_id, self._executed_seq_id)
        if effect is Effect.REPLAYED:
            self._journal.keep_operation(number)

    def _take_snapshot(self) -> bytes | None:
        if not self._journal.is_durable:
            return None
        try:
            return pack_arrays(self.engine.snapshot_arrays())
        except EngineError:
            return None

    @property
    def engine(self) -> LoraModel:
        """The engine's model.

        Raises:
            EngineError: the model could not be created.
        """
        if self._engine is None and self._is_recorded:
            snapshot = self._journal.read_snapshot(self.model_id)
            if snapshot is not None:
                self.build()
                assert self._engine is not None
                self._engine.restore_arrays(unpack_arrays(snapshot))
        if self._engine is None:
            raise EngineError(f"{self.model_id} could not be created; see the result of its create_model")
        return self._engine


class Models:
    """The loaded models."""

    def __init__(self) -> None:
        self._models: dict[str, TrainedModel] = {}
        self._removed: BoundedTable[str, tuple[int, str]] = BoundedTable(REMOVED_BYTES)

    def add(self, model: TrainedModel) -> None:
        """Add a new model."""
        self._models[model.model_id] = model

    def get(self, model_id: str) -> TrainedModel:
        """Return a model.

        Raises:
            HttpError: 404 if the model is unknown or was unloaded, 410 if its session expired.
        """
        model = self._models.get(model_id)
        if model is not None:
            return model
        removed = self._removed.get(model_id)
        if removed is None:
            raise HttpError(404, f"unknown model {model_id!r}; create one with create_model")
        status, reason = removed
        raise HttpError(status, f"model {model_id} is gone: {reason}")

    def is_known(self, model_id: str) -> bool:
        """Return whether a model exists or existed."""
        return model_id in self._models or model_id in self._removed

    def find(self, model_id: str | None) -> TrainedModel | None:
        """Return a model, or None."""
        return None if model_id is None else self._models.get(model_id)

    def remove(self, model_id: str, status: int, reason: str) -> TrainedModel | None:
        """Remove a model and return it, or None; the caller closes it.

        Args:
            model_id: id of the model.
            status: HTTP status of later requests for the model.
            reason: reason in the error of later requests.
        """
        model = self._models.pop(model_id, None)
        if model is not None:
            self._removed.put(model_id, (status, reason), len(model_id) + len(reason))
        return model

    def close(self) -> list[TrainedModel]:
        """Remove all models and return them; the caller closes them."""
        models = list(self._models.values())
        self._models.clear()
        return models
