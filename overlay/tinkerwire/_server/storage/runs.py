"""Training runs: the lasting record of each model, which outlives the server."""

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
    Check,
    is_bool,
    is_metadata,
    is_moment,
    is_text,
    is_whole,
    name_unknown,
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
        """The adapter that is trained."""
        return LoraSettings(
            rank=self.rank,
            seed=self.seed,
            train_attn=self.train_attn,
            train_mlp=self.train_mlp,
            train_unembed=self.train_unembed,
        )


_FIELDS: Mapping[str, Check] = {
    "run_id": is_text,
    "base_model": is_text,
    "rank": lambda value: is_whole(value) and value >= 1,
    "seed": optional(is_whole),
    "train_attn": is_bool,
    "train_mlp": is_bool,
    "train_unembed": is_bool,
    "user_metadata": optional(is_metadata),
    "created_at": is_moment,
    "last_request_at": is_moment,
}


class Runs:
    """All runs in a folder: one folder each, with a ``run.json`` and the checkpoints."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[str, Run] = {run.run_id: run for run in _read_all(folder)}

    def folder_of(self, run_id: str) -> Path:
        """Where the files of a run lie."""
        return self._folder / quote(run_id, safe="")

    def add(self, run_id: str, base_model: str, settings: LoraSettings, user_metadata: dict[str, Any] | None) -> Run:
        """A new run, on disk at once."""
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
        """The run of that id, or Refusal 404."""
        run = self._runs.get(run_id)
        if run is None:
            raise HttpError(404, f"there is no training run {run_id!r}; list_training_runs lists them")
        return run

    def find(self, run_id: str) -> Run | None:
        """The run of that id, or None."""
        return self._runs.get(run_id)

    def newest_first(self) -> list[Run]:
        """All runs, those of earlier servers on the same folder too."""
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: -run.created_at)

    def touch(self, run: Run) -> None:
        """Note that the run was worked on; reaches the disk with the next :meth:`write`."""
        run.last_request_at = self._clock()

    def write(self, run: Run) -> None:
        """Bring the record on disk up to date."""
        write_json(self.folder_of(run.run_id) / "run.json", attrs.asdict(run))


def _read_all(folder: Path) -> list[Run]:
    found = []
    for path in sorted(folder.glob("*/run.json")):
        try:
            run = Run(**read_record(path, _FIELDS))
            if quote(run.run_id, safe="") != path.parent.name:
                raise ValueError(f"it is the record of another run, {run.run_id!a:.100}")
        except UNREADABLE as error:
            log.warning("%a is left out, it is not a run record: %s", str(path), ascii(str(error))[:300])
        else:
            found.append(run)
            name_unknown(path.parent, ())
    return sorted(found, key=lambda run: run.created_at)
