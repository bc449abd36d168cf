"""Checkpoints on disk: an .npz of the arrays and a .json about them, each written whole or not at all."""

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

import attrs

from tinkerwire._server.engine import EngineError
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage.atomic_files import Array, read_arrays, write_arrays, write_json
from tinkerwire._server.storage.checkpoint_paths import CheckpointKey, file_name, is_name
from tinkerwire._server.storage.records import (
    UNREADABLE,
    Check,
    files_in,
    is_bool,
    is_metadata,
    is_moment,
    is_whole,
    name_unknown,
    optional,
    read_record,
)
from tinkerwire._server.storage.runs import Run, Runs
from tinkerwire_generated.models import Checkpoint

log = logging.getLogger("tinkerwire._server")


@attrs.frozen(kw_only=True)
class CheckpointOptions:
    """What a client says of a checkpoint that it saves.

    Args:
        ttl_s: seconds after which it is deleted; None for never.
        user_metadata: free keys and values.
    """

    ttl_s: float | None = None
    user_metadata: dict[str, str] | None = None


@attrs.define(kw_only=True)
class CheckpointRecord:
    """What is known of a checkpoint; times are seconds since the epoch.

    Args:
        file: name of the file with its arrays; empty in records that do not say: it is called as they are.
    """

    key: CheckpointKey
    file: str = ""
    saved_at: float
    size_bytes: int
    public: bool = False
    expires_at: float | None = None
    user_metadata: dict[str, str] | None = None

    def to_wire(self) -> Checkpoint:
        """As listings show it."""
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


_FIELDS: Mapping[str, Check] = {
    "key": lambda value: isinstance(value, dict),
    "file": lambda value: isinstance(value, str),
    "saved_at": is_moment,
    "size_bytes": lambda value: is_whole(value) and value >= 0,
    "public": is_bool,
    "expires_at": optional(is_moment),
    "user_metadata": optional(is_metadata),
}
_OPTIONAL = ("file", "public", "expires_at", "user_metadata")


class Checkpoints:
    """The checkpoints of all runs; its methods may be called from any thread.

    A checkpoint exists once its .json does: the arrays are written before it and removed after it. One that takes
    the place of another has arrays in a file of another name, so that the .json says at every moment which are its.

    Args:
        kinds: those that clients know; others, which a server of a newer wire version left, are not seen.
        clock: seconds since the epoch.
    """

    def __init__(self, runs: Runs, kinds: Iterable[str], clock: Callable[[], float]) -> None:
        self._runs = runs
        self._clock = clock
        self._lock = threading.RLock()
        self._saved: dict[CheckpointKey, CheckpointRecord] = {}
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
        about: CheckpointOptions,
        *,
        overwrite: bool = False,
    ) -> CheckpointKey:
        """Write a checkpoint; without a name it gets the next free number.

        Args:
            overwrite: whether it may take the place of one of the same name.

        Raises:
            EngineError: the run has one of that name; nothing is changed.
        """
        key = self._reserve(run, kind, name, overwrite)
        path = self._record(key).with_suffix(".npz")
        if os.path.lexists(path):
            path = path.with_stem(f"{path.stem}~{uuid.uuid4().hex[:8]}")
        try:
            # Nobody waits for the disk: listings go on meanwhile.
            write_arrays(path, arrays)
            now = self._clock()
            saved = CheckpointRecord(
                key=key,
                file=path.name,
                saved_at=now,
                size_bytes=path.stat().st_size,
                expires_at=None if about.ttl_s is None else now + about.ttl_s,
                user_metadata=about.user_metadata,
            )
            self._write(saved)
            with self._lock:
                before, self._saved[key] = self._saved.get(key), saved
                if before is not None:
                    _remove_file(self._arrays(before))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            with self._lock:
                self._writing.discard(key)
        self._runs.touch(run)
        self._runs.write(run)
        return key

    def get(self, key: CheckpointKey) -> CheckpointRecord:
        """The checkpoint, or Refusal 404."""
        with self._lock:
            saved = self._live(key)
        if saved is None:
            raise HttpError(404, f"there is no checkpoint {key.tinker_path}; list_checkpoints lists them")
        return saved

    def arrays(self, key: CheckpointKey) -> dict[str, Array]:
        """The arrays of a checkpoint; Refusal 404 without one, EngineError when its file is damaged."""
        with self._lock:
            path = self._arrays(self.get(key))
            try:
                return read_arrays(path)
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                raise EngineError(f"{key.tinker_path} cannot be read ({error}); use another checkpoint") from None

    def path_of(self, key: CheckpointKey) -> Path:
        """The file with the arrays; Refusal 404 without such a checkpoint."""
        return self._arrays(self.get(key))

    def newest_first(self, run_id: str | None = None) -> list[CheckpointRecord]:
        """The checkpoints of one run, or of all."""
        with self._lock:
            live = [saved for key in list(self._saved) if (saved := self._live(key)) is not None]
        of_run = [saved for saved in reversed(live) if run_id in (None, saved.key.run_id)]
        return sorted(of_run, key=lambda saved: -saved.saved_at)

    def delete(self, key: CheckpointKey) -> None:
        """Remove a checkpoint; Refusal 404 without one."""
        with self._lock:
            self.get(key)
            self._remove(key)

    def set_public(self, key: CheckpointKey, public: bool) -> None:
        """Publish a checkpoint, or take that back; Refusal 404 without one."""
        with self._lock:
            changed = attrs.evolve(self.get(key), public=public)
            self._write(changed)
            self._saved[key] = changed

    def set_ttl(self, key: CheckpointKey, ttl_s: float | None) -> None:
        """Let a checkpoint be deleted ``ttl_s`` seconds from now, or never; Refusal 404 without one."""
        with self._lock:
            expires_at = None if ttl_s is None else self._clock() + ttl_s
            changed = attrs.evolve(self.get(key), expires_at=expires_at)
            self._write(changed)
            self._saved[key] = changed

    def _reserve(self, run: Run, kind: str, name: str | None, overwrite: bool) -> CheckpointKey:
        with self._lock:
            key = CheckpointKey(run.run_id, kind, name or self._free_name(run, kind))
            if (self._live(key) is not None and not overwrite) or key in self._writing:
                raise EngineError(
                    f"{key.tinker_path} exists already and is not replaced; save under another name, or delete it first"
                )
            record = self._record(key)
            if key not in self._saved and os.path.lexists(record):
                raise EngineError(
                    f"{record} is in the way, and not a record that this server can read; save under another name, or "
                    "move the file"
                )
            self._writing.add(key)
            return key

    def _live(self, key: CheckpointKey) -> CheckpointRecord | None:
        saved = self._saved.get(key)
        if saved is None or saved.expires_at is None or saved.expires_at > self._clock():
            return saved
        self._remove(key)
        return None

    def _remove(self, key: CheckpointKey) -> None:
        saved = self._saved.pop(key)
        # A listing, too, removes what has expired, and does not fail with it.
        if _remove_file(self._record(key)):
            _remove_file(self._arrays(saved))

    def _free_name(self, run: Run, kind: str) -> str:
        known = [*self._saved, *self._writing]
        taken = {key.name for key in known if (key.run_id, key.kind) == (run.run_id, kind)}
        folder = self._runs.folder_of(run.run_id) / kind
        # A record that could not be read has its number as well.
        taken.update(path.stem for path in files_in(folder, ".json"))
        return next(name for number in range(1, len(taken) + 2) if (name := f"{number:04d}") not in taken)

    def _record(self, key: CheckpointKey) -> Path:
        return self._runs.folder_of(key.run_id) / key.kind / f"{file_name(key.name)}.json"

    def _arrays(self, saved: CheckpointRecord) -> Path:
        record = self._record(saved.key)
        return record.with_name(saved.file) if saved.file else record.with_suffix(".npz")

    def _write(self, saved: CheckpointRecord) -> None:
        write_json(self._record(saved.key), attrs.asdict(saved))

    def _read_folder(self, run: Run, kind: str) -> None:
        folder = self._runs.folder_of(run.run_id) / kind
        kept: set[Path] = set()
        for path in files_in(folder, ".json"):
            try:
                saved = _read_saved(path, run.run_id, kind)
            except UNREADABLE as error:
                log.warning("%a is left out, it is not a checkpoint record: %s", str(path), ascii(str(error))[:300])
                kept.add(path.with_suffix(".npz"))
                continue
            arrays = self._arrays(saved)
            kept.add(arrays)
            if arrays.is_file():
                self._saved[saved.key] = saved
            else:
                log.warning("%s is left out, its arrays are missing", path)
        name_unknown(folder, kept)


def _read_saved(path: Path, run_id: str, kind: str) -> CheckpointRecord:
    """Read the record of a checkpoint, which has to be the one that belongs into its place."""
    record = read_record(path, _FIELDS, _OPTIONAL)
    name = record["key"].get("name")
    if not is_name(name) or record["key"] != {"run_id": run_id, "kind": kind, "name": name}:
        raise ValueError(f"it is the record of another checkpoint, {record['key']!a:.200}")
    if file_name(name) != path.stem:
        raise ValueError(f"it is the record of another checkpoint, {name!a:.200}")
    file = record.get("file", "")
    if file and re.fullmatch(rf"{re.escape(path.stem)}(~[0-9a-f]{{8}})?\.npz", file) is None:
        raise ValueError(f"{file!a:.200} is not a valid file name for its arrays")
    return CheckpointRecord(**{**record, "key": CheckpointKey(run_id, kind, name)})


def _remove_file(path: Path) -> bool:
    """Remove a file of a checkpoint that is no more; log a failure, and return whether the file is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)
        return False
    return True


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
