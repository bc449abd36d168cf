"""Models under training: each with a worker of its own, its place in the sequence, and the engine's model."""

from __future__ import annotations

from tinkerwire._server.engine import EngineError, LoraModel, ModelConfig, base_model
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator, SeqIdLog
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.samplers import AdapterRef
from tinkerwire._server.storage.bounded import BoundedTable
from tinkerwire._server.storage.runs import Run

GONE_BYTES = 4 * 2**20
"""Bytes for the reasons why models are gone; the newest are kept."""


class TrainedModel:
    """One model. The engine's part belongs to the worker's thread: only jobs of the worker may touch it."""

    def __init__(
        self,
        run: Run,
        config: ModelConfig,
        session_id: str,
        resends: Deduplicator,
        *,
        strict_sequence: bool,
        gap_wait_s: float,
    ) -> None:
        self.run = run
        self.config = config
        self.session_id = session_id
        self.worker = Worker(f"tinkerwire-{run.run_id}")
        self.sequence = SeqIdLog(self.worker.put, resends, strict=strict_sequence, gap_wait_s=gap_wait_s)
        self.inflight = AdapterRef()
        """What the inflight samplers of this model sample from, since the first was opened."""
        self._engine: LoraModel | None = None

    @property
    def model_id(self) -> str:
        """Its identifier, and that of its training run."""
        return self.run.run_id

    def close(self, *, finish: bool = False) -> None:
        """Take no more work; what is queued and held is done still when ``finish``, else dropped."""
        if finish:
            self.sequence.turns.flush()
        self.sequence.turns.close()
        self.worker.close(finish=finish)

    def build(self) -> None:
        """Make the engine's model: the first job of the worker."""
        self._engine = LoraModel(base_model(self.config.name), self.run.settings)

    @property
    def engine(self) -> LoraModel:
        """The engine's model, or EngineError when it could not be made."""
        if self._engine is None:
            raise EngineError(f"{self.model_id} could not be created; see the result of its create_model")
        return self._engine


class Models:
    """The models that are loaded."""

    def __init__(self) -> None:
        self._models: dict[str, TrainedModel] = {}
        self._gone: BoundedTable[str, tuple[int, str]] = BoundedTable(GONE_BYTES)

    def add(self, model: TrainedModel) -> None:
        """Keep a new model."""
        self._models[model.model_id] = model

    def get(self, model_id: str) -> TrainedModel:
        """The model of that id.

        Raises:
            Refusal: 404 when there is none, or it was unloaded; 410 when its session expired.
        """
        model = self._models.get(model_id)
        if model is not None:
            return model
        gone = self._gone.get(model_id)
        if gone is None:
            raise HttpError(404, f"there is no model {model_id!r}; create_model gives one")
        status, reason = gone
        raise HttpError(status, f"model {model_id} is gone: {reason}")

    def is_known(self, model_id: str) -> bool:
        """Say whether there is such a model, or was one."""
        return model_id in self._models or model_id in self._gone

    def find(self, model_id: str | None) -> TrainedModel | None:
        """The model of that id, or None."""
        return None if model_id is None else self._models.get(model_id)

    def remove(self, model_id: str, status: int, reason: str) -> TrainedModel | None:
        """Forget a model; what is queued on its worker is left to the caller.

        Args:
            status: by which later requests for it are refused.
        """
        model = self._models.pop(model_id, None)
        if model is not None:
            self._gone.put(model_id, (status, reason), len(model_id) + len(reason))
        return model

    def close(self) -> list[TrainedModel]:
        """Forget all models, and give them back."""
        left = list(self._models.values())
        self._models.clear()
        return left
