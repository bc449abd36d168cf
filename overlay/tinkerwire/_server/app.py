"""The embedded server: middleware, routing, validation, handlers and encoding, without a socket."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from tinkerwire._files import lock
from tinkerwire._server.emulation.fault_injection import ConnectionDropped, FaultInjection
from tinkerwire._server.emulation.middleware import CallNext, Middleware, apply_middleware
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.handlers import HANDLERS
from tinkerwire._server.http.body_thread import BodyThread
from tinkerwire._server.http.idempotency import SAFE_OPERATIONS
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.ranges import respond_with_range
from tinkerwire._server.http.request import Request, with_lower_names
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response
from tinkerwire._server.http.routing import OPEN_PATHS, Router
from tinkerwire._server.http.validation import Validator
from tinkerwire._server.options import require_type
from tinkerwire._server.recovery import recover
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig
from tinkerwire._server.sessions.tokens import TOKEN_PREFIX
from tinkerwire._server.state import Settings, State
from tinkerwire._server.storage import temporary_folder
from tinkerwire._server.storage.archives import ARCHIVE_PREFIX
from tinkerwire._server.storage.journal import Journal
from tinkerwire.version import DEFAULT_WIRE
from tinkerwire_base.call import JSON, Operation, WireRequest, WireResponse
from tinkerwire_base.validators import require_str

log = logging.getLogger("tinkerwire._server")

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors that a retry meets again."""


class EmbeddedServer:
    """A server of the Tinker API that trains and samples small models in this process.

    Args:
        folder: folder of training runs, checkpoints and the journal, for one server at a time. The next server on
            the folder resumes the sessions, models, samplers and accepted operations of this one, also after a kill.
            None creates a temporary folder and removes it at close.
        wire_version: wire version to serve.
        long_poll_s: seconds for which a request for a result is held before the response is "try again".
        session_ttl_s: seconds without a request after which a session expires; None disables expiry.
        strict_sequence: reject an operation whose seq_id leaves a gap.
        gap_wait_s: seconds for which operations behind a gap in a model's seq_ids wait for the missing ones. Without
            effect if ``strict_sequence`` is set.
        api_key: required value of X-API-Key; None accepts requests with any key or without a key.
        fault_injection: faults to inject.
        quirks: behaviour of other servers to emulate.
        seed: seed for adapters and samples that are requested without a seed; None draws a new seed each time.
        max_queued_samples: unfinished requests beyond which the server answers samples with 429.
        max_inline_bytes: results above this size are announced by their size first, if the client allows that.
        aliases: further names of base models, each with the model it stands for, for programs that look up properties
            by model name.
        client_config: flags of client/config by name; flags not named have the defaults of the wire version.
        retention: limits on the age and memory of retained results.
        clock: seconds since the epoch, in place of all clocks of the server; for tests.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, the wire version is not in the contract, the wire version does not have
            a flag, an alias names an unknown model, another server uses the folder, or its journal is damaged or
            cannot be written.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        wire_version: str = DEFAULT_WIRE,
        long_poll_s: float = 30.0,
        session_ttl_s: float | None = 3600.0,
        strict_sequence: bool = False,
        gap_wait_s: float = 10.0,
        api_key: str | None = None,
        fault_injection: FaultInjection | None = None,
        quirks: Quirks | None = None,
        seed: int | None = None,
        max_queued_samples: int = 20_000,
        max_inline_bytes: int = 2**20,
        aliases: Mapping[str, str] | None = None,
        client_config: Mapping[str, Any] | None = None,
        retention: RetentionPolicy | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        require_str("wire_version", wire_version)
        if folder is not None:
            require_type("folder", folder, (str, os.PathLike), "a path")
        document = load_contract(wire_version)
        settings = Settings(
            wire_version=wire_version,
            long_poll_s=long_poll_s,
            session_ttl_s=session_ttl_s,
            strict_sequence=strict_sequence,
            gap_wait_s=gap_wait_s,
            api_key=api_key,
            seed=seed,
            max_queued_samples=max_queued_samples,
            max_inline_bytes=max_inline_bytes,
            catalogue=Catalogue({} if aliases is None else aliases),
            client_config=ClientConfig(
                document, {} if client_config is None else client_config, strict_sequence=strict_sequence
            ),
            retention=RetentionPolicy() if retention is None else retention,
            quirks=Quirks() if quirks is None else quirks,
            fault_injection=fault_injection,
            clock=clock,
        )
        self.wire_version = wire_version
        """The wire version that the server speaks."""
        self._settings = settings
        self._router = Router(document)
        self._validator = Validator(document)
        self._body_thread = BodyThread()
        self._lock = threading.RLock()
        self._closed = False
        self._is_resumed_later = False
        self.is_idle = False
        """True if all work ended before :meth:`close` returned."""
        self.folder = temporary_folder.create() if folder is None else Path(folder)
        leave = _lock_folder(self.folder)
        if folder is None:
            leave = partial(_remove_folder, self.folder, leave)
        self._leave_folder = weakref.finalize(self, _leave_unless_forked, leave, os.getpid())
        self._journal_path = None if folder is None else self.folder / f"journal-{wire_version}.sqlite3"
        if self._journal_path is not None and not _is_writable(self.folder):
            log.warning("%s is read-only: the server does not keep sessions and samples for a restart", self.folder)
            self._journal_path = None
        try:
            self._state = self._open_state()
        except BaseException as error:
            self._leave_folder()
            if isinstance(error, OSError):
                raise ValueError(f"folder: {error}") from None
            raise
        self._emulation = self._state.emulation
        # The first one is the innermost.
        self._middleware: tuple[Middleware, ...] = (self._emulation,)
        if fault_injection is not None:
            self._middleware += (fault_injection,)

    @property
    def base_models(self) -> tuple[str, ...]:
        """Names of the models that can be trained and sampled."""
        return tuple(self._settings.catalogue.models)

    @property
    def checkpoint_count(self) -> int:
        """Number of checkpoints."""
        return len(self._state.checkpoints.newest_first())

    async def handle(self, request: WireRequest) -> WireResponse:
        """Return the response to one request, on any event loop.

        Raises:
            ConnectionDropped: fault injection or a quirk drops the connection.
        """
        request = with_lower_names(request)
        try:
            self._authenticate(request)
            if request.path.startswith(ARCHIVE_PREFIX):
                return self._read_archive(request)
            operation, path = self._router.find(request.method, request.path)
            call_next: CallNext = partial(self._respond, operation, path)
            for middleware in self._middleware:
                call_next = apply_middleware(operation.name, middleware, call_next)
            return await call_next(request)
        except HttpError as error:
            return self._encode(error.to_response())
        except ConnectionDropped:
            raise
        except OSError as error:
            log.warning("%s %s was not accepted: %s", request.method, request.path, error)
            text = f"the request was not accepted: the folder of this server cannot be written: {error}"
            headers = NO_RETRY if error.errno in _READ_ONLY else {}
            return self._encode(Response(status=503, body={"detail": text}, headers=headers))
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            text = f"internal server error: {type(error).__name__}: {error}; see the traceback in the server's log"
            return self._encode(Response(status=500, body={"detail": text}))

    @property
    def is_durable(self) -> bool:
        """True if the next server on the folder resumes the state of this one."""
        return self._state.journal.is_durable

    def close(self, *, is_resumed: bool = False) -> None:
        """Stop all work and free all resources; later requests are answered with 503.

        Args:
            is_resumed: another server will resume the state, so that clients are to retry; otherwise pending
                operations fail for the clients that wait for them.
        """
        # With the lock held, so that every accepted request either finishes or fails.
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._is_resumed_later = is_resumed and self.is_durable
        self._body_thread.close()
        self._state.stop(None if self._is_resumed_later else "the server was closed before this was done")
        self.is_idle = self._state.join()
        self._state.journal.close()
        self._leave_folder()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise HttpError(503, "this server is closed", {} if self._is_resumed_later else NO_RETRY)

    def _open_state(self) -> State:
        """Create the state, from the journal if there is one."""
        state = State(self.folder, self._settings, self._lock, Journal(self._journal_path))
        try:
            with self._lock:
                recover(state, self._validator)
        except BaseException:
            state.stop(None)
            state.journal.close()
            raise
        return state

    def _find_state(self) -> State:
        """Return the state; after a failed write, a new one that is read from the journal."""
        state = self._state
        if not state.journal.has_failed:
            return state
        state.stop(None)
        if not state.join(0.1):
            raise HttpError(503, "the folder of this server cannot be written: a running step must end first")
        state.journal.close()
        journal = Journal(self._journal_path)
        try:
            journal.require_writable()
        finally:
            journal.close()
        self._state = self._open_state()
        return self._state

    def _authenticate(self, request: WireRequest) -> None:
        self._require_open()
        # The URL of an archive is a secret itself, and clients of object stores do not send a key.
        is_open = request.path in OPEN_PATHS or request.path.startswith(ARCHIVE_PREFIX)
        api_key = self._settings.api_key
        if api_key is None or is_open:
            return
        credential = request.headers.get("x-api-key")
        uses_tokens = self._settings.client_config.uses_tokens
        if credential is not None and credential.startswith(TOKEN_PREFIX) and uses_tokens:
            self._state.tokens.validate(credential)
        elif credential != api_key:
            problem = "wrong" if credential else "missing"
            raise HttpError(401, f"the API key is {problem}; send the server's own key in X-API-Key")

    async def _respond(self, operation: Operation, path: Mapping[str, str], wire: WireRequest) -> WireResponse:
        fingerprint = _fingerprint(wire)
        has_key = wire.method != "GET" and operation.name not in SAFE_OPERATIONS
        has_key = has_key and not self._emulation.ignores_idempotency_key(operation.name)
        key = wire.headers.get("x-idempotency-key") if has_key else None
        query = self._validator.parse_query(operation, wire.query)
        body = await self._body_thread.run(
            wire, lambda: self._validator.parse_body(operation, wire.content, wire.headers)
        )
        with self._lock:
            self._require_open()
            state = self._find_state()
            cache = state.idempotency_cache
            cached = cache.find(key, operation.name, fingerprint) if key else None
            if cached is not None:
                return cached
            request = Request(
                operation=operation.name,
                path=path,
                query=query,
                body=body,
                headers=wire.headers,
                key=key,
                fingerprint=fingerprint,
            )
            with state.journal as journal:
                journal.set_request(operation.name, wire.headers, wire.content, key, fingerprint)
                outcome = self._emulation.find_executed(request) or self._call_handler(state, request)
                journal.request = None
                if isinstance(outcome, Response):
                    self._emulation.record_executed(request, outcome)
                    response = self._encode(outcome)
                    if key:
                        cache.store(key, operation.name, fingerprint, response)
                    return response
        return self._encode(await outcome)

    def _call_handler(self, state: State, request: Request) -> Response | Awaitable[Response]:
        try:
            self._emulation.validate(request)
            return HANDLERS[request.operation](state, request)
        except HttpError as error:
            self._emulation.on_rejected(request, error.status)
            state.skip_seq_id(request.body)
            raise

    def _read_archive(self, request: WireRequest) -> WireResponse:
        if request.method != "GET":
            raise HttpError(405, f"archives must be requested with GET, got {request.method}", {"allow": "GET"})
        content = self._state.archives.read(request.path)
        return respond_with_range(content, request.headers)

    def _encode(self, response: Response) -> WireResponse:
        body: Any = response.body
        if body is None:
            return WireResponse(status=response.status, headers=response.headers)
        content = body if isinstance(body, bytes) else self._state.encoder.encode_json(body)
        headers = {"content-type": JSON, **response.headers}
        return WireResponse(status=response.status, headers=headers, content=content)


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _fingerprint(request: WireRequest) -> bytes:
    digest = hashlib.blake2b(f"{request.method} {request.path} {request.query}\n".encode(), digest_size=16)
    digest.update(request.content or b"")
    return digest.digest()


def _remove_folder(folder: Path, unlock: Callable[[], None]) -> None:
    # Windows cannot remove a locked file.
    unlock()
    temporary_folder.remove(folder)


def _lock_folder(folder: Path) -> Callable[[], None]:
    """Lock the folder and return a function that unlocks it; a second server would delete unfinished files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return lock(folder, waits=False)
    except BlockingIOError:
        raise ValueError(
            f"folder: another server uses {folder}; close its client or end its process, use a folder for each server, "
            f"or start `tinkerwire serve --folder {folder}` and use its URL in both programs"
        ) from None
    except OSError as error:
        raise ValueError(f"folder: {folder} cannot be used: {error.strerror or error}") from None


def _leave_unless_forked(leave: Callable[[], object], pid: int) -> None:
    """Leave a folder, except in a forked child, which has a copy of its parent's server."""
    if os.getpid() == pid:
        leave()
