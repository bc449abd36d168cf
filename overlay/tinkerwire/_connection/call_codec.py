"""Calls as requests, and their results from responses."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse, default_converter
from tinkerwire_base.errors import APIResponseValidationError, APIStatusError
from tinkerwire_generated import models

from .._wire import codec
from .._wire.dialect import Dialect
from .._wire.server_futures import ImmediateResult, Submission, deferred_result, has_immediate_result, result_type
from .dialect_resolver import DialectResolver

T = TypeVar("T")
UNSUPPORTED_STATUSES = (404, 405, 415, 422)
"""Statuses that a server may give for a call or a field that its wire version does not have."""
NO_HEADERS: Mapping[str, str] = {}
WIRE_HEADER = "x-tinkerwire-wire"
"""Header with the wire version of a request, or the range of versions that the server may support."""


class CallCodec:
    """Encodes the calls of one connection, and reads the responses to them.

    Args:
        base_url: the address of the server, for errors.
        headers: headers of every request.
        dialects: holds the dialect in use, for errors.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], dialects: DialectResolver) -> None:
        self._base_url = base_url
        self._headers = headers
        self._dialects = dialects
        self._key_prefix = f"tinkerwire-{uuid.uuid4()}"
        self._key_numbers = itertools.count(1)

    def encode(self, call: Call[Any], dialect: Dialect, headers: Mapping[str, str] = NO_HEADERS) -> WireRequest:
        """Encode a call in a dialect, with a new idempotency key and all headers except for the credential."""
        request = codec.encode(call, dialect)
        merged = {**self._headers, WIRE_HEADER: dialect.version_range, **request.headers, **headers}
        if request.method != "GET":
            merged["x-idempotency-key"] = f"{self._key_prefix}-{next(self._key_numbers)}"
        return attrs.evolve(request, headers=merged)

    def reader(self, call: Call[T], request: WireRequest) -> Callable[[WireResponse], T]:
        """Return a function that returns the result in a response, or raises its error.

        For a future in place of the result it raises DeferredResult; :meth:`Connection.send` then polls.
        """

        def read(response: WireResponse) -> T:
            deferred = deferred_result(call, response)
            if deferred is not None:
                raise deferred
            return self._parse(call, request, response)

        return read

    def submission_reader(
        self, call: Call[models.UntypedAPIFuture], request: WireRequest
    ) -> Callable[[WireResponse], Submission]:
        """Return the reader of responses to an operation: a future, or the result if the server returns it at once."""

        def read(response: WireResponse) -> Submission:
            try:
                submitted = self._parse(call, request, response)
            except APIResponseValidationError as error:
                if has_immediate_result(call, response):
                    return ImmediateResult(response)
                kind = result_type(call.operation.name).__name__
                error.message = f"{error.message}; expected a request_id, or a {kind}"
                error.args = (error.message,)
                raise
            # Some servers put an id into every response.
            if submitted.extra_fields and has_immediate_result(call, response):
                return ImmediateResult(response)
            return submitted

        return read

    def _parse(self, call: Call[T], request: WireRequest, response: WireResponse) -> T:
        try:
            return call.parse(response, default_converter(), self._base_url + request.path)
        except APIStatusError as error:
            dialect = self._dialects.current
            if error.status_code in UNSUPPORTED_STATUSES and dialect is not None:
                error.dialect = dialect
                error.message = f"{error.message}; the request was encoded for {dialect}"
                error.args = (error.message,)
            raise
