"""One request of a client as a request to the upstream, and back: as it came, or translated by the contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Call, WireRequest, WireResponse, default_converter
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_base.errors import DialectError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.availability import OPERATION_VERSIONS
from tinkerwire_generated.constants import RESULT_TYPES
from tinkerwire_generated.operations import OPERATIONS

from .._connection.call_codec import WIRE_HEADER
from .._server.http.content_encoding import ENCODINGS, ZSTD
from .._server.http.responses import HttpError
from .._wire import codec
from .._wire.dialect import BATCH_OPERATIONS, Dialect
from . import memory as kinds
from .adaptation import adapt_body, adapt_query
from .attempts import CONFLICT_STATUS, INVALID, PROTOBUF_SINCE, Attempts
from .front import ClientRequest, content_encoding, json_object, media_type
from .matching import has_same_json, has_same_protobuf
from .memory import Memory
from .upstream import Refused, Upstream, UpstreamTimeout, shared_headers, traffic_of

T = TypeVar("T")
RELAY_TIMEOUT_S = 120.0
"""Time limit of a request whose client names none."""
MAX_TIMEOUT_S = 3600.0
TIMEOUT_SHARE = 2.0
"""Official clients wait twice as long as the time-out that their headers name."""
UPLOAD_BYTES_PER_S = 100_000
CONTENT_HEADERS = frozenset({"content-type", "content-encoding"})
MODEL_ID_PART = b":train:"
"""Part of every id that clients compute for the models that they create by load_weights."""
MIN_SCANNED_BYTES = 65_536
"""Size from which bodies of clients that name no version are not read, if both versions have all that is in them."""
PASSED, TRANSLATED = "passed", "translated"


@attrs.define
class RelayedExchange:
    """Handling of one request, for the trace.

    Args:
        form: ``passed``, ``translated`` or the name of an emulation.
    """

    form: str = PASSED
    upstream_requests: int = 0
    started_at: float = attrs.field(factory=time.monotonic)
    """Monotonic time of the client's request."""


class Relay:
    """Passes requests to the upstream.

    Args:
        upstream: the server behind the gateway.
        memory: what the gateway remembers.
    """

    def __init__(self, upstream: Upstream, memory: Memory) -> None:
        self.upstream = upstream
        self.memory = memory
        self._accepted: dict[str, Dialect] = {}
        """The end of an upstream's range of versions that it was found to accept, by operation."""

    async def relay(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        """Send a request in the dialect of the upstream and return its response.

        Raises:
            HttpError: the upstream cannot do what the request asks for, or gives no response.
            Refused: the upstream rejects the request for its settings.
        """
        dialect = await self.upstream.dialect(request.headers)
        passed = None if request.operation.name in self._accepted else self._as_it_came(request, dialect)
        response = None if passed is None else await self.send(request, passed, exchange)
        if response is None:
            exchange.form = TRANSLATED
            # A guessed form may be rejected, and JSON takes the digits as they came.
            is_protobuf = request.operation.name in dialect.protobuf_operations
            request.packs_numbers = is_protobuf and not dialect.is_provisional
            body = self._resolve_body(await request.read_body())
            response = await self.translate(request, body, dialect, exchange)
        elif response.status == INVALID and not dialect.is_fixed:
            response = await self._repeat(request, dialect, response, exchange)
        self._remember(request, response)
        return response

    async def _repeat(
        self, request: ClientRequest, dialect: Dialect, rejection: WireResponse, exchange: RelayedExchange
    ) -> WireResponse:
        """Send a request that was rejected as it came in other forms; return the rejection if none is accepted."""
        try:
            body = self._resolve_body(await request.read_body())
            response = await self.translate(request, body, dialect, exchange)
        except HttpError:
            return rejection
        if response.status >= 300:
            return rejection
        exchange.form = TRANSLATED
        return response

    async def translate(
        self, request: ClientRequest, body: Any, dialect: Dialect, exchange: RelayedExchange
    ) -> WireResponse:
        """Send a request with a body of the contract's models, in the form that the upstream takes."""
        name = batch_operation(body) or request.operation.name
        headers = {key: value for key, value in request.headers.items() if key not in CONTENT_HEADERS}

        def make_call(form: Dialect) -> Call[Any]:
            query = adapt_query(request.operation.name, request.query, request.front.document, form)
            path = {key: self.resolve_model(value) for key, value in request.path.items()}
            return Call(OPERATIONS[name], path=path, query=query, body=adapt_body(body, form))

        def make_request(form: Dialect) -> WireRequest:
            # A request keeps its bytes under its key while the gateway learns what the upstream supports.
            passed = self._as_it_came(request, form) if name in BATCH_OPERATIONS else None
            if passed is not None:
                return passed
            encoded = codec.encode(make_call(form), form)
            sent = {**headers, WIRE_HEADER: form.version_range, **encoded.headers}
            return attrs.evolve(encoded, headers=sent)

        return await self._send_in_forms(request, name, make_request, dialect, exchange)

    async def _send_in_forms(
        self,
        request: ClientRequest,
        name: str,
        make_request: Callable[[Dialect], WireRequest],
        dialect: Dialect,
        exchange: RelayedExchange,
    ) -> WireResponse:
        """Send a call in the first form that the upstream accepts.

        All forms have one idempotency key, because the upstream may have run the call before it failed to respond, in
        an earlier attempt too. A server that has run it in another form responds with 409.

        Args:
            request: the client's request.
            name: the operation of the call.
            make_request: returns the call in a form.
            dialect: the dialect of the upstream.
            exchange: what is recorded for the trace.
        """
        attempts = Attempts(name, dialect)
        forms = self._narrow(name, dialect)
        error: Exception | None = None
        tried: list[tuple[str, Any, bytes | None]] = []
        for form in forms:
            if not attempts.may_fit(form):
                continue
            try:
                sent = await request.body_thread.run(request.wire, partial(make_request, form))
            except (DialectError, TypeError, ValueError, OverflowError) as cause:
                error = error or cause
                continue
            essence = (sent.path, sent.query, sent.content)
            if essence in tried:
                continue
            tried.append(essence)
            try:
                if attempts.learns_encoding:
                    response = await self._send_again(request, sent, exchange)
                else:
                    response = await self.send(request, sent, exchange)
            except HttpError as dropped:
                if not attempts.learns_encoding:
                    raise
                attempts.add(form, sent, dropped)
                continue
            if response.status == CONFLICT_STATUS and attempts.uncertain is not None:
                # The upstream has run the call in that form, in which it recognizes a retry.
                return await self._send_uncertain(request, name, attempts.uncertain, exchange)
            if response.status < 300:
                self._learn(name, form, is_first=len(tried) == 1)
                return response
            if len(forms) == 1 or not attempts.is_doubtful(response):
                return response
            attempts.add(form, sent, response)
        if attempts.should_repeat_uncertain() and attempts.uncertain is not None:
            response = await self._send_uncertain(request, name, attempts.uncertain, exchange)
            if response.status < 300:
                return response
        answer = attempts.answer()
        if isinstance(answer, HttpError):
            raise answer
        if answer is not None:
            return answer
        assert error is not None
        raise self.refusal(error, dialect)

    async def _send_uncertain(
        self, request: ClientRequest, name: str, uncertain: tuple[Dialect, WireRequest], exchange: RelayedExchange
    ) -> WireResponse:
        """Repeat an attempt that the upstream may have run."""
        form, sent = uncertain
        response = await self.send(request, sent, exchange)
        if response.status < 300:
            self._learn(name, form, is_first=False)
        return response

    async def _send_again(self, request: ClientRequest, wire: WireRequest, exchange: RelayedExchange) -> WireResponse:
        """Send a batch; once more if its connection is lost: servers drop it after a form that they cannot read."""
        try:
            return await self.send(request, wire, exchange)
        except HttpError:
            return await self.send(request, wire, exchange)

    def _learn(self, name: str, form: Dialect, *, is_first: bool) -> None:
        if name in BATCH_OPERATIONS:
            self.upstream.learn_form(name, form)
            is_first = is_first or not form.is_fixed
        if not is_first:
            self._accepted[name] = form

    async def send(self, request: ClientRequest, wire: WireRequest, exchange: RelayedExchange) -> WireResponse:
        """Send a request for a client; a timeout becomes a 502.

        Raises:
            HttpError: the upstream does not respond.
        """
        exchange.upstream_requests += 1
        seconds = read_timeout_s(request.headers) + len(wire.content or b"") / UPLOAD_BYTES_PER_S
        try:
            name = request.operation.name
            return await self.upstream.send(
                wire, traffic_of(name), seconds, may_redirect=name == "get_checkpoint_archive_url"
            )
        except UpstreamTimeout as error:
            raise HttpError(502, f"tinkerwire gateway: {wire.method} {wire.path}: {error} from the upstream") from None

    async def call(
        self, request: ClientRequest, call: Call[T], exchange: RelayedExchange, *, idempotency_key: str | None = None
    ) -> T:
        """Send a call that a step of an emulation needs, and return its result.

        Args:
            request: the client's request.
            call: the call.
            exchange: what is recorded for the trace.
            idempotency_key: its key; by default one that is derived from that of the client's request.

        Raises:
            Refused: the upstream responds with an error.
            HttpError: the upstream lacks the call, gives no response, or one that does not fit the contract.
        """
        dialect = await self.upstream.dialect(request.headers)
        headers = shared_headers(request.headers)
        key = idempotency_key or request.headers.get("x-idempotency-key")
        name = call.operation.name
        if key is not None and call.operation.method != "GET":
            headers["x-idempotency-key"] = f"{key}-{name}"

        def make_request(form: Dialect) -> WireRequest:
            encoded = codec.encode(attrs.evolve(call, body=adapt_body(call.body, form)), form)
            return attrs.evolve(encoded, headers={**headers, WIRE_HEADER: form.version_range, **encoded.headers})

        response = await self._send_in_forms(request, name, make_request, dialect, exchange)
        if response.status >= 300:
            raise Refused(response)
        try:
            return call.parse(response, default_converter(), self.upstream.base_url)
        except TinkerError as error:
            raise HttpError(502, f"tinkerwire gateway: the upstream's response does not fit: {error}") from None

    def require(self, call: Call[Any], dialect: Dialect) -> None:
        """Check that a call can be expressed in the dialect of the upstream, before what precedes it is done.

        Raises:
            HttpError: the upstream lacks the call, or what it asks for.
        """
        try:
            codec.encode(attrs.evolve(call, body=adapt_body(call.body, dialect)), dialect)
        except (DialectError, TypeError, ValueError, OverflowError) as error:
            raise self.refusal(error, dialect) from None

    def refusal(self, error: Exception, dialect: Dialect) -> HttpError:
        """Create the error of a request that the upstream cannot express; it names the feature and the upstream."""
        if isinstance(error, DialectError):
            status = 404 if error.what.startswith("the call ") else 400
            return self.lacks(error.what.removeprefix("the call "), dialect, _reason(error), status)
        return HttpError(400, f"tinkerwire gateway: the request cannot be sent to {self.upstream.base_url}: {error}")

    def lacks(self, feature: str, dialect: Dialect, reason: str = "", status: int = 404) -> HttpError:
        """Create the error of a feature that the upstream does not have."""
        server = f"the server at {self.upstream.base_url} (wire {dialect.version_range.replace('-', ' to ')})"
        return HttpError(status, f"tinkerwire gateway: {server} has no {feature}{reason and f': {reason}'}")

    def _as_it_came(self, request: ClientRequest, dialect: Dialect) -> WireRequest | None:
        """Return the client's own bytes if they mean the same to the upstream; None if they must be translated."""
        name, headers = request.operation.name, request.headers
        # Reading the body reports an encoding that nobody knows.
        if content_encoding(headers) not in ("", *ENCODINGS) or not request.is_certain or self._names_alias(request):
            return None
        if media_type(headers) == PROTOBUF:
            if not has_same_protobuf(request.front.version, dialect):
                return None
            return _decompressed(request, keeps_zstd=dialect.config.proto_compress_fwdbwd)
        content = request.content
        compared = content if request.names_version or len(content) >= MIN_SCANNED_BYTES else None
        if not has_same_json(name, request.front.version, dialect, compared):
            return None
        return _decompressed(request, keeps_zstd=False)

    def _narrow(self, operation: str, dialect: Dialect) -> tuple[Dialect, ...]:
        """Return the dialects to try: strict servers reject fields that their version lacks, or miss some."""
        if dialect.is_fixed:
            return (dialect,)
        bases = dialect.forms(operation)
        narrowed = (
            attrs.evolve(base, min_version=end, max_version=end) for base in bases for end in _ends(operation, base)
        )
        forms = (*bases, *narrowed)
        accepted = self._accepted.get(operation)
        return forms if accepted not in forms else (accepted, *forms)

    def resolve_model(self, model_id: str) -> str:
        """Return the upstream's id of a model that the client may know under another id."""
        return self.memory.get(kinds.MODEL, model_id) or model_id

    def _names_alias(self, request: ClientRequest) -> bool:
        """Return whether a request may name a model by an id that the upstream does not know."""
        if not self.memory.has_any(kinds.MODEL):
            return False
        is_in_path = any(self.resolve_model(value) != value for value in request.path.values())
        return is_in_path or MODEL_ID_PART in request.content

    def _resolve_body(self, body: Any) -> Any:
        model_id = getattr(body, "model_id", None)
        known = None if model_id is None else self.memory.get(kinds.MODEL, model_id)
        return body if known is None else attrs.evolve(body, model_id=known)

    def _remember(self, request: ClientRequest, response: WireResponse) -> None:
        if response.status >= 300 or request.operation.name not in RESULT_TYPES:
            return
        request_id = json_object(response.content).get("request_id")
        if isinstance(request_id, str):
            self.memory.put(kinds.FUTURE, request_id, request.operation.name)


def batch_operation(body: Any) -> str | None:
    """Return the operation of a batch; as protobuf, both operations are one, and a field distinguishes them."""
    if isinstance(body, models.ForwardRequest):
        return "forward"
    return "forward_backward" if isinstance(body, models.ForwardBackwardRequest) else None


def _decompressed(request: ClientRequest, *, keeps_zstd: bool) -> WireRequest:
    """Return a request as it came, but without a compression that the upstream may not know."""
    wire = request.wire
    if "content-encoding" not in wire.headers or (keeps_zstd and content_encoding(wire.headers) == ZSTD):
        return wire
    headers = {name: value for name, value in wire.headers.items() if name != "content-encoding"}
    return attrs.evolve(wire, headers=headers, content=request.content)


def _ends(operation: str, form: Dialect) -> tuple[str, ...]:
    """Return the versions of a range in which a request may differ; a batch is valid from the oldest one on."""
    if operation not in BATCH_OPERATIONS:
        since = (OPERATION_VERSIONS.get(operation) or (None, None))[0] or form.min_version
        return form.max_version, max(form.min_version, since, key=parse_version)
    if operation not in form.protobuf_operations:
        return (form.min_version,)
    return (max(form.min_version, PROTOBUF_SINCE, key=parse_version),)


def _reason(error: DialectError) -> str:
    """Return the versions that have what an upstream lacks, or else the text of the error."""
    if error.since is None:
        return str(error)
    until = "" if error.until is None else f" to before {error.until}"
    return f"it exists from {error.since}{until or ' on'}; omit it, or use a server of such a version"


def read_timeout_s(headers: Mapping[str, str]) -> float:
    """Return the time for which the client waits for a response."""
    try:
        seconds = TIMEOUT_SHARE * float(headers.get("x-stainless-read-timeout", ""))
    except ValueError:
        return RELAY_TIMEOUT_S
    return min(seconds, MAX_TIMEOUT_S) if seconds > 0 else RELAY_TIMEOUT_S


def json_headers(request: ClientRequest) -> dict[str, str]:
    """Return the client's headers for a request whose body is JSON."""
    headers = {name: value for name, value in request.headers.items() if name not in CONTENT_HEADERS}
    return {**headers, "content-type": JSON}
