"""Trace files: what they hold, their bounds, and their processes."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import tinkerwire as tw
from client.trace.conftest import NANO, OpenTraced
from support.clients import PARAMS, PROMPT, datum, open_client
from support.scripted import Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._trace import recorder, trace_file
from tinkerwire._trace.reading import Trace, read_trace


def train(service: tw.ServiceClient) -> None:
    """Run two steps and one sample."""
    training = service.create_lora_training_client(NANO, rank=4)
    for _ in range(2):
        batch = training.forward_backward([datum(1, 2, 3)], "cross_entropy")
        step = training.optim_step(tw.AdamParams(learning_rate=1e-3))
        batch.result()
        step.result()
    training.save_weights_and_get_sampling_client().sample(PROMPT, 1, PARAMS).result()


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_operations_have_their_events(traced: Callable[..., Trace]) -> None:
    """A batch has its turn, size, request, polls and decoding; a sample its slot."""
    trace = traced(train)
    kinds = [operation.kind for operation in trace.operations]
    assert kinds == ["CreateModel", *["ForwardBackward", "OptimStep"] * 2, "SaveWeightsForSampler", "Sample"]
    batch, sample = trace.operations[3], trace.operations[-1]
    names = [event[0] for event in batch.events if event[0] != "unready"]
    assert [name for name in names if name != "poll"] == [
        "start",
        "turn",
        "split",
        "send",
        "response",
        "ready",
        "decoded",
    ]
    assert "poll" in names
    assert [event[0] for event in sample.events[:4]] == ["start", "slot", "send", "response"]
    assert (batch.step, sample.step) == (1, 2)
    assert (batch.input_tokens, batch.model, sample.model) == (3, NANO, NANO)
    assert (sample.input_tokens, sample.output_tokens) == (PROMPT.length, PARAMS.max_tokens)
    assert sample.sampler == trace.operations[-2].sampler != ""
    assert batch.outcome == "done"
    assert batch.is_awaited
    assert len(batch.requests) == 1


def test_nothing_is_recorded_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with tw.ServiceClient(base_url="local") as service:
        service.get_server_capabilities()
        assert service._connection.operations.recorder is None
    assert not list(tmp_path.iterdir())


def test_variable_sets_the_path(open_traced: OpenTraced, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKERWIRE_TRACE", str(path))
    with open_traced(trace=None) as service:
        service.get_server_capabilities()
    assert [operation.kind for operation in read_trace(path).operations] == ["get_server_capabilities"]


@pytest.mark.parametrize("name", ["missing/run.trace", ".", "other.txt"])
def test_unusable_path_is_rejected_at_construction(tmp_path: Path, name: str) -> None:
    """A folder, a folder that does not exist, and a file with other content raise an error that names the path."""
    (tmp_path / "other.txt").write_text("notes")
    with pytest.raises(ValueError, match=r"^trace: '") as raised:
        tw.ServiceClient(base_url="local", trace=tmp_path / name)
    assert name.strip(".") in str(raised.value)
    assert (tmp_path / "other.txt").read_text() == "notes"


def test_wrong_type_of_path_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"^trace: expected a path, got int$"):
        tw.ServiceClient(base_url="local", trace=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not be empty"):
        tw.ServiceClient(base_url="local", trace="")


@pytest.mark.parametrize("size", ["many", "-1", "9999"])
def test_wrong_size_is_rejected(path: Path, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKERWIRE_TRACE_MAX_BYTES", size)
    with pytest.raises(ValueError, match=f"^TINKERWIRE_TRACE_MAX_BYTES must be .* got '{size}'$"):
        tw.ServiceClient(base_url="local", trace=path)


def test_file_is_bounded_and_counts_what_it_omits(
    path: Path,
    open_traced: OpenTraced,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The newest operations are kept, the others are counted, and one warning is logged."""
    monkeypatch.setenv("TINKERWIRE_TRACE_MAX_BYTES", "12000")
    with open_traced() as service:
        for _ in range(200):
            service.get_server_capabilities()
    sizes = [file.stat().st_size for file in (path, Path(f"{path}.old"))]
    trace = read_trace(path)
    assert max(sizes) <= 6000
    assert len(trace.operations) + trace.omitted == 200
    assert trace.omitted > 100
    numbers = [operation.number for operation in trace.operations]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert [record.message for record in caplog.records if "maximum size" in record.message] != []
    assert sum("maximum size" in record.message for record in caplog.records) == 1


def test_full_disk_does_not_fail_operations(
    path: Path, open_traced: OpenTraced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning is logged once; what could not be written is counted, and what follows is readable."""
    write, is_full = os.write, [True]

    def fail(descriptor: int, data: Any) -> int:
        if is_full[0]:
            # A part of a line; a line that lacks only its end counts as written.
            if len(data) > 100:
                return write(descriptor, data[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    with open_traced() as service:
        monkeypatch.setattr(trace_file.os, "write", fail)
        for count in (1, 2):
            for _ in range(count):
                service.get_server_capabilities()
            service._connection._flush_recorder()
        is_full[0] = False
        service.get_server_capabilities()
    trace = read_trace(path)
    assert (len(trace.operations), trace.lost) == (1, 3)
    assert [record.levelname for record in caplog.records if "cannot be written" in record.message] == ["WARNING"]


@pytest.mark.parametrize(("missing", "lost"), [(1, 0), (2, 1)])
def test_operation_of_which_only_the_end_of_its_line_is_missing_is_not_lost(
    missing: int, lost: int, path: Path, open_traced: OpenTraced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next line begins with the end of the torn one."""
    write = os.write

    def fail(descriptor: int, data: Any) -> int:
        if len(data) == missing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:-missing])

    with open_traced() as service:
        service.get_server_capabilities()
        service._connection._flush_recorder()
        service.get_server_capabilities()
        with monkeypatch.context() as patch:
            patch.setattr(trace_file.os, "write", fail)
            service._connection._flush_recorder()
    trace = read_trace(path)
    assert (len(trace.operations), trace.lost) == (2 - lost, lost)


def test_stuck_receiver_is_reported(
    open_traced: OpenTraced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Closing the client does not wait for it."""
    is_stuck, is_released = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        is_stuck.set()
        is_released.wait(60)

    monkeypatch.setattr(recorder, "RECEIVERS_S", 0.01)
    with open_traced() as service:
        monkeypatch.setattr(trace_file.TraceFile, "write", block)
        service.get_server_capabilities()
        assert is_stuck.wait(60)
    is_released.set()
    assert "the last operations are not recorded" in caplog.text


def test_lines_before_the_end_of_the_disk_count_as_written(
    path: Path, open_traced: OpenTraced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that fits in part loses only what does not fit."""
    write = os.write
    with open_traced() as service:
        for _ in range(5):
            service.get_server_capabilities()
        left: list[int] = []

        def fail(descriptor: int, data: Any) -> int:
            if not left:
                # In the midst of a later line.
                left.append(bytes(data).index(b"\n", 400) + 50)
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            done = write(descriptor, data[: left[0]])
            left[0] -= done
            return done

        with monkeypatch.context() as patch:
            patch.setattr(trace_file.os, "write", fail)
            service._connection._flush_recorder()
    trace = read_trace(path)
    assert 1 <= len(trace.operations) <= 4
    assert len(trace.operations) + trace.lost == 5
    assert trace.unreadable == 1


def test_clients_of_one_process_share_the_file(open_traced: OpenTraced, path: Path) -> None:
    with open_traced() as first, open_traced() as second:
        first.get_server_capabilities()
        second.get_server_capabilities()
    trace = read_trace(path)
    assert [operation.client for operation in trace.operations] != []
    assert len({operation.client for operation in trace.operations}) == 2
    assert len(trace.processes) == 1


def test_later_run_keeps_the_earlier_one(open_traced: OpenTraced, path: Path) -> None:
    """The report shows the last run, and the earlier one on request."""
    for count in (2, 3):
        with open_traced() as service:
            for _ in range(count):
                service.get_server_capabilities()
    assert [len(read_trace(path, run).operations) for run in (1, 2, None)] == [2, 3, 3]
    assert read_trace(path).runs == 2
    with pytest.raises(ValueError, match="run must be 1 to 2, got 3"):
        read_trace(path, 3)


def test_dropped_operations_are_in_the_trace(server: ScriptedServer, path: Path) -> None:
    """Those that are under way when the client is closed, each once."""
    gate = Gate()
    server.rules["get_server_capabilities"] = in_order(ScriptedResponse(gate=gate))
    with open_client(server.url, trace=path) as service:
        waiting = service._capabilities()
        server.wait_for_requests("get_server_capabilities")
    gate.release()
    assert isinstance(waiting.exception(), tw.ClientClosedError)
    (operation,) = read_trace(path).operations
    assert (operation.outcome, operation.error) == ("failed", "ClientClosedError")


def test_times_are_those_of_the_wall_clock(traced: Callable[..., Trace]) -> None:
    before = time.time()
    trace = traced(lambda service: service.get_server_capabilities())
    assert before - 1 <= trace.operations[0].asked <= trace.operations[0].end <= time.time() + 1


def test_format_of_a_line(open_traced: OpenTraced, path: Path) -> None:
    """The members that docs/tracing.md names, and no others."""
    with open_traced() as service:
        service.get_server_capabilities()
    head, operation, end = lines(path)
    assert list(head) == ["tinkerwire_trace", "tinkerwire", "python", "process", "time", "clock", "omitted"]
    assert head["tinkerwire_trace"] == 1
    assert list(end) == ["closed"]
    assert list(operation) == [
        "id", "client", "kind", "step", "asked", "events", "end", "outcome", "awaited", "requests",
    ]  # fmt: skip
