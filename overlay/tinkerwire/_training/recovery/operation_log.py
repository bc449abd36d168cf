"""The operations since the last save: what a recovery must send again, and what it loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ..._futures.future import APIFuture

STATE_CHANGES = frozenset({"ForwardBackward", "LoadWeights", "OptimStep"})
"""Operations that change weights, gradients or optimizer."""


@attrs.define(eq=False)
class LoggedOperation:
    """One operation of the user, or a save of the recovery itself."""

    kind: str
    start: Callable[[], APIFuture[Any]]
    """Starts the operation on the current model."""
    future: APIFuture[Any] | None = None
    """The latest start."""
    generation: int = 0
    """Number of the model that the latest start is for."""
    is_finished: bool = False
    is_own_save: bool = False
    saved_step: int = 0
    """Number of optimizer steps before a save of the recovery."""
    path: str = ""
    """Path of such a save, once it is finished."""


@attrs.frozen
class Save:
    """A finished save of the recovery."""

    path: str
    step: int


class OperationLog:
    """Operations in call order, since the last save whose predecessors are all finished. Callers hold a lock.

    Args:
        max_steps: number of finished steps that are kept to be repeated. There may be more while a save is on its way.
    """

    def __init__(self, *, max_steps: int) -> None:
        self._max_steps = max_steps
        self.operations: list[LoggedOperation] = []
        self.saves: list[Save] = []
        """Finished saves, oldest first."""
        self.has_saved = False
        """True once a save was finished."""
        self.dropped_steps = 0
        """Finished optimizer steps since the last save that are not in the log any more."""

    def finish(self, operation: LoggedOperation) -> bool:
        """Record a result; return True if a save became the one to start from."""
        operation.is_finished = True
        if operation.kind not in STATE_CHANGES and not operation.is_own_save:
            self.remove(operation)
        return self._advance()

    def remove(self, operation: LoggedOperation) -> None:
        """Forget an operation that failed or was cancelled."""
        if operation in self.operations:
            self.operations.remove(operation)

    @property
    def finished_steps(self) -> int:
        """Number of finished optimizer steps in the log."""
        return sum(operation.kind == "OptimStep" and operation.is_finished for operation in self.operations)

    def to_resend(self) -> list[LoggedOperation]:
        """Return the operations that a new model needs, in order."""
        return list(self.operations)

    def _advance(self) -> bool:
        base = None
        for number, operation in enumerate(self.operations):
            if not operation.is_finished:
                break
            if operation.is_own_save:
                base = number
        if base is not None:
            save = self.operations[base]
            self.saves.append(Save(save.path, save.saved_step))
            self.has_saved = True
            del self.operations[: base + 1]
            self.dropped_steps = 0
        # The server runs operations in order: a save before finished steps is finished there, and its result will come.
        is_saving = any(operation.is_own_save for operation in self.operations)
        if self.finished_steps > self._max_steps and not (self._max_steps and is_saving):
            self._drop_finished_steps()
        return base is not None

    def _drop_finished_steps(self) -> None:
        """Forget leading steps that are finished as a whole: a recovery loses them."""
        last = None
        for number, operation in enumerate(self.operations):
            if not operation.is_finished or operation.is_own_save:
                break
            if operation.kind == "OptimStep":
                last = number
        if last is not None:
            self.dropped_steps += sum(operation.kind == "OptimStep" for operation in self.operations[: last + 1])
            del self.operations[: last + 1]
