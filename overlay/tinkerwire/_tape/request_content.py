"""Content of requests in a form that can be compared: without what differs between two runs of a program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import attrs
import orjson

from tinkerwire_base.call import PROTOBUF, default_converter
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_generated import models
from tinkerwire_generated.api.sampling.asample import OPERATION as ASAMPLE
from tinkerwire_generated.api.sampling.sample import OPERATION as SAMPLE
from tinkerwire_generated.api.training.forward import OPERATION as FORWARD
from tinkerwire_generated.api.training.forward_backward import OPERATION as FORWARD_BACKWARD

COUNTERS = frozenset({"model_seq_id", "sampling_session_seq_id", "custom_loss_seq_id"})
"""Numbers of things in a session: threads that create them race for the numbers."""
ID_FIELDS = frozenset({"model_id", "sampling_session_id", "session_id"})
"""Fields with ids of the server; clients derive some of these ids from counters, so that no response has them."""
BATCH_PATHS = frozenset({FORWARD.path, FORWARD_BACKWARD.path})
ID = "(id)"
MISSING = "nothing"


@attrs.frozen
class RequestContent:
    """Method, path, query and body of a request, as JSON values."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: Any

    def key(self) -> bytes:
        """Return a digest of the content."""
        return _digest([self.method, self.path, self.query, self.body])

    def batch_key(self) -> bytes | None:
        """Return what the attempts of one batch in all encodings share; None for other requests."""
        is_batch = self.path in BATCH_PATHS and isinstance(self.body, dict) and self.body.get("seq_id") is not None
        return self.key() if is_batch else None

    def without_ids(self, known: Collection[str]) -> tuple[bytes, list[str]]:
        """Return a digest of the content without ids and counters, and the ids in order.

        Args:
            known: ids that may be part of the path.
        """
        found: list[str] = []

        def strip(value: Any, field: str = "") -> Any:
            if field in ID_FIELDS and isinstance(value, str):
                found.append(value)
                return ID
            if isinstance(value, dict):
                return {name: strip(item, name) for name, item in sorted(value.items()) if name not in COUNTERS}
            return value

        parts = [strip(part, "session_id" if part in known else "") for part in self.path.split("/")]
        return _digest([self.method, parts, self.query, strip(self.body)]), found

    def translate(self, names: Mapping[str, str]) -> RequestContent:
        """Return the content with other ids."""
        if not names:
            return self

        def replace(value: Any, field: str = "") -> Any:
            if field in ID_FIELDS and isinstance(value, str):
                return names.get(value, value)
            if isinstance(value, dict):
                return {name: replace(item, name) for name, item in value.items()}
            return value

        path = "/".join(names.get(part, part) for part in self.path.split("/"))
        return attrs.evolve(self, path=path, body=replace(self.body))


def read_content(
    method: str, path: str, query: tuple[tuple[str, str], ...], headers: Mapping[str, str], content: bytes | None
) -> RequestContent:
    """Return the content of a request, without the version of the client and the numbers of samples.

    The content does not depend on the encoding: a client that finds out which one the server accepts sends some
    batches as protobuf and others as JSON, and in another run possibly not the same ones.
    """
    plain = None if content is None else _decompress(headers, content)
    if plain is None:
        return RequestContent(method, path, query, content and {"compressed": hashlib.sha256(content).hexdigest()})
    if PROTOBUF in headers.get("content-type", ""):
        path, body = _read_protobuf(path, plain)
    else:
        body = _read_json(plain)
    return RequestContent(method, path, query, _without_changing_fields(path, body))


def _without_changing_fields(path: str, body: Any) -> Any:
    if isinstance(body, dict):
        omitted = {"sdk_version"} | ({"seq_id"} if path in (ASAMPLE.path, SAMPLE.path) else set())
        return {name: value for name, value in body.items() if name not in omitted}
    return body


def find_first_difference(recorded: Any, current: Any, place: str = "") -> tuple[str, Any, Any] | None:
    """Return place, recorded and current value of the first difference of two JSON values; None if they are equal."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        for name in [*recorded, *(name for name in current if name not in recorded)]:
            inner = f"{place}.{name}" if place else name
            found = find_first_difference(recorded.get(name, MISSING), current.get(name, MISSING), inner)
            if found:
                return found
        return None
    if isinstance(recorded, list) and isinstance(current, list):
        for number, (before, now) in enumerate(zip(recorded, current, strict=False)):
            found = find_first_difference(before, now, f"{place}[{number}]")
            if found:
                return found
        if len(recorded) != len(current):
            return place, f"{len(recorded)} items", f"{len(current)} items"
        return None
    return None if recorded == current and type(recorded) is type(current) else (place, recorded, current)


def list_ids(value: Any) -> Iterator[str]:
    """Yield the ids in a request or response."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ID_FIELDS and isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from list_ids(item)


def _decompress(headers: Mapping[str, str], content: bytes) -> bytes | None:
    """Return a body without its content encoding; None if no package can decompress it."""
    if headers.get("content-encoding") != "zstd":
        return content
    decompress = _find_decompressor()
    return None if decompress is None else decompress(content)


def _read_json(content: bytes) -> Any:
    with suppress(ValueError):
        return parse_json(content)
    return {"bytes": hashlib.sha256(content).hexdigest()}


def _read_protobuf(path: str, content: bytes) -> tuple[str, Any]:
    """Return path and body of the same request as JSON."""
    from .._wire.protobuf_forms import REQUEST, message_codec  # noqa: PLC0415
    from .._wire.protobuf_messages import parse_message  # noqa: PLC0415

    with suppress(Exception):  # what has no form in JSON is compared as it is
        message = parse_message(REQUEST, content)
        kind = models.ForwardRequest if message.forward_only else models.ForwardBackwardRequest
        body = parse_json(default_converter().encode(message_codec().read(REQUEST, message, kind)))
        return (FORWARD if message.forward_only else FORWARD_BACKWARD).path, body
    return path, {"bytes": hashlib.sha256(content).hexdigest()}


@cache
def _find_decompressor() -> Callable[[bytes], bytes] | None:
    with suppress(ImportError):  # Python 3.14
        decompress: Callable[[bytes], bytes] = import_module("compression.zstd").decompress
        return decompress
    with suppress(ImportError):
        import zstandard  # noqa: PLC0415

        return lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return None


def _digest(value: Any) -> bytes:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()
