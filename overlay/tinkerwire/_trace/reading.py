"""Trace files, read back: the operations of one run, of all its processes, on one clock."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson

from .events import Event, split_events
from .summary import Summary, summarize
from .trace_file import FIRST_BYTES, OLD_SUFFIX, TRACE_FORMAT_VERSION

FURTHER_FILE = re.compile(r"(\.\d+)?(\.old)?")
"""Suffixes of the other files of a trace."""


@attrs.frozen(kw_only=True)
class TracedOperation:
    """One operation of a trace. Times are Unix times in seconds."""

    process: str
    client: int
    number: int
    """Its id, in the order of the calls of the process."""
    kind: str
    step: int
    """Number of ``optim_step`` calls of the client before it."""
    asked: float
    end: float
    outcome: str
    error: str
    is_awaited: bool
    """True if a caller waited for the result when it came."""
    model: str
    model_id: str
    sampler: str
    requests: tuple[str, ...]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    events: list[Event]
    summary: Summary

    @property
    def duration(self) -> float:
        """Seconds from the call to the result."""
        return self.end - self.asked

    def last(self, name: str) -> float | None:
        """Return the time of the last event of a name; None without one."""
        return next((event[1] for event in reversed(self.events) if event[0] == name), None)

    def values(self, name: str) -> list[tuple[Any, ...]]:
        """Return the values of all events of a name."""
        return [event[2:] for event in self.events if event[0] == name]


@attrs.define(kw_only=True)
class TracedProcess:
    """One process that wrote a trace."""

    id: str
    started_at: float
    ended_at: float
    tinkerwire: str
    python: str
    offset: float
    """Seconds to add to its monotonic times, for Unix times."""


@attrs.frozen(kw_only=True)
class Trace:
    """The operations of one run: of processes whose times overlap."""

    path: str
    run: int
    """Number of the run in the file, from 1."""
    runs: int
    """Runs that the file holds."""
    processes: list[TracedProcess]
    operations: list[TracedOperation]
    """In the order of the calls."""
    omitted: int
    """Operations that were dropped because the file reached its maximum size."""
    lost: int
    """Operations that could not be written."""
    unreadable: int
    """Lines that could not be read, such as the last one of a killed process."""


def read_trace(path: str | os.PathLike[str], run: int | None = None) -> Trace:
    """Read a trace, with the files of other processes next to it.

    Args:
        path: the path that the run was given.
        run: number of the run, from 1; None for the last one.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a trace, is of a later version, or has no such run.
    """
    reader = _Reader()
    for file in _find_files(Path(path)):
        reader.read(file)
    runs = _find_runs(list(reader.processes.values()))
    number = len(runs) if run is None else run
    if not 1 <= number <= len(runs):
        raise ValueError(f"{path}: run must be 1 to {len(runs)}, got {number}")
    chosen = {process.id for process in runs[number - 1]}
    operations = [operation for operation in reader.operations if operation.process in chosen]
    return Trace(
        path=str(path),
        run=number,
        runs=len(runs),
        processes=runs[number - 1],
        operations=sorted(operations, key=lambda operation: (operation.asked, operation.number)),
        omitted=sum(reader.omitted.get(process, 0) for process in chosen),
        lost=sum(reader.lost.get(process, 0) for process in chosen),
        unreadable=reader.unreadable,
    )


class _Reader:
    def __init__(self) -> None:
        self.processes: dict[str, TracedProcess] = {}
        self.operations: list[TracedOperation] = []
        self.omitted: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.unreadable = 0

    def read(self, path: Path) -> None:
        process: TracedProcess | None = None
        for value in self._parse_lines(path):
            if "tinkerwire_trace" in value:
                try:
                    process = self._read_process(path, value)
                except (KeyError, TypeError) as error:
                    raise ValueError(f"{path}: a line that describes a process is damaged: {error!r}") from None
            elif process is None:
                self.unreadable += 1
            else:
                try:
                    self._read_later_line(process, value)
                except (KeyError, TypeError, ValueError, IndexError):
                    self.unreadable += 1

    def _parse_lines(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    value = orjson.loads(line)
                except ValueError:
                    value = None
                if isinstance(value, dict):
                    yield value
                else:
                    self.unreadable += 1

    def _read_process(self, path: Path, value: dict[str, Any]) -> TracedProcess:
        version = value["tinkerwire_trace"]
        if version != TRACE_FORMAT_VERSION:
            raise ValueError(
                f"{path}: its format has version {version!r}, and this tinkerwire reads {TRACE_FORMAT_VERSION}"
            )
        name = value["process"]
        self.omitted[name] = max(self.omitted.get(name, 0), value["omitted"])
        # The first line of a process sets its clock: that of the system may jump later.
        return self.processes.setdefault(
            name,
            TracedProcess(
                id=name,
                started_at=value["time"],
                ended_at=value["time"],
                tinkerwire=value["tinkerwire"],
                python=value["python"],
                offset=value["time"] - value["clock"],
            ),
        )

    def _read_later_line(self, process: TracedProcess, value: dict[str, Any]) -> None:
        if "closed" in value:
            process.ended_at = max(process.ended_at, value["closed"] + process.offset)
        elif "lost" in value:
            self.lost[process.id] = self.lost.get(process.id, 0) + int(value["lost"])
        else:
            self._read_operation(process, value)

    def _read_operation(self, process: TracedProcess, value: dict[str, Any]) -> None:
        offset = process.offset
        asked, end = value["asked"] + offset, value["end"] + offset
        events: list[Event] = [(name, time + offset, *rest) for name, time, *rest in split_events(value["events"])]
        operation = TracedOperation(
            process=process.id,
            client=value["client"],
            number=value["id"],
            kind=value["kind"],
            step=value["step"],
            asked=asked,
            end=end,
            outcome=value["outcome"],
            error=value.get("error", ""),
            is_awaited=value["awaited"],
            model=value.get("model", ""),
            model_id=value.get("model_id", ""),
            sampler=value.get("sampler", ""),
            requests=tuple(value["requests"]),
            input_tokens=value.get("input_tokens", 0),
            cached_tokens=value.get("cached_tokens", 0),
            output_tokens=value.get("output_tokens", 0),
            events=events,
            summary=summarize(asked, events, end),
        )
        process.started_at = min(process.started_at, asked)
        process.ended_at = max(process.ended_at, end)
        self.operations.append(operation)


def is_trace(path: Path) -> bool:
    """Return whether a file begins as a trace.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(FIRST_BYTES)) == FIRST_BYTES


def _find_files(path: Path) -> list[Path]:
    """Return the file and those of other processes next to it, the older ones first."""
    if not is_trace(path):
        raise ValueError(f"{path}: this is not a trace of tinkerwire; TINKERWIRE_TRACE=FILE makes one")
    found = [path]
    for other in path.parent.iterdir():
        suffix = other.name.removeprefix(path.name)
        is_further = suffix not in ("", other.name) and FURTHER_FILE.fullmatch(suffix) is not None
        if is_further and other.is_file() and is_trace(other):
            found.append(other)
    return sorted(found, key=lambda file: (not file.name.endswith(OLD_SUFFIX), file.name))


def _find_runs(processes: list[TracedProcess]) -> list[list[TracedProcess]]:
    """Return groups of processes whose times overlap, the oldest first."""
    runs: list[list[TracedProcess]] = []
    end = 0.0
    for process in sorted(processes, key=lambda process: process.started_at):
        if not runs or process.started_at > end:
            runs.append([])
        runs[-1].append(process)
        end = max(end, process.ended_at)
    return runs
