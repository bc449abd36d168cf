"""TrainingClient that saves on its own, and resumes from the last save after a loss of session or model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tinkerwire_base.call import Call
from tinkerwire_base.errors import (
    BadRequestError,
    ClientClosedError,
    NotFoundError,
    RequestFailedError,
    SessionExpiredError,
    TinkerError,
    UnprocessableEntityError,
)
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import delete_checkpoint
from tinkerwire_generated.api.weights import save_weights
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS

from ..._checkpoints.paths import parse_checkpoint_address
from ..._connection.retry import RetryConfig
from ..._futures.background_thread import CALLBACKS
from ..._futures.fork_lock import ForkLock
from ..._futures.future import APIFuture
from ..._futures.logger import log
from ..._sampling.client import SamplingClient
from ..._session.session import Session
from ..._transport.backpressure import Traffic
from ..._usage import Usage
from ..chunking import ChunkLimits
from ..client import TrainingClient
from ..idempotent_saves import NamedSaves
from ..losses.client_loss import ArrayKind
from ..losses.handles import LossHandle
from ..model_creation import ModelFactory, model_from_state_factory
from ..operations import Operations
from .operation_log import LoggedOperation, OperationLog, Save
from .settings import MAX_RETAINED_SAVES, Recovery, RecoveryReport, shows_loss

T = TypeVar("T")
SAVE_PREFIX = "tinkerwire-recovery-"
UNUSABLE_SAVE = (BadRequestError, NotFoundError, RequestFailedError, UnprocessableEntityError)
"""Errors of a server that cannot load a save; an older save may be whole."""


class RecoveringTrainingClient(TrainingClient):
    """TrainingClient with :class:`Recovery`: a loss costs time, and the steps that are not replayed.

    An operation that shows the loss waits for the recovery. Unfinished operations are resent to the new model,
    which has another ``model_id``. Sampling clients of the lost session stay lost.
    """

    def __init__(self, session: Session, chunk_limits: ChunkLimits, create: ModelFactory, recovery: Recovery) -> None:
        super().__init__(session, chunk_limits, create)
        self._chunk_limits = chunk_limits
        self._create_new = create
        self._recovery = recovery
        self._lock = ForkLock()
        self._log = OperationLog(max_steps=MAX_RETAINED_SAVES * recovery.every if recovery.replay else 0)
        self._generation = 0
        self._steps = self._steps_at_save = self._save_number = 0
        self._failed_attempts = 0
        self._is_unloaded = False
        self._recovering: asyncio.Lock | None = None
        self._earlier_usage = Usage()
        self._start_save()

    # --- operations --------------------------------------------------------------------------------------------------

    def unload_model(self) -> APIFuture[models.UnloadModelResponse]:
        """See :meth:`TrainingClient.unload_model`; the model is not recovered."""
        self._is_unloaded = True
        return super().unload_model()

    def save_weights_and_get_sampling_client(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: models.SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """See :meth:`TrainingClient.save_weights_and_get_sampling_client`; with recovery, it waits for the client."""
        return self._start_sampling_client(name, retry_config, record_stability_info, kind).result()

    async def save_weights_and_get_sampling_client_async(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: models.SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """Await :meth:`save_weights_and_get_sampling_client`."""
        return await self._start_sampling_client(name, retry_config, record_stability_info, kind)

    def save_weights_and_get_sampling_client_submit(
        self, retry_config: RetryConfig | None = None
    ) -> APIFuture[SamplingClient]:
        """Return a future of :meth:`save_weights_and_get_sampling_client`."""
        return self._start_sampling_client(None, retry_config, False, "snapshot")

    @property
    def usage(self) -> Usage:
        """Number of tokens in this client's results so far, on all of its models."""
        return self._earlier_usage + super().usage

    def _start_sampling_client(self, *arguments: Any) -> APIFuture[SamplingClient]:
        def start() -> APIFuture[SamplingClient]:
            client = super(RecoveringTrainingClient, self).save_weights_and_get_sampling_client(*arguments)
            return self._connection.start(client.result_async, "SaveWeightsForSampler")

        return self._start("SaveWeightsForSampler", start)

    def _forward_backward_by_handle(
        self, data: Sequence[models.Datum], handle: LossHandle, arrays: ArrayKind | None
    ) -> APIFuture[models.ForwardBackwardOutput]:
        raise ValueError(
            f"loss {handle.name}: a LossHandle ends with its session, so that a client with recover= cannot use it; "
            "pass a function of (data, logprobs)"
        )

    def _info(self) -> APIFuture[models.GetInfoResponse]:
        return self._start("GetInfo", super()._info)

    # --- the log -----------------------------------------------------------------------------------------------------

    def _start(self, kind: str, start: Callable[[], APIFuture[T]]) -> APIFuture[T]:
        """Start an operation on the current model, and return a future that survives a recovery."""
        with self._lock.current:
            started = self._start_logged(LoggedOperation(kind, start))
            self._steps += kind == "OptimStep"
            # A recovery from an older save would lose loaded weights.
            if kind == "LoadWeights" or self._steps - self._steps_at_save >= self._recovery.every:
                self._start_save()
        return started

    def _start_save(self) -> None:
        """Save the state for a recovery, behind the operations started so far."""
        with self._lock.current:
            self._steps_at_save = self._steps
            self._save_number += 1
            name = f"{SAVE_PREFIX}{self._save_number}"
            operation = LoggedOperation(
                "SaveWeights",
                lambda: self._save_state(name),
                is_own_save=True,
                saved_step=self._steps,
            )
            saving: APIFuture[Any] = self._start_logged(operation)
        saving.call_when_done(self._log_failed_save)

    def _save_state(self, name: str) -> APIFuture[models.SaveWeightsResponse]:
        """Save the state of the current model, without an entry in the log."""

        def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
            return save_weights(body=models.SaveWeightsRequest(model_id=model_id, path=name, seq_id=seq_id))

        kind, segment = "SaveWeights", CHECKPOINT_SEGMENTS["training"]
        return self._connection.start(
            lambda: self._run_save(kind, segment, name, call, models.SaveWeightsResponse), kind
        )

    def _start_logged(self, operation: LoggedOperation) -> APIFuture[Any]:
        with self._lock.current:
            operation.future, operation.generation = operation.start(), self._generation
            self._log.operations.append(operation)
            return self._connection.start(
                lambda: self._operations.record_failure(self._finish(operation)), operation.kind
            )

    async def _finish(self, operation: LoggedOperation) -> Any:
        """Wait for an operation, through recoveries, and return its result."""
        while True:
            future, generation = operation.future, operation.generation
            assert future is not None
            try:
                result = await future.result_async()
            except TinkerError as error:
                if generation == self._generation and not self._is_loss(error, operation):
                    self._forget(operation)
                    raise
                await self._recover(generation, error)
                continue
            except BaseException:
                self._forget(operation)
                raise
            if generation != self._generation:
                # The result is of a model that was given up; the operation runs on the new one.
                continue
            if operation.is_own_save:
                operation.path = result.path
            with self._lock.current:
                has_new_save = self._log.finish(operation)
                self._failed_attempts = 0
            if has_new_save:
                self._connection.operations.spawn(self._delete_old_saves())
            return result

    def _is_loss(self, error: TinkerError, operation: LoggedOperation) -> bool:
        if isinstance(error, ClientClosedError) or self._is_unloaded:
            return False
        return shows_loss(error, operation.kind) or (self._recovering is not None and self._recovering.locked())

    def _forget(self, operation: LoggedOperation) -> None:
        with self._lock.current:
            self._log.remove(operation)

    # --- recovery ----------------------------------------------------------------------------------------------------

    async def _recover(self, generation: int, error: TinkerError) -> None:
        """Start another model from the last save, and send it what the lost one had not finished; once per loss."""
        if self._recovering is None:
            self._recovering = asyncio.Lock()
        async with self._recovering:
            if generation != self._generation:
                return
            while True:
                self._failed_attempts += 1
                is_unrecoverable = self._log.has_saved and not self._log.saves
                if is_unrecoverable or self._failed_attempts > self._recovery.attempts:
                    raise error
                newest_step = self._log.saves[-1].step if self._log.saves else 0
                try:
                    if isinstance(error, SessionExpiredError):
                        await self._session.renew(error.session_id)
                    operations, save = await self._create_model(error)
                except TinkerError as second:
                    if second is error or not shows_loss(second, "CreateModel"):
                        raise
                    # The server lost the new session, too.
                    error = second
                    continue
                report = self._resend(operations, save, newest_step, error)
                failure = await self._wait_for_replay()
                if failure is None:
                    break
                error = failure
            self._report(report)

    async def _create_model(self, error: TinkerError) -> tuple[Operations, Save]:
        """Create a model from the last save that can be loaded; a new model if the first save was not finished."""
        if not self._log.has_saved:
            operations = Operations(self._connection, self._chunk_limits, self._create_new)
            await operations.creation.result_async()
            return operations, Save("", 0)
        while self._log.saves:
            save = self._log.saves[-1]
            create = model_from_state_factory(
                self._session,
                save.path,
                base_model=None,
                user_metadata=None,
                weights_access_token=None,
                optimizer=None,
                with_optimizer_state=True,
            )
            operations = Operations(self._connection, self._chunk_limits, create)
            try:
                await operations.creation.result_async()
                return operations, save
            except UNUSABLE_SAVE as cause:
                log.warning("recovery: the save %s cannot be loaded: %s", save.path, cause)
                with self._lock.current:
                    self._log.saves.pop()
        raise error

    def _resend(self, operations: Operations, save: Save, newest_step: int, error: TinkerError) -> RecoveryReport:
        """Make a model the current one, and start the logged operations on it in order."""
        with self._lock.current:
            self._earlier_usage += self._operations.usage_counter.usage
            self._operations, self._creation = operations, operations.creation
            self._saves = NamedSaves(self._connection, operations)
            self._generation += 1
            replayed, resent = self._log.finished_steps, 0
            for operation in self._log.to_resend():
                resent += not operation.is_finished and not operation.is_own_save
                operation.future, operation.generation = operation.start(), self._generation
            # The log no longer has the steps between an older save and the newest one.
            lost, self._log.dropped_steps = self._log.dropped_steps + newest_step - save.step, 0
            return RecoveryReport(
                error=error,
                path=save.path,
                step=save.step,
                lost_steps=lost,
                replayed_steps=replayed,
                resent=resent,
            )

    async def _wait_for_replay(self) -> TinkerError | None:
        """Wait for the operations that were finished before; return the error if the new model is lost, too."""
        with self._lock.current:
            replayed = [operation for operation in self._log.operations if operation.is_finished]
        for operation in replayed:
            assert operation.future is not None
            try:
                result = await operation.future.result_async()
            except TinkerError as error:
                if not shows_loss(error, operation.kind):
                    raise
                return error
            if operation.is_own_save:
                operation.path = result.path
        return None

    def _report(self, report: RecoveryReport) -> None:
        log.warning(
            "recovery: a new model starts from %s, after %d optimizer steps; %d finished steps are lost, %d replayed, "
            "%d operations resent; the reason: %s",
            report.path or "new weights",
            report.step,
            report.lost_steps,
            report.replayed_steps,
            report.resent,
            report.error,
        )
        callback = self._recovery.on_recovery
        if callback is not None:
            CALLBACKS.call(lambda: _call(callback, report))

    async def _delete_old_saves(self) -> None:
        while True:
            with self._lock.current:
                if len(self._log.saves) <= self._recovery.keep:
                    return
                save = self._log.saves.pop(0)
            address = parse_checkpoint_address(save.path)
            try:
                call = delete_checkpoint(address.training_run_id, address.checkpoint_id)
                await self._connection.call(call, Traffic.REST)
            except TinkerError as error:
                log.warning("recovery: the old save %s could not be deleted: %s", save.path, error)

    def _log_failed_save(self, saving: APIFuture[Any]) -> None:
        if saving.cancelled():
            return
        error = saving.exception()
        saving.mark_retrieved()
        if error is not None and not isinstance(error, ClientClosedError):
            log.error("recovery: a save failed, and a recovery would start from the one before it: %s", error)


def _call(callback: Callable[[RecoveryReport], object], report: RecoveryReport) -> None:
    with suppress(BaseException):
        try:
            callback(report)
        except Exception as error:
            log.error("Recovery.on_recovery failed: %r", error, exc_info=error)
