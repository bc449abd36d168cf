"""Tests of the log of a recovery: what it sends again, and what it loses."""

from __future__ import annotations

import pytest

from tinkerwire._training.recovery.operation_log import LoggedOperation, OperationLog


def never() -> None:
    """Stand for the start of an operation, which the log does not call."""


def add(log: OperationLog, *kinds: str) -> list[LoggedOperation]:
    """Add operations; a save of the recovery is called by the number of steps before it."""
    added = []
    for kind in kinds:
        operation = LoggedOperation("SaveWeights" if kind.isdigit() else kind, never)  # type: ignore[arg-type]
        if kind.isdigit():
            operation.is_own_save, operation.saved_step, operation.path = True, int(kind), f"path-{kind}"
        log.operations.append(operation)
        added.append(operation)
    return added


STEP = ("ForwardBackward", "OptimStep")


def test_save_ends_the_operations_before_it() -> None:
    log = OperationLog(max_steps=100)
    first = add(log, *STEP, "1", *STEP)
    assert [log.finish(operation) for operation in first[:2]] == [False, False]
    assert log.finish(first[2])
    assert [save.path for save in log.saves] == ["path-1"]
    assert log.to_resend() == first[3:]


def test_save_waits_for_the_results_before_it() -> None:
    """The program has not received them, so that a recovery must get them from an older save."""
    log = OperationLog(max_steps=100)
    operations = add(log, *STEP, "1")
    log.finish(operations[1])
    assert not log.finish(operations[2])
    assert log.to_resend() == operations
    assert log.finish(operations[0])
    assert log.to_resend() == []


@pytest.mark.parametrize(("max_steps", "kept", "dropped"), [(2, 4, 0), (1, 0, 2), (0, 0, 2)])
def test_finished_steps_are_kept_only_to_be_repeated(max_steps: int, kept: int, dropped: int) -> None:
    log = OperationLog(max_steps=max_steps)
    for operation in add(log, *STEP, *STEP):
        log.finish(operation)
    assert (len(log.operations), log.dropped_steps) == (kept, dropped)


def test_steps_are_kept_while_a_save_is_on_its_way() -> None:
    """The server has finished a save before later steps; only its response may come after theirs."""
    log = OperationLog(max_steps=1)
    *steps, save, first, second = add(log, *STEP, *STEP, "2", *STEP)
    for operation in (*steps, first, second):
        log.finish(operation)
    assert (log.finished_steps, log.dropped_steps) == (3, 0)
    log.remove(save)
    third, fourth = add(log, *STEP)
    for operation in (third, fourth):
        log.finish(operation)
    assert (log.finished_steps, log.dropped_steps) == (1, 3)


def test_step_in_progress_is_kept_as_a_whole() -> None:
    """Its gradients are lost with the model, so that the optimizer step alone would take none."""
    log = OperationLog(max_steps=0)
    operations = add(log, *STEP, *STEP)
    for operation in (operations[0], operations[1], operations[2]):
        log.finish(operation)
    assert log.to_resend() == operations[2:]
    assert log.dropped_steps == 1


def test_finished_reads_and_saves_of_the_program_are_not_repeated() -> None:
    log = OperationLog(max_steps=100)
    forward, save, load = add(log, "Forward", "SaveWeights", "LoadWeights")
    for operation in (forward, save, load):
        log.finish(operation)
    assert log.to_resend() == [load]


def test_failed_operation_is_forgotten() -> None:
    log = OperationLog(max_steps=100)
    operations = add(log, *STEP)
    log.remove(operations[0])
    log.remove(operations[0])
    assert log.to_resend() == operations[1:]
