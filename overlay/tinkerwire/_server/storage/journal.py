"""The journal: what a server has accepted and computed, so that another process can go on after its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from tinkerwire._server.storage.database import Database

_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value);
CREATE TABLE sessions (session_id TEXT PRIMARY KEY, number INTEGER, fields BLOB, last_request_at REAL);
CREATE TABLE models (model_id TEXT PRIMARY KEY, session_id TEXT, last_seq_id INTEGER, snapshot BLOB);
CREATE TABLE skipped (model_id TEXT, seq_id INTEGER, PRIMARY KEY (model_id, seq_id));
CREATE TABLE samplers (sampler_id TEXT PRIMARY KEY, session_id TEXT, base_model TEXT, model_path TEXT,
    weights_id TEXT, copy_count INTEGER);
CREATE TABLE weights (weights_id TEXT PRIMARY KEY, settings BLOB, arrays BLOB);
CREATE TABLE operations (number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT, executed INTEGER, operation TEXT,
    headers BLOB, content BLOB, key TEXT, fingerprint BLOB);
CREATE INDEX operations_by_owner ON operations (owner, executed);
CREATE TABLE results (position INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER UNIQUE, content BLOB, media TEXT,
    model TEXT, model_id TEXT, finished_at REAL, fetched INTEGER, sampler_id TEXT, copy INTEGER, cursor INTEGER);
CREATE TRIGGER operation_ends AFTER INSERT ON results BEGIN
    DELETE FROM operations WHERE number = NEW.number AND executed IS NULL;
END;
CREATE TABLE accepted (kind TEXT, owner TEXT, number INTEGER, key TEXT, fingerprint BLOB, assigned_id TEXT,
    PRIMARY KEY (kind, owner, number));
CREATE TABLE responses (key TEXT PRIMARY KEY, operation TEXT, fingerprint BLOB, status INTEGER, headers BLOB,
    content BLOB);
"""
_BODY_HEADERS = ("content-type", "content-encoding")


@attrs.frozen(kw_only=True)
class StoredRequest:
    """A request as the client sent it.

    Args:
        operation: name of the operation.
        headers: headers that describe the body, by lower-case name.
        content: the body.
        key: the idempotency key, if any.
        fingerprint: hash of the request.
    """

    operation: str
    headers: Mapping[str, str]
    content: bytes
    key: str | None
    fingerprint: bytes


@attrs.frozen(kw_only=True)
class StoredOperation:
    """An accepted request that a restarted server runs or replays.

    Args:
        number: number of its future.
        owner: id of the model, or of the session, that the work changes, if any.
        executed: True if its result is known, and the work is only replayed for the state that it produced.
        request: the request.
    """

    number: int
    owner: str | None
    executed: bool
    request: StoredRequest


@attrs.frozen
class StoredResult:
    """The result of an operation.

    Args:
        number: number of its future.
        content: the encoded result.
        media: media type of the content.
        model: name of the model class of the result.
        model_id: the trained model that the operation belongs to, if any.
        finished_at: seconds since the epoch.
        fetched: True if the result was sent to a client.
        sampler_id: sampling session of a sample, if any.
        copy: number of the client's copy that requested the sample.
        cursor: position of the sample among the finished ones of its sampling session.
    """

    number: int
    content: bytes
    media: str
    model: str
    model_id: str | None
    finished_at: float
    fetched: bool = False
    sampler_id: str | None = None
    copy: int = 0
    cursor: int = 0


_RESULT_COLUMNS = tuple(field.name for field in attrs.fields(StoredResult))


class Journal(Database):
    """The tables of a server's state.

    An operation is recorded before its request is answered. Its result ends it, and is recorded together with the
    state that the operation produced: a new object, a snapshot of its model, or the operation itself to be replayed.

    Args:
        path: path of the file; None keeps nothing.

    Raises:
        ValueError: the file is damaged, or another version of the server wrote it.
        StorageError: the file cannot be opened now, such as on a full disk.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, _SCHEMA)
        self.request: StoredRequest | None = None
        """The request that is being handled."""
        self.has_accepted = False
        """True if the request that is being handled was accepted under a number."""
        self._executed_count: int = self._read_number("SELECT max(executed) FROM operations")

    def set_request(
        self, operation: str, headers: Mapping[str, str], content: bytes | None, key: str | None, fingerprint: bytes
    ) -> None:
        """Set the request that :meth:`add_operation` records."""
        self.has_accepted = False
        if self.is_durable:
            self.request = StoredRequest(
                operation=operation,
                headers={name: headers[name] for name in _BODY_HEADERS if name in headers},
                content=content or b"",
                key=key,
                fingerprint=fingerprint,
            )

    def read_setting(self, name: str) -> str | None:
        """Return the text under a name, or None."""
        rows = self.query("SELECT value FROM settings WHERE name = ?", name)
        return rows[0][0] if rows else None

    def write_setting(self, name: str, value: str) -> None:
        """Record a text under a name, with the next transaction."""
        self.defer("INSERT OR REPLACE INTO settings VALUES (?, ?)", name, value)

    def read_last_number(self) -> int:
        """Return the highest number of all operations, done ones included."""
        return self._read_number("SELECT seq FROM sqlite_sequence WHERE name = 'operations'")

    def read_result_count(self) -> int:
        """Return the number of all results, dropped ones included."""
        return self._read_number("SELECT seq FROM sqlite_sequence WHERE name = 'results'")

    def read_last_time(self) -> float | None:
        """Return the newest time of a session's request or of a result; None in an empty journal."""
        rows = self.query("SELECT max(last_request_at) FROM sessions") + self.query(
            "SELECT finished_at FROM results ORDER BY position DESC LIMIT 1"
        )
        return max((time for (time,) in rows if time is not None), default=None)

    # Operations and results.

    def add_operation(self, number: int, owner: str | None) -> None:
        """Record the current request as a pending operation."""
        if self.request is not None:
            request = self.request
            self.execute(
                "INSERT INTO operations VALUES (?, ?, NULL, ?, ?, ?, ?, ?)",
                number,
                owner,
                request.operation,
                orjson.dumps(request.headers),
                request.content,
                request.key,
                request.fingerprint,
            )

    def keep_operation(self, number: int) -> None:
        """Record that an operation was executed and is to be replayed; its result does not end it."""
        self._executed_count += 1
        self.execute("UPDATE operations SET executed = ? WHERE number = ?", self._executed_count, number)

    def read_operations(self) -> list[StoredOperation]:
        """Return the operations: those to replay in the order of execution, then the pending ones."""
        rows = self.query(
            "SELECT number, owner, executed, operation, headers, content, key, fingerprint FROM operations "
            "ORDER BY executed IS NULL, executed, number"
        )
        return [
            StoredOperation(
                number=number,
                owner=owner,
                executed=executed is not None,
                request=StoredRequest(
                    operation=operation,
                    headers=orjson.loads(headers),
                    content=content,
                    key=key,
                    fingerprint=fingerprint,
                ),
            )
            for number, owner, executed, operation, headers, content, key, fingerprint in rows
        ]

    def add_result(self, result: StoredResult) -> None:
        """Record a result, which ends its operation."""
        # Not astuple, which copies each value.
        values = [getattr(result, name) for name in _RESULT_COLUMNS]
        self.execute(f"INSERT INTO results VALUES (NULL{', ?' * len(values)})", *values)

    def mark_fetched(self, number: int) -> None:
        """Record that a result was sent, with the next transaction."""
        self.defer("UPDATE results SET fetched = 1 WHERE number = ?", number)

    def remove_result(self, number: int) -> None:
        """Remove a result, with the next transaction."""
        self.defer("DELETE FROM results WHERE number = ?", number)

    def read_results(self) -> list[StoredResult]:
        """Return all results, in the order in which they finished."""
        rows = self.query(f"SELECT {', '.join(_RESULT_COLUMNS)} FROM results ORDER BY position")
        return [StoredResult(*row) for row in rows]

    # Resent requests.

    def add_accepted(self, kind: str, owner: str, number: int, values: tuple[str | None, bytes, str]) -> None:
        """Record an accepted request by its number: its key, its fingerprint and the id that it got."""
        self.has_accepted = True
        self.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?, ?, ?, ?, ?)", kind, owner, number, *values)

    def remove_accepted(self, kind: str, owner: str, number: int) -> None:
        """Remove an accepted request, with the next transaction."""
        self.defer("DELETE FROM accepted WHERE kind = ? AND owner = ? AND number = ?", kind, owner, number)

    def read_accepted(self, kind: str) -> list[tuple[str, int, str | None, bytes, str]]:
        """Return owner, number, key, fingerprint and id of all accepted requests of a kind, oldest first."""
        return self.query(
            "SELECT owner, number, key, fingerprint, assigned_id FROM accepted WHERE kind = ? ORDER BY rowid", kind
        )

    def add_response(
        self, key: str, operation: str, fingerprint: bytes, status: int, headers: Mapping[str, str], content: bytes
    ) -> None:
        """Record the response to a request with an idempotency key, unless its number identifies the request."""
        if self.is_durable and not self.has_accepted:
            values = key, operation, fingerprint, status, orjson.dumps(dict(headers)), content
            self.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)", *values)

    def remove_response(self, key: str) -> None:
        """Remove the response to a key, with the next transaction."""
        self.defer("DELETE FROM responses WHERE key = ?", key)

    def read_responses(self) -> list[tuple[str, str, bytes, int, bytes, bytes]]:
        """Return key, operation, fingerprint, status, headers and content of all responses, oldest first."""
        return self.query("SELECT key, operation, fingerprint, status, headers, content FROM responses ORDER BY rowid")

    # Sessions, models and samplers.

    def put_session(self, session_id: str, number: int, fields: Mapping[str, Any], last_request_at: float) -> None:
        """Record a session."""
        self.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)",
            session_id,
            number,
            orjson.dumps(fields),
            last_request_at,
        )

    def touch_session(self, session_id: str, last_request_at: float) -> None:
        """Record the time of a session's last request."""
        self.execute("UPDATE sessions SET last_request_at = ? WHERE session_id = ?", last_request_at, session_id)

    def remove_session(self, session_id: str, model_ids: Iterable[str], sampler_ids: Iterable[str]) -> None:
        """Remove a session, its models and its samplers."""
        for model_id in model_ids:
            self.remove_model(model_id)
            self.execute("DELETE FROM weights WHERE weights_id = ?", model_id)
        for sampler_id in sampler_ids:
            self.execute("DELETE FROM samplers WHERE sampler_id = ?", sampler_id)
            self.execute("DELETE FROM weights WHERE weights_id = ?", sampler_id)
        self.execute("DELETE FROM operations WHERE owner = ?", session_id)
        self.execute("DELETE FROM sessions WHERE session_id = ?", session_id)

    def read_sessions(self) -> list[tuple[str, int, dict[str, Any], float]]:
        """Return session_id, number, fields and time of the last request of all sessions, oldest first."""
        rows = self.query("SELECT session_id, number, fields, last_request_at FROM sessions ORDER BY number")
        return [(session_id, number, orjson.loads(fields), last) for session_id, number, fields, last in rows]

    def put_model(self, model_id: str, session_id: str, last_seq_id: int, snapshot: bytes | None) -> None:
        """Record a model with its state, which replaces the operations that led to it."""
        self.execute("INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?)", model_id, session_id, last_seq_id, snapshot)
        self.execute("DELETE FROM operations WHERE owner = ? AND executed IS NOT NULL", model_id)
        self.execute("DELETE FROM skipped WHERE model_id = ? AND seq_id <= ?", model_id, last_seq_id)

    def set_last_seq_id(self, model_id: str, seq_id: int) -> None:
        """Record the seq_id of the last executed operation of a model."""
        self.execute("UPDATE models SET last_seq_id = ? WHERE model_id = ?", seq_id, model_id)

    def remove_model(self, model_id: str) -> None:
        """Remove a model and its operations."""
        for table, column in (("models", "model_id"), ("skipped", "model_id"), ("operations", "owner")):
            self.execute(f"DELETE FROM {table} WHERE {column} = ?", model_id)

    def read_models(self) -> list[tuple[str, str, int]]:
        """Return model_id, session_id and last_seq_id of all models, oldest first."""
        return self.query("SELECT model_id, session_id, last_seq_id FROM models ORDER BY rowid")

    def read_snapshot(self, model_id: str) -> bytes | None:
        """Return the state of a model; None if the model could not be created."""
        rows = self.query("SELECT snapshot FROM models WHERE model_id = ?", model_id)
        return rows[0][0] if rows else None

    def add_skipped(self, model_id: str, seq_id: int) -> None:
        """Record a seq_id whose request was rejected, or whose operation failed without having run."""
        self.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?)", model_id, seq_id)

    def read_skipped(self) -> list[tuple[str, int]]:
        """Return model_id and seq_id of all rejected requests, and of operations that will not run."""
        return self.query("SELECT model_id, seq_id FROM skipped")

    def add_sampler(
        self, sampler_id: str, session_id: str, base_model: str, model_path: str | None, weights_id: str | None
    ) -> None:
        """Record a sampling session."""
        self.execute(
            "INSERT OR REPLACE INTO samplers VALUES (?, ?, ?, ?, ?, 0)",
            sampler_id,
            session_id,
            base_model,
            model_path,
            weights_id,
        )

    def set_copy_count(self, sampler_id: str, count: int) -> None:
        """Record the number of copies of a sampling client."""
        self.execute("UPDATE samplers SET copy_count = ? WHERE sampler_id = ?", count, sampler_id)

    def read_samplers(self) -> list[tuple[str, str, str, str | None, str | None, int]]:
        """Return all columns of all sampling sessions, oldest first."""
        return self.query("SELECT * FROM samplers ORDER BY rowid")

    def put_weights(self, weights_id: str, settings: Mapping[str, Any], arrays: bytes) -> None:
        """Record the weights of one or more samplers."""
        self.execute("INSERT OR REPLACE INTO weights VALUES (?, ?, ?)", weights_id, orjson.dumps(settings), arrays)

    def read_weights(self) -> list[tuple[str, dict[str, Any], bytes]]:
        """Return weights_id, settings and arrays of all weights."""
        rows = self.query("SELECT weights_id, settings, arrays FROM weights")
        return [(weights_id, orjson.loads(settings), arrays) for weights_id, settings, arrays in rows]

    def _read_number(self, statement: str) -> int:
        rows = self.query(statement)
        return (rows[0][0] if rows else None) or 0
