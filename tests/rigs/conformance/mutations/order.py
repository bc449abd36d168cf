"""Mutations of seq_ids: their order, gaps and repetition."""

from __future__ import annotations

import random
import threading
from typing import Any

from tinkerwire._server import conversion
from tinkerwire._server.engine import training as engine
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.http.idempotency import IdempotencyCache
from tinkerwire._server.ordering import seq_ids

from . import patches
from .mutation import Group

GROUP = Group("Order")
LONG_DELAY_S = 0.3


def _find_any(self: Any, seq_id: Any, key: Any, fingerprint: Any) -> Any:
    return self._requests.find(seq_id, key, fingerprint)


def _release_at_once() -> None:
    def put(self: Any, number: int, job: Any) -> None:
        with self._lock:
            self.last_released = max(self.last_released, number)
            self._release(job)

    seq_ids.ReorderBuffer.put = put  # type: ignore[method-assign]


@GROUP.mutation("ORD-001")
def order_random() -> None:
    """Operations start after random delays, whatever their seq_ids."""

    def put(self: Any, number: int, job: Any) -> None:
        self.last_released = max(self.last_released, number)
        threading.Timer(random.choice([0, LONG_DELAY_S]), self._release, [job]).start()

    seq_ids.ReorderBuffer.put = put  # type: ignore[method-assign]
    seq_ids.SeqIdLog.find = _find_any  # type: ignore[method-assign]


@GROUP.mutation("ORD-002")
def order_of_arrival() -> None:
    """Operations run in the order of their arrival, whatever their seq_ids."""
    _release_at_once()
    seq_ids.SeqIdLog.find = _find_any  # type: ignore[method-assign]


@GROUP.mutation("ORD-003", "ORD-022", strict_sequence=True, client_config={"parallel_fwdbwd_chunks": True})
def gaps_rejected_despite_flag() -> None:
    """Operations behind a gap are rejected, and client/config lets clients send chunks in any order."""


@GROUP.mutation("ORD-004", gap_wait_s=0.5)
def gaps_held_shortly() -> None:
    """Operations behind a gap run after half a second."""


@GROUP.mutation(
    *("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "LOS-001", "LOS-010", "LOS-020", "LOS-030"),
    *("LOS-041", "ORD-010", "ORD-022", "RUN-002", "TRN-001", "WGT-008"),
)
def one_sequence_for_all_models() -> None:
    """Each seq_id exists once for all models."""
    last: dict[Any, Any] = {}

    def make(original: Any) -> Any:
        def find(self: Any, seq_id: Any, key: Any, fingerprint: Any) -> Any:
            result = original(self, seq_id, key, fingerprint)
            if result is None and last.get(seq_id, self) is not self:
                raise self._requests.create_conflict(seq_id)
            last[seq_id] = self
            return result

        return find

    patches.replace(seq_ids.SeqIdLog, "find", make)


@GROUP.mutation("MOD-014", "ORD-010", "PRO-008", "PRO-009", "SPL-002")
def repeated_operations_conflict() -> None:
    """An operation that is resent is a conflict."""

    def make(original: Any) -> Any:
        def find(self: Any, number: Any, key: Any, fingerprint: Any) -> Any:
            if original(self, number, key, fingerprint) is not None:
                raise self.create_conflict(number)

        return find

    patches.replace(seq_ids.Deduplicator, "find", make)
    IdempotencyCache.find = lambda *_: None  # type: ignore[assignment,method-assign]


@GROUP.mutation("ORD-011", "SPL-002")
def new_key_conflicts() -> None:
    """An operation that is resent with another idempotency key is a conflict."""

    def find(self: Any, number: Any, key: Any, _: Any) -> Any:
        accepted = self._requests.get((self._owner, number))
        if accepted is None:
            return None
        if accepted.key != key:
            raise self.create_conflict(number)
        return accepted.assigned_id

    seq_ids.Deduplicator.find = find  # type: ignore[method-assign]


@GROUP.mutation("ORD-002", "ORD-012", "ORD-013", "ORD-014", "PRO-009")
def nothing_deduplicated() -> None:
    """An operation that is resent runs again."""
    _release_at_once()
    seq_ids.SeqIdLog.find = lambda *_: None  # type: ignore[assignment,method-assign]
    IdempotencyCache.find = lambda *_: None  # type: ignore[assignment,method-assign]


@GROUP.mutation("ORD-015")
def other_body_has_old_result() -> None:
    """Another body under a used seq_id has the result of the first."""

    def find(self: Any, number: Any, *_: Any) -> Any:
        accepted = self._requests.get((self._owner, number))
        return None if accepted is None else accepted.assigned_id

    seq_ids.Deduplicator.find = find  # type: ignore[method-assign]


@GROUP.mutation("ORD-020")
def failure_ends_the_model() -> None:
    """A model is unusable after its first failure."""

    def make(original: Any) -> Any:
        def forward_backward(self: Any, *args: Any, **settings: Any) -> Any:
            if getattr(self, "is_dead", False):
                raise EngineError("mutated: the model is dead")
            try:
                return original(self, *args, **settings)
            except EngineError:
                self.is_dead = True
                raise

        return forward_backward

    patches.replace(engine.LoraModel, "forward_backward", make)


@GROUP.mutation("ORD-021")
def failed_batch_leaves_gradients() -> None:
    """Datums are computed one by one, and a failure keeps the gradients of those before."""

    def make(original: Any) -> Any:
        def forward_backward(self: Any, examples: Any, *args: Any, **settings: Any) -> Any:
            results = [original(self, [example], *args, **settings) for example in examples]
            metrics = dict(results[0].metrics)
            metrics["loss:sum"] = sum(result.metrics["loss:sum"] for result in results)
            outputs = [output for result in results for output in result.outputs]
            return engine.LossResult(outputs, metrics if len(results) > 1 else results[0].metrics)

        return forward_backward

    patches.replace(engine.LoraModel, "forward_backward", make)
    conversion.to_examples = lambda data, config: [  # type: ignore[assignment]
        conversion._to_example(f"datum {index}", datum, config) for index, datum in enumerate(data)
    ]


@GROUP.mutation("ORD-005", "ORD-022", gap_wait_s=1000.0)
def gaps_held_for_ever() -> None:
    """Operations behind a gap are held for 1000 s."""


@GROUP.mutation("CON-004", "CON-006", "ORD-006")
def interleaved_models_conflict() -> None:
    """An operation behind the first is a conflict if another model had its seq_id just before."""
    last: dict[str, Any] = {"number": None, "log": None}

    def make(original: Any) -> Any:
        def find(self: Any, seq_id: Any, key: Any, fingerprint: Any) -> Any:
            result = original(self, seq_id, key, fingerprint)
            if seq_id and seq_id > 1 and last["number"] == seq_id and last["log"] is not self:
                raise self._requests.create_conflict(seq_id)
            last.update(number=seq_id, log=self)
            return result

        return find

    patches.replace(seq_ids.SeqIdLog, "find", make)
