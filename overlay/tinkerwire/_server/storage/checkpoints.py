"""Checkpoints on disk: an .npz file with the arrays and a .json record, each written atomically."""

from __future__ import annotations

import logging
import os
import re
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import attrs

from tinkerwire._server.engine import EngineError
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage.atomic_files import Array, read_arrays, write_arrays, write_json
from tinkerwire._server.storage.checkpoint_paths import CheckpointKey, is_name, to_file_name
from tinkerwire._server.storage.records import (
    UNREADABLE,
    RecordCheck,
    files_in,
    is_bool,
    is_int64,
    is_metadata,
    is_timestamp,
    log_unknown_files,
    optional,
    read_record,
)
from tinkerwire._server.storage.runs import Run, Runs
from tinkerwire_generated.models import Checkpoint

log = logging.getLogger("tinkerwire._server")


@attrs.frozen(kw_only=True)
class CheckpointOptions:
    """Options of a client for a new checkpoint.

    Args:
        ttl_s: seconds after which the checkpoint is deleted; None keeps it.
        user_metadata: metadata of the user.
    """

    ttl_s: float | None = None
    user_metadata: dict[str, str] | None = None


@attrs.define(kw_only=True)
class CheckpointRecord:
    """The record of a checkpoint; times are seconds since the epoch.

    Args:
        key: identity of the checkpoint.
        file: name of the file with the arrays; empty in old records, whose file has the name of the record.
        saved_at: time of the save.
        size_bytes: size of the file.
        public: whether the checkpoint is published.
        expires_at: expiry; None keeps the checkpoint.
        user_metadata: metadata of the user.
        seq_id: seq_id of the operation that saved the checkpoint, if any.
    """

    key: CheckpointKey
    file: str = ""
    saved_at: float
    size_bytes: int
    public: bool = False
    expires_at: float | None = None
    user_metadata: dict[str, str] | None = None
    seq_id: int | None = None

    def to_wire(self) -> Checkpoint:
        """Return the entry of listings."""
        return Checkpoint(
            checkpoint_id=self.key.checkpoint_id,
            checkpoint_type=self.key.checkpoint_type,
            time=_utc(self.saved_at),
            tinker_path=self.key.tinker_path,
            size_bytes=self.size_bytes,
            public=self.public,
            expires_at=None if self.expires_at is None else _utc(self.expires_at),
            user_metadata=self.user_metadata,
        )


_FIELDS: Mapping[str, RecordCheck] = {
    "key": lambda value: isinstance(value, dict),
    "file": lambda value: isinstance(value, str),
    "saved_at": is_timestamp,
    "size_bytes": lambda value: is_int64(value) and value >= 0,
    "public": is_bool,
    "expires_at": optional(is_timestamp),
    "user_metadata": optional(is_metadata),
    "seq_id": optional(is_int64),
}
_OPTIONAL = ("file", "public", "expires_at", "user_metadata", "seq_id")


class Checkpoints:
    """The checkpoints of all runs. Thread safe.

    A checkpoint exists while its .json file exists: the arrays are written before it and removed after it. A
    checkpoint that replaces another one uses a new file for its arrays, so that each .json refers to its own arrays.

    Args:
        runs: the training runs.
        kinds: kinds of the wire version; the server ignores others, which a newer version left.
        clock: seconds since the epoch.
    """

    def __init__(self, runs: Runs, kinds: Iterable[str], clock: Callable[[], float]) -> None:
        self._runs = runs
        self._clock = clock
        self._lock = threading.RLock()
        self._records: dict[CheckpointKey, CheckpointRecord] = {}
        self._writing: set[CheckpointKey] = set()
        for run in runs.newest_first():
            for kind in kinds:
                self._read_folder(run, kind)

    def save(
        self,
        run: Run,
        kind: str,
        name: str | None,
        arrays: Mapping[str, Array],
        options: CheckpointOptions,
        *,
        overwrite: bool = False,
        seq_id: int | None = None,
    ) -> CheckpointKey:
        """Write a checkpoint and return its key.

        Args:
            run: the training run.
            kind: kind of the checkpoint.
            name: name of the checkpoint; None selects the next free number.
            arrays: the arrays by name.
            options: options of the client.
            overwrite: replace a checkpoint with the same name.
            seq_id: seq_id of the operation; the operation has one effect, also if it runs again after a restart.

        Raises:
            EngineError: the name is in use; no file has changed.
        """
        saved_key = self._find_saved(run, kind, seq_id)
        if saved_key is not None:
            return saved_key
        key = self._reserve(run, kind, name, overwrite)
        path = self._record_path(key).with_suffix(".npz")
        if os.path.lexists(path):
            path = path.with_stem(f"{path.stem}~{uuid.uuid4().hex[:8]}")
        try:
            # Without the lock, so that listings do not wait for the disk.
            write_arrays(path, arrays)
            now = self._clock()
            record = CheckpointRecord(
                key=key,
                file=path.name,
                saved_at=now,
                size_bytes=path.stat().st_size,
                expires_at=None if options.ttl_s is None else now + options.ttl_s,
                user_metadata=options.user_metadata,
                seq_id=seq_id,
            )
            self._write_record(record)
            with self._lock:
                previous, self._records[key] = self._records.get(key), record
                if previous is not None:
                    _remove_file(self._record_arrays_path(previous))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            with self._lock:
                self._writing.discard(key)
        self._runs.mark_active(run)
        self._runs.write(run)
        return key

    def get(self, key: CheckpointKey) -> CheckpointRecord:
        """Return a checkpoint.

        Raises:
            HttpError: 404 if it does not exist.
        """
        with self._lock:
            record = self._find_unexpired(key)
        if record is None:
            raise HttpError(404, f"unknown checkpoint {key.tinker_path}; see list_checkpoints")
        return record

    def read_arrays(self, key: CheckpointKey) -> dict[str, Array]:
        """Return the arrays of a checkpoint.

        Raises:
            HttpError: 404 if it does not exist.
            EngineError: its file is damaged.
        """
        with self._lock:
            path = self._record_arrays_path(self.get(key))
            try:
                return read_arrays(path)
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                raise EngineError(f"{key.tinker_path} cannot be read ({error}); use another checkpoint") from None

    def arrays_path(self, key: CheckpointKey) -> Path:
        """Return the path of the file with the arrays.

        Raises:
            HttpError: 404 if the checkpoint does not exist.
        """
        return self._record_arrays_path(self.get(key))

    def newest_first(self, run_id: str | None = None) -> list[CheckpointRecord]:
        """Return the checkpoints of one run, or of all runs."""
        with self._lock:
            unexpired = [record for key in list(self._records) if (record := self._find_unexpired(key)) is not None]
        records = [record for record in reversed(unexpired) if run_id in (None, record.key.run_id)]
        return sorted(records, key=lambda record: -record.saved_at)

    def delete(self, key: CheckpointKey) -> None:
        """Delete a checkpoint.

        Raises:
            HttpError: 404 if it does not exist.
        """
        with self._lock:
            self.get(key)
            self._remove(key)

    def set_public(self, key: CheckpointKey, public: bool) -> None:
        """Publish or unpublish a checkpoint.

        Raises:
            HttpError: 404 if it does not exist.
        """
        self._change(key, public=public)

    def set_ttl(self, key: CheckpointKey, ttl_s: float | None) -> None:
        """Set the expiry of a checkpoint to ``ttl_s`` seconds from now, or remove it.

        Raises:
            HttpError: 404 if it does not exist.
        """
        self._change(key, expires_at=None if ttl_s is None else self._clock() + ttl_s)

    def _change(self, key: CheckpointKey, **changes: Any) -> None:
        with self._lock:
            changed = attrs.evolve(self.get(key), **changes)
            self._write_record(changed)
            self._records[key] = changed

    def _find_saved(self, run: Run, kind: str, seq_id: int | None) -> CheckpointKey | None:
        """Return the checkpoint that an operation has saved already, if any."""
        if seq_id is None:
            return None
        with self._lock:
            records = [record for record in self._records.values() if record.seq_id == seq_id]
        return next((r.key for r in records if (r.key.run_id, r.key.kind) == (run.run_id, kind)), None)

    def _reserve(self, run: Run, kind: str, name: str | None, overwrite: bool) -> CheckpointKey:
        with self._lock:
            key = CheckpointKey(run.run_id, kind, name or self._next_name(run, kind))
            if (self._find_unexpired(key) is not None and not overwrite) or key in self._writing:
                raise EngineError(f"{key.tinker_path} already exists; use another name or delete the checkpoint first")
            path = self._record_path(key)
            if key not in self._records and os.path.lexists(path):
                raise EngineError(
                    f"{path} exists, but this server cannot read it as a record; use another name or move the file"
                )
            self._writing.add(key)
            return key

    def _find_unexpired(self, key: CheckpointKey) -> CheckpointRecord | None:
        record = self._records.get(key)
        if record is None or record.expires_at is None or record.expires_at > self._clock():
            return record
        self._remove(key)
        return None

    def _remove(self, key: CheckpointKey) -> None:
        record = self._records.pop(key)
        # A failure is logged but not raised, because listings remove expired checkpoints.
        if _remove_file(self._record_path(key)):
            _remove_file(self._record_arrays_path(record))

    def _next_name(self, run: Run, kind: str) -> str:
        keys = [*self._records, *self._writing]
        used_names = {key.name for key in keys if (key.run_id, key.kind) == (run.run_id, kind)}
        folder = self._runs.folder_of(run.run_id) / kind
        # Unreadable records keep their numbers.
        used_names.update(path.stem for path in files_in(folder, ".json"))
        return next(name for number in range(1, len(used_names) + 2) if (name := f"{number:04d}") not in used_names)

    def _record_path(self, key: CheckpointKey) -> Path:
        return self._runs.folder_of(key.run_id) / key.kind / f"{to_file_name(key.name)}.json"

    def _record_arrays_path(self, record: CheckpointRecord) -> Path:
        path = self._record_path(record.key)
        return path.with_name(record.file) if record.file else path.with_suffix(".npz")

    def _write_record(self, record: CheckpointRecord) -> None:
        write_json(self._record_path(record.key), attrs.asdict(record))

    def _read_folder(self, run: Run, kind: str) -> None:
        folder = self._runs.folder_of(run.run_id) / kind
        known_paths: set[Path] = set()
        for path in files_in(folder, ".json"):
            try:
                record = _read_record(path, run.run_id, kind)
            except UNREADABLE as error:
                log.warning("ignored %a, which is not a checkpoint record: %s", str(path), ascii(str(error))[:300])
                known_paths.add(path.with_suffix(".npz"))
                continue
            arrays = self._record_arrays_path(record)
            known_paths.add(arrays)
            if arrays.is_file():
                self._records[record.key] = record
            else:
                log.warning("ignored %s, because the file with its arrays is missing", path)
        log_unknown_files(folder, known_paths)


def _read_record(path: Path, run_id: str, kind: str) -> CheckpointRecord:
    """Read the record of a checkpoint; raise ValueError if it does not belong to its path."""
    fields = read_record(path, _FIELDS, _OPTIONAL)
    name = fields["key"].get("name")
    if not is_name(name) or fields["key"] != {"run_id": run_id, "kind": kind, "name": name}:
        raise ValueError(f"the record belongs to another checkpoint, {fields['key']!a:.200}")
    if to_file_name(name) != path.stem:
        raise ValueError(f"the record belongs to another checkpoint, {name!a:.200}")
    file = fields.get("file", "")
    if file and re.fullmatch(rf"{re.escape(path.stem)}(~[0-9a-f]{{8}})?\.npz", file) is None:
        raise ValueError(f"{file!a:.200} is not a valid file name for its arrays")
    return CheckpointRecord(**{**fields, "key": CheckpointKey(run_id, kind, name)})


def _remove_file(path: Path) -> bool:
    """Remove a file of a deleted checkpoint; log a failure, and return whether the file is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)
        return False
    return True


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
