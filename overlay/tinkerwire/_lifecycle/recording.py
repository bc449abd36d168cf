"""Recording of the operations of a connection, as arguments and environment ask for it."""

from __future__ import annotations

import os
from pathlib import Path

from .._connection.connection import Connection
from .._extras import require_packages
from .._futures.event_loop import LOOP
from .._futures.logger import log

PATH_VARIABLE = "TINKERWIRE_TRACE"
OPENTELEMETRY_VARIABLE = "TINKERWIRE_OPENTELEMETRY"


def start_recording(
    connection: Connection, trace: str | os.PathLike[str] | None, *, opentelemetry: bool | None = None
) -> None:
    """Record the operations of a new connection; under ``LOOP.opening_lock``.

    Args:
        connection: the connection.
        trace: path of the trace file; None takes that of TINKERWIRE_TRACE, and records none without it.
        opentelemetry: whether to export through OpenTelemetry; None takes the value of TINKERWIRE_OPENTELEMETRY.

    Raises:
        ValueError: the path cannot be written to, or a variable has another value than those it may have.
        MissingPackageError: OpenTelemetry is not installed.
    """
    path = trace if trace is not None else os.environ.get(PATH_VARIABLE) or None
    exporter = None
    if _is_exported() if opentelemetry is None else opentelemetry:
        require_packages("opentelemetry=True", "otel", "opentelemetry.trace", "opentelemetry.metrics")
        from .._trace.otel import OpenTelemetryReceiver  # noqa: PLC0415

        exporter = OpenTelemetryReceiver(connection.base_url)
    if path is not None:
        if not os.fspath(path):
            raise ValueError("trace: the path must not be empty; omit it to record no trace")
        from .._trace.trace_file import FileReceiver  # noqa: PLC0415

        receiver = FileReceiver(path)
        connection.trace_path = receiver.path
        connection.record(receiver)
    if exporter is not None:
        connection.record(exporter)


def continue_recording(connection: Connection, path: Path | None) -> None:
    """Record the operations of a copy of a client in this process; log a warning if the file cannot be written.

    A copy may run on another machine, where its samples matter more than their trace.

    Args:
        connection: the connection of the copy.
        path: path of the trace of the original client; None without one.
    """
    with LOOP.opening_lock:
        try:
            start_recording(connection, path)
        except (ValueError, ImportError) as error:
            # As text: a handler may keep the arguments, and an error keeps the connection.
            log.warning("a copy of a sampling client is not traced: %s", str(error))


def _is_exported() -> bool:
    text = os.environ.get(OPENTELEMETRY_VARIABLE, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{OPENTELEMETRY_VARIABLE} must be 1 or 0, got {text!r}")
    return text == "1"
