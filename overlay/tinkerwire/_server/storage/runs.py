"""Training runs: a record of each model on disk, which outlives the server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from tinkerwire._server.engine import LoraSettings
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage.atomic_files import write_json
from tinkerwire._server.storage.records import (
    UNREADABLE,
    RecordCheck,
    is_bool,
    is_int64,
    is_metadata,
    is_nonempty_string,
    is_timestamp,
    log_unknown_files,
    optional,
    read_record,
)

log = logging.getLogger("tinkerwire._server")


@attrs.define(kw_only=True)
class Run:
    """One training run; times are seconds since the epoch."""

    run_id: str
    base_model: str
    rank: int
    seed: int | None
    train_attn: bool
    train_mlp: bool
    train_unembed: bool
    user_metadata: dict[str, Any] | None
    created_at: float
    last_request_at: float

    @property
    def settings(self) -> LoraSettings:
        """Settings of the adapter."""
        return LoraSettings(**{field.name: getattr(self, field.name) for field in attrs.fields(LoraSettings)})


_FIELDS: Mapping[str, RecordCheck] = {
    "run_id": is_nonempty_string,
    "base_model": is_nonempty_string,
    "rank": lambda value: is_int64(value) and value >= 1,
    "seed": optional(is_int64),
    "train_attn": is_bool,
    "train_mlp": is_bool,
    "train_unembed": is_bool,
    "user_metadata": optional(is_metadata),
    "created_at": is_timestamp,
    "last_request_at": is_timestamp,
}


class Runs:
    """All runs in a folder, each in a folder of its own with ``run.json`` and the checkpoints.

    Args:
        folder: the folder.
        clock: seconds since the epoch.
    """

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[str, Run] = {run.run_id: run for run in _read_all(folder)}

    def folder_of(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self._folder / quote(run_id, safe="")

    def add(self, run_id: str, base_model: str, settings: LoraSettings, user_metadata: dict[str, Any] | None) -> Run:
        """Create a run and write its record."""
        now = self._clock()
        run = Run(
            run_id=run_id,
            base_model=base_model,
            **attrs.asdict(settings),
            user_metadata=user_metadata,
            created_at=now,
            last_request_at=now,
        )
        self.write(run)
        with self._lock:
            self._runs[run_id] = run
        return run

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            HttpError: 404 if it does not exist.
        """
        run = self._runs.get(run_id)
        if run is None:
            raise HttpError(404, f"unknown training run {run_id!r}; see list_training_runs")
        return run

    def find(self, run_id: str) -> Run | None:
        """Return a run, or None."""
        return self._runs.get(run_id)

    def newest_first(self) -> list[Run]:
        """Return all runs, including those of earlier servers on the same folder."""
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: -run.created_at)

    def mark_active(self, run: Run) -> None:
        """Update the time of the last request; the next :meth:`write` brings it to disk."""
        run.last_request_at = self._clock()

    def write(self, run: Run) -> None:
        """Write the record of a run."""
        write_json(self.folder_of(run.run_id) / "run.json", attrs.asdict(run))


def _read_all(folder: Path) -> list[Run]:
    runs = []
    for path in sorted(folder.glob("*/run.json")):
        try:
            run = Run(**read_record(path, _FIELDS))
            if quote(run.run_id, safe="") != path.parent.name:
                raise ValueError(f"the record belongs to another run, {run.run_id!a:.100}")
        except UNREADABLE as error:
            log.warning("ignored %a, which is not a run record: %s", str(path), ascii(str(error))[:300])
        else:
            runs.append(run)
            log_unknown_files(path.parent, ())
    return sorted(runs, key=lambda run: run.created_at)
