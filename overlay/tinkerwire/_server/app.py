"""The embedded server: routes, validates, handles and encodes, without a socket."""

from __future__ import annotations

import hashlib
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from tinkerwire._files import lock
from tinkerwire._server.emulation.fault_injection import ConnectionDropped, FaultInjection, InjectedFault
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.emulation.server_emulation import BATCHES, ServerEmulation
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.handlers import HANDLERS
from tinkerwire._server.http.idempotency import REPEATABLE, IdempotencyCache
from tinkerwire._server.http.openapi import contract
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response
from tinkerwire._server.http.routing import Router
from tinkerwire._server.http.validation import Validator
from tinkerwire._server.sessions.catalogue import Catalogue
from tinkerwire._server.sessions.client_config import ClientConfig
from tinkerwire._server.sessions.tokens import PREFIX as TOKEN_PREFIX
from tinkerwire._server.settings import RetentionPolicy
from tinkerwire._server.state import Settings, State
from tinkerwire._server.storage import temporary_folder
from tinkerwire._server.storage.archives import PREFIX as ARCHIVES
from tinkerwire.version import DEFAULT_WIRE
from tinkerwire_base.call import JSON, Operation, WireRequest, WireResponse
from tinkerwire_generated.operations import OPERATIONS

log = logging.getLogger("tinkerwire._server")

OPEN_PATHS = frozenset({OPERATIONS["healthz"].path, OPERATIONS["auth_config"].path})
"""Where no key is asked for."""


class EmbeddedServer:
    """Speaks the Tinker API, and trains and samples small models in this process.

    Args:
        folder: where training runs and checkpoints are kept, by one server at a time; None for a temporary folder,
            removed at close.
        wire_version: whose contract is served.
        long_poll_s: seconds that a request for a result is held before it is answered "try again".
        session_ttl_s: seconds without a sign of life after which a session expires; None for never.
        strict_sequence: whether a gap in a model's seq_ids is refused.
        gap_wait_s: seconds for which operations behind a gap in a model's seq_ids are held back, unless it is refused.
        api_key: the only X-API-Key that is let in; None lets in any, and none.
        fault_injection: failures to inject.
        quirks: behaviour of other servers to emulate.
        seed: makes adapters and samples that come without a seed the same in every run.
        most_queued_samples: unfinished requests beyond which samples are pushed back with 429.
        most_inline_bytes: larger results are answered by their size first, where a client allows that.
        aliases: further names of base models, each with the model that it stands for, for programs that look up what
            they know of a name.
        client_config: flags that clients are told, by name; the wire version's own defaults for the others.
        keeping: how long results are kept, and in how much memory.
        clock: seconds since the epoch; for tests.

    Raises:
        ValueError: a wire version that the contract does not have, a flag that the version does not have, an alias of
            a model that there is not, or a folder that another server has.
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        document = contract(wire_version)
        config = ClientConfig(document, client_config or {}, strict_sequence=strict_sequence)
        self.wire_version = wire_version
        """Whose contract is served."""
        self._router = Router(document)
        self._validator = Validator(document)
        self._api_key = api_key
        self._fault_injection = fault_injection
        ways = quirks or Quirks()
        self._emulation = ServerEmulation(ways, long_poll_s)
        retention = retention or RetentionPolicy()
        self._first_answers = IdempotencyCache(retention.request_bytes)
        self._closed = False
        self.is_idle = False
        """After close: whether all work had ended within the time that close waits."""
        self.folder = temporary_folder.create() if folder is None else Path(folder)
        leave = _occupied(self.folder)
        if folder is None:
            leave = partial(_remove_folder, self.folder, leave)
        self._leave_folder = weakref.finalize(self, _unless_forked, leave, os.getpid())
        settings = Settings(
            wire_version=wire_version,
            long_poll_s=long_poll_s,
            session_ttl_s=session_ttl_s,
            strict_sequence=strict_sequence,
            gap_wait_s=gap_wait_s,
            max_queued_samples=max_queued_samples,
            max_inline_bytes=max_inline_bytes,
            catalogue=Catalogue(aliases or {}),
            config=config,
            seed=seed,
            retention=retention,
            clock=clock,
        )
        self._state = State(self.folder, settings, RequestIds(ways.ids), self._emulation.result)

    @property
    def base_models(self) -> tuple[str, ...]:
        """Names of the models that can be trained and sampled."""
        return tuple(self._state.settings.catalogue.models)

    @property
    def checkpoint_count(self) -> int:
        """The number of checkpoints that the server has."""
        return len(self._state.checkpoints.newest_first())

    async def handle(self, request: WireRequest) -> WireResponse:
        """Answer one request; any event loop will do.

        Raises:
            ConnectionDropped: the server was told to drop this one.
        """
        request_headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            self._check(request, request_headers)
            if request.path.startswith(ARCHIVES):
                return self._archive(request)
            operation, path = self._router.find(request.method, request.path)
            error = await self._fault_injection.before(operation.name) if self._fault_injection else InjectedFault()
            if error.reset:
                raise ConnectionDropped(f"{operation.name}: dropped on purpose, before it was handled")
            response = error.response or await self._disguised(operation, path, request)
            if error.lost_reply:
                raise ConnectionDropped(f"{operation.name}: dropped on purpose, after it was handled")
            return response
        except HttpError as refusal:
            return self._encode(refusal.answer())
        except ConnectionDropped:
            raise
        except Exception as unexpected:
            log.exception("%s %s failed", request.method, request.path)
            text = f"the server failed: {type(unexpected).__name__}: {unexpected}; its log has the traceback"
            return self._encode(Response(status=500, body={"detail": text}))

    def close(self) -> None:
        """Stop all work and free what is held; later requests are answered 503."""
        # Under the lock, so that what is accepted is accepted before: its promises are kept or broken, not forgotten.
        with self._state.lock:
            if self._closed:
                return
            self._closed = True
        self.is_idle = self._state.close()
        self._leave_folder()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise HttpError(503, "this server was closed", NO_RETRY)

    def _check(self, request: WireRequest, headers: Mapping[str, str]) -> None:
        self._refuse_closed()
        # The address of an archive is a secret in itself, and clients of object stores send no key.
        is_open = request.path in OPEN_PATHS or request.path.startswith(ARCHIVES)
        if self._api_key is not None and not is_open:
            given = headers.get("x-api-key")
            if given is not None and given.startswith(TOKEN_PREFIX) and self._state.settings.config.wants_tokens:
                self._state.tokens.check(given)
            elif given != self._api_key:
                what = "wrong" if given else "missing"
                raise HttpError(401, f"the API key is {what}; send the server's own in X-API-Key")

    async def _disguised(self, operation: Operation, path: Mapping[str, str], request: WireRequest) -> WireResponse:
        seen = self._emulation.incoming(operation.name, request)
        early = await self._emulation.early(operation.name, seen)
        if early is not None:
            return early
        refusal = self._emulation.refusal_of_form(operation.name, seen)
        if refusal is not None and not self._emulation.applies_refused:
            raise refusal
        response = await self._answer(operation, path, seen)
        if refusal is not None:
            raise refusal
        return self._emulation.outgoing(operation.name, response)

    async def _answer(self, operation: Operation, path: Mapping[str, str], wire: WireRequest) -> WireResponse:
        headers = {name.lower(): value for name, value in wire.headers.items()}
        fingerprint = _fingerprint(wire)
        has_key = wire.method != "GET" and operation.name not in REPEATABLE
        has_key = has_key and not (operation.name in BATCHES and self._emulation.applies_refused)
        key = headers.get("x-idempotency-key") if has_key else None
        with self._state.lock:
            self._refuse_closed()
            first = self._first_answers.find(key, operation.name, fingerprint) if key else None
            if first is not None:
                return first
            request = Request(
                operation=operation.name,
                path=path,
                query=self._validator.query(operation, wire.query),
                body=self._validator.body(operation, wire.content, headers),
                headers=headers,
                key=key,
                fingerprint=fingerprint,
            )
            outcome = self._emulation.first_answer(request) or self._begin(request)
            if isinstance(outcome, Response):
                self._emulation.keep(request, outcome)
                response = self._encode(outcome)
                if key:
                    self._first_answers.keep(key, operation.name, fingerprint, response)
                return response
        return self._encode(await outcome)

    def _begin(self, request: Request) -> Response | Awaitable[Response]:
        try:
            self._emulation.check(request)
            return HANDLERS[request.operation](self._state, request)
        except HttpError as refusal:
            self._emulation.refused(request, refusal.status)
            self._state.skip(request.body)
            raise

    def _archive(self, request: WireRequest) -> WireResponse:
        if request.method != "GET":
            raise HttpError(405, f"archives take GET, not {request.method}", {"allow": "GET"})
        content = self._state.archives.read(request.path)
        return WireResponse(status=200, headers={"content-type": "application/octet-stream"}, content=content)

    def _encode(self, answer: Response) -> WireResponse:
        body: Any = answer.body
        if body is None:
            return WireResponse(status=answer.status, headers=answer.headers)
        content = body if isinstance(body, bytes) else self._state.encoder.json(body)
        return WireResponse(status=answer.status, headers={"content-type": JSON, **answer.headers}, content=content)


def _fingerprint(request: WireRequest) -> bytes:
    digest = hashlib.blake2b(f"{request.method} {request.path} {request.query}\n".encode(), digest_size=16)
    digest.update(request.content or b"")
    return digest.digest()


def _remove_folder(folder: Path, unlock: Callable[[], None]) -> None:
    temporary_folder.remove(folder)
    unlock()


def _occupied(folder: Path) -> Callable[[], None]:
    """Take a folder for one server, as a second would take for leftovers what the first is writing; gives it back."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return lock(folder, waits=False)
    except BlockingIOError:
        raise ValueError(
            f"folder: another server has {folder}; close its client or end its process, give each of them a folder of "
            f"its own, or start `tinkerwire serve --folder {folder}` and give its URL to both"
        ) from None
    except OSError as error:
        raise ValueError(f"folder: {folder} cannot be used: {error.strerror or error}") from None


def _unless_forked(leave: Callable[[], object], pid: int) -> None:
    """Leave a folder; not in a child that ends, which has a copy of its parent's server."""
    if os.getpid() == pid:
        leave()
