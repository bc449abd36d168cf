"""The transport that answers requests from a tape, without a server."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import shutil
import tempfile
import weakref
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import attrs
import orjson

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.errors import APIConnectionError, APITimeoutError, ReplayError, RequestInfo
from tinkerwire_base.short_repr import short_repr
from tinkerwire_generated.api.auth.client_config import OPERATION as CLIENT_CONFIG
from tinkerwire_generated.api.auth.client_dynamic_config import OPERATION as CLIENT_DYNAMIC_CONFIG
from tinkerwire_generated.api.futures.cancel_future import OPERATION as CANCEL_FUTURE
from tinkerwire_generated.api.futures.retrieve_future import OPERATION as RETRIEVE_FUTURE
from tinkerwire_generated.api.futures.retrieve_futures import OPERATION as RETRIEVE_FUTURES
from tinkerwire_generated.api.session.create_session import OPERATION as CREATE_SESSION
from tinkerwire_generated.api.session.session_heartbeat import OPERATION as HEARTBEAT
from tinkerwire_generated.api.telemetry.telemetry import OPERATION as TELEMETRY
from tinkerwire_generated.api.training.get_info import OPERATION as GET_INFO
from tinkerwire_generated.api.training.unload_model import OPERATION as UNLOAD_MODEL
from tinkerwire_generated.api.weights.weights_info import OPERATION as WEIGHTS_INFO

from .._futures.fork_lock import ForkLock
from .._transport.address import set_recorded_address
from .._transport.backpressure import Traffic
from .._transport.poll_connections import PollConnections
from .recorded_operations import RecordedOperation, RecordedOperations
from .request_content import RequestContent, find_first_difference, read_content
from .secret_removal import SecretRemoval
from .tape_file import RecordedExchange, read_tape

CLAIMS_VARIABLE = "TINKERWIRE_REPLAY_CLAIMS"
"""The variable by which child processes find the folder of the replay that they belong to."""
READ_PATHS = frozenset({CLIENT_CONFIG.path, CLIENT_DYNAMIC_CONFIG.path, GET_INFO.path, WEIGHTS_INFO.path})
"""Paths of POST requests that read; a program may read more often than the recorded one."""
OPTIONAL_RESPONSES = {
    HEARTBEAT.path: (200, b'{"type":"session_heartbeat"}'),
    TELEMETRY.path: (200, b'{"status":"accepted"}'),
    CANCEL_FUTURE.path: (200, b"{}"),
    UNLOAD_MODEL.path: (404, b'{"detail":"not in the recording"}'),
    RETRIEVE_FUTURES.path: (404, b'{"detail":"not in the recording"}'),
}
"""Responses to requests that depend on time, if the tape has none."""
JSON_CONTENT = {"content-type": "application/json"}
PATIENCE_S = 10.0
"""Time for which a replay waits longer than the recording for a program that gives up a request."""
RETRIED_STATUSES = frozenset({402, 408, 429})


class Replay:
    """One replay of a tape, shared by the clients of a process, and by its child processes. Used on the loop thread.

    Args:
        path: the tape.
        claims: folder of the operations that are matched.
        is_of_parent: whether the folder is that of the replay of a parent process.
    """

    def __init__(self, path: Path, claims: Path, *, is_of_parent: bool = False) -> None:
        self.tape = read_tape(path)
        self._is_of_parent = is_of_parent
        self.pid = os.getpid()
        self.address = f"replay:{path}"
        submitted = [exchange for exchange in self.tape.exchanges if not _is_background(exchange)]
        self.operations = RecordedOperations(submitted, claims)
        self._removal = SecretRemoval()
        self._results: dict[str, RecordedExchange] = {}
        self._lost_heartbeats = [exchange for exchange in self.tape.exchanges if exchange.path == HEARTBEAT.path]
        for exchange in self.tape.exchanges:
            if exchange.path == RETRIEVE_FUTURE.path and _is_result(exchange):
                self._results[_request_id(exchange.content)] = exchange
        self._claimed_by: dict[str | bytes, RecordedOperation] = {}
        """The operations that were claimed, by idempotency key and by batch."""
        self._reads: defaultdict[bytes, int] = defaultdict(int)
        self.first_error: str | None = None
        """Text of the first difference between the program and the recorded one."""
        set_recorded_address(self.address, self.tape.server)

    @property
    def is_over(self) -> bool:
        """True if every recorded session was replayed, and there was one."""
        sessions = [operation for operation in self.operations.all if operation.content.path == CREATE_SESSION.path]
        return bool(sessions) and all(self.operations.is_claimed(session) for session in sessions)

    @property
    def is_finished(self) -> bool:
        """True if another replay may start: the program has ended, or differed.

        A process of a pool closes and opens clients while other processes of the program go on.
        """
        return not self._is_of_parent and (self.is_over or self.first_error is not None)

    @property
    def is_complete(self) -> bool:
        """True if every recorded request was replayed that a program must repeat."""
        return all(map(self.operations.is_claimed, filter(_is_required, self.operations.all)))

    def respond(self, request: WireRequest) -> WireResponse:
        """Return the recorded response to a request.

        Raises:
            ReplayError: the tape has no such request, or no response to it.
            APIConnectionError: the recorded request got no response.
        """
        self._removal.learn(request.headers)
        clean = self._removal.clean
        content = None if request.content is None else clean(request.content)
        if request.path == RETRIEVE_FUTURE.path:
            return self._result(_request_id(content))
        if request.path == HEARTBEAT.path:
            return self._heartbeat()
        query = tuple((name, self._removal.clean_text(value)) for name, value in request.query)
        path = self._removal.clean_text(request.path)
        asked = read_content(request.method, path, query, request.headers, content)
        if _is_read(asked):
            return self._read(asked)
        keys = [key for key in (request.headers.get("x-idempotency-key"), asked.batch_key()) if key]
        known = [self._claimed_by[key] for key in keys if key in self._claimed_by]
        operation = known[0] if known else self._claim(asked)
        if operation is None:
            return self._optional(asked)
        self._claimed_by.update(dict.fromkeys(keys, operation))
        return self._response(operation.outcome)

    def _claim(self, asked: RequestContent) -> RecordedOperation | None:
        if self.first_error is not None:
            # Later requests differ, because an earlier one did.
            return None
        operation = self.operations.claim(asked)
        if (
            operation is None
            and asked.path == CREATE_SESSION.path
            and not self.operations.has_claims
            and self.is_complete
        ):
            # The parent process has replayed the whole tape, and this process replays it once more.
            self.operations.share(_new_claims_folder(self.tape.path))
            self._is_of_parent = False
            operation = self.operations.claim(asked)
        return operation

    def _read(self, asked: RequestContent) -> WireResponse:
        equal = self.operations.list_equal(asked)
        if not equal:
            raise self._mismatch(asked)
        key = asked.key()
        operation = equal[min(self._reads[key], len(equal) - 1)]
        self._reads[key] += 1
        response = self._response(operation.outcome)
        return _without_batched_polls(response) if asked.path == CLIENT_CONFIG.path else response

    def _result(self, request_id: str) -> WireResponse:
        exchange = self._results.get(request_id)
        if exchange is not None:
            return self._response(exchange)
        text = (
            f"{self.address}: the recording has no result of the request {request_id}: the recorded program did not "
            f"wait for it{self.tape.ending}"
        )
        name = request_id.encode()
        submitted = [operation.outcome for operation in self.operations.all if name in operation.outcome.response]
        if self.tape.ending or not submitted:
            raise ReplayError(text)
        raise _UnansweredError(text, request_id, self._time_to_end(submitted[0]))

    def _time_to_end(self, exchange: RecordedExchange) -> float:
        """Return the seconds from an exchange to the end of the recording, plus ``PATIENCE_S``."""
        return (self.tape.exchanges[-1].at - exchange.at) / 1e9 + PATIENCE_S

    def _heartbeat(self) -> WireResponse:
        """Reject the heartbeat if the recorded server did, and the program has sent all requests before it."""
        for lost in self._lost_heartbeats:
            if all(
                self.operations.is_claimed(operation)
                for operation in self.operations.all
                if operation.exchanges[0].at < lost.at and not _is_read(operation.content)
            ):
                return self._response(lost)
        return _optional_response(HEARTBEAT.path)

    def _optional(self, asked: RequestContent) -> WireResponse:
        """Return a response to a request that the program may skip or repeat; raise ReplayError for any other."""
        if asked.path in OPTIONAL_RESPONSES:
            return _optional_response(asked.path)
        if asked.path.endswith("/finish"):
            return WireResponse(status=204)
        raise self._mismatch(asked)

    def _response(self, exchange: RecordedExchange) -> WireResponse:
        if exchange.status is not None:
            return WireResponse(
                status=exchange.status, headers=dict(exchange.response_headers), content=exchange.response
            )
        error = exchange.error or {}
        if error.get("kind") == "CancelledError":
            text = (
                f"{self.address}: {exchange.method} {exchange.path}: the recording has no response, because the "
                "recorded program cancelled the request"
            )
            raise _UnansweredError(text, str(exchange.at), self._time_to_end(exchange))
        kind = APITimeoutError if error.get("kind") == "APITimeoutError" else APIConnectionError
        info = RequestInfo(method=exchange.method, url=f"{self.address}{exchange.path}")
        text = str(error.get("message", "the connection failed"))
        raise kind(info, f"recorded: {text}", may_have_been_sent=error.get("may_have_been_sent"))

    def _mismatch(self, asked: RequestContent) -> ReplayError:
        """Return the error of a request that the tape does not have; all later ones repeat the first such error."""
        if self.first_error is not None:
            return ReplayError(self.first_error)
        self.first_error = f"{self.address}: {self._describe(asked)}{self.tape.ending}"
        return ReplayError(self.first_error)

    def _describe(self, asked: RequestContent) -> str:
        name = f"{asked.path.rpartition('/')[2]} ({asked.method} {asked.path})"
        same = [
            operation
            for operation in self.operations.all
            if operation.content.method == asked.method and operation.content.path == asked.path
        ]
        if not same:
            return f"{name}: the recorded program sent no such request"
        unclaimed = [operation for operation in same if not self.operations.is_claimed(operation)]
        if not unclaimed:
            text = f"{name}: the recorded program sent {len(same)} such requests, and this one is additional"
            if asked.path == CREATE_SESSION.path:
                text += "; close all clients of this replay before the program starts it anew"
            return text
        nearest = _nearest(unclaimed, asked)
        before = {"query": [list(pair) for pair in nearest.content.query], "body": nearest.content.body}
        now = {"query": [list(pair) for pair in asked.query], "body": asked.body}
        place, recorded, current = find_first_difference(before, now) or ("order of the requests", "another", "this")
        return (
            f"{name}: the request differs from the recorded one; the first field that differs is "
            f"{place.removeprefix('body.')}: recorded {short_repr(recorded)}, got {short_repr(current)}"
        )


class _UnansweredError(Exception):
    """The recorded program gave up a request, and this program should do so within a time in seconds."""

    def __init__(self, text: str, name: str, patience_s: float) -> None:
        super().__init__(text)
        self.name = name
        self.patience_s = patience_s


class ReplayTransport:
    """Answers the requests of one client from a tape.

    Args:
        replay: the replay, shared with other clients.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._ends: dict[str, float] = {}
        self.poll_connections = PollConnections(None)

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`.

        A request that the recorded program gave up, for example after a timeout, waits for the program to do so again.

        Raises:
            ReplayError: the recorded program sent no such request, or gave it up and this program does not.
        """
        try:
            return self._replay.respond(request)
        except _UnansweredError as error:
            now = asyncio.get_running_loop().time()
            end = self._ends.setdefault(error.name, now + error.patience_s)
            await asyncio.sleep(end - now)
            raise ReplayError(str(error)) from None

    async def close(self) -> None:
        """See :class:`Transport`."""
        _users.pop(self, None)


_latest: dict[Path, Replay] = {}
_users: weakref.WeakKeyDictionary[ReplayTransport, Replay] = weakref.WeakKeyDictionary()
"""The transports that are not closed."""
_folder_makers: set[int] = set()
"""This process, and those it was forked from, if they have made a folder for claims."""
_lock = ForkLock()


def open_replay(path: Path) -> ReplayTransport:
    """Return a transport that answers from a tape.

    The clients of a process, and of its children, share a replay. A client that is created after all recorded sessions
    were replayed, while no other client is open, starts the replay anew.

    Raises:
        ValueError: the file cannot be read, or is not a tape.
    """
    with _lock.current:
        replay = _latest.get(path)
        is_of_parent = replay is not None and replay.pid != os.getpid()
        if replay is None or is_of_parent or (replay.is_finished and not _is_in_use(replay)):
            is_repeated = replay is not None and not is_of_parent
            claims = None if is_repeated else _find_claims_folder(path)
            is_inherited = claims is not None and os.getpid() not in _folder_makers
            replay = _latest[path] = Replay(path, claims or _new_claims_folder(path), is_of_parent=is_inherited)
        transport = ReplayTransport(replay)
        _users[transport] = replay
        return transport


def _is_in_use(replay: Replay) -> bool:
    return any(user is replay for user in list(_users.values()))


def _nearest(operations: list[RecordedOperation], asked: RequestContent) -> RecordedOperation:
    """Return the first operation that shares most of the simple fields of the request."""

    def count_equal(operation: RecordedOperation) -> int:
        body, other = operation.content.body, asked.body
        if not isinstance(body, dict) or not isinstance(other, dict):
            return 0
        return sum(body.get(name) == value for name, value in other.items())

    return max(operations, key=lambda operation: (count_equal(operation), -operation.number))


def _optional_response(path: str) -> WireResponse:
    status, content = OPTIONAL_RESPONSES[path]
    return WireResponse(status=status, headers=JSON_CONTENT, content=content)


def _without_batched_polls(response: WireResponse) -> WireResponse:
    """Return client/config without batched polls: every recorded result can be fetched at once."""
    with suppress(ValueError):
        config = parse_json(response.content)
        if isinstance(config, dict) and config.get("sample_use_retrieve_futures"):
            return attrs.evolve(response, content=orjson.dumps({**config, "sample_use_retrieve_futures": False}))
    return response


def _is_read(content: RequestContent) -> bool:
    return content.method == "GET" or content.path in READ_PATHS


def _is_required(operation: RecordedOperation) -> bool:
    path = operation.content.path
    return not (_is_read(operation.content) or path in OPTIONAL_RESPONSES or path.endswith("/finish"))


def _is_background(exchange: RecordedExchange) -> bool:
    return exchange.path in (RETRIEVE_FUTURE.path, HEARTBEAT.path)


def _is_result(exchange: RecordedExchange) -> bool:
    status = exchange.status
    return status is not None and status < 500 and status not in RETRIED_STATUSES


def _request_id(content: bytes | None) -> str:
    with suppress(ValueError, AttributeError):
        return str(parse_json(content or b"").get("request_id", ""))
    return ""


def _find_claims_folder(path: Path) -> Path | None:
    """Return the folder that this process or its parent has made, and their children share; None without one."""
    parent = os.environ.get(CLAIMS_VARIABLE, "")
    return _subfolder(Path(parent), path) if parent and Path(parent).is_dir() else None


def _new_claims_folder(path: Path) -> Path:
    """Return a folder that this process shares with its children only."""
    parent = os.environ[CLAIMS_VARIABLE] = tempfile.mkdtemp(prefix="tinkerwire-replay-")
    _folder_makers.add(os.getpid())
    atexit.register(_remove, Path(parent), os.getpid())
    return _subfolder(Path(parent), path)


def _subfolder(parent: Path, path: Path) -> Path:
    folder = parent / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    return folder


def _remove(folder: Path, pid: int) -> None:
    if pid == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
