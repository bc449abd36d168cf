"""Mutations of HTTP responses and of arguments, each drawn from a random generator with a seed."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import attrs

MAX_DEPTH = 100_000
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 1e39, -1e308, 0.5, math.nan, math.inf, -math.inf)
ODD_TEXTS = ("", " ", "\x00", "\ud800", "a/../b", "tinker://", "tinker://x/weights/y", "é" * 300, "9" * 5000, "%zz")
RETRY_AFTER = (
    *("0", "-1", "nan", "inf", "1e400", "9" * 500, "soon", "Thu, 01 Jan 1970 00:00:00 GMT"),
    *("Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359", "Fri, 31 Feb 2026 99:99:99 GMT", ","),
    *("1 Jan 99999999999999999999 00:00:00", "1 Jan 2026 00:00:00 +99999999999999999999", "0.001", "1_0", "\xb2"),
)
CONTENT_TYPES = ("text/html", "application/json; charset=utf-16", "application/x-protobuf", "", "\xff", "a" * 5000)
ENCODINGS = ("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "compress", "\xff")
HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "content-type", "content-encoding", "location", "date")
STATUSES = (100, 101, 103, 199, 204, 206, 299, 300, 301, 304, 307, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413)
MORE_STATUSES = (415, 418, 421, 422, 429, 451, 499, 500, 501, 502, 503, 504, 520, 599, 600, 777, 999)


@attrs.define
class Reply:
    """An HTTP response before it is written to the socket.

    Args:
        is_whole: whether all of the body is sent.
    """

    status: str
    headers: list[tuple[str, str]]
    content: bytes
    is_whole: bool = True

    def encode(self) -> bytes:
        """Return the bytes of the response."""
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self.headers)]
        sent = self.content if self.is_whole else self.content[: len(self.content) // 2]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + sent


def draw_unexpected_value(rng: Random) -> Any:
    """Draw a value that few places expect."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: rng.choice((True, False)),
        lambda: rng.choice(ODD_NUMBERS),
        lambda: rng.choice(ODD_NUMBERS),
        lambda: rng.choice(ODD_TEXTS),
        lambda: rng.choice(ODD_TEXTS),
        lambda: rng.choice(([], {}, [None], [[]], {"": 1}, [2**63], [1e39], ["\ud800"], {"\ud800": "\ud800"})),
        lambda: nest(rng.choice((3, 200, 1500, 20_000))),
        lambda: {rng.choice(("error", "detail", "type", "request_id", "status", "category")): rng.choice(ODD_TEXTS)},
    )
    return rng.choice(kinds)()


def draw_unexpected_argument(rng: Random) -> Any:
    """Draw an argument that few functions expect."""
    kinds: tuple[Callable[[], Any], ...] = (
        object,
        lambda: b"\xff",
        lambda: 1j,
        lambda: datetime(1, 1, 1),
        lambda: range(3),
        lambda: len,
        lambda: draw_unexpected_value(rng),
        lambda: draw_unexpected_value(rng),
        lambda: draw_unexpected_value(rng),
    )
    return rng.choice(kinds)()


def nest(depth: int) -> Any:
    """Make lists and dicts within each other."""
    value: Any = []
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def mutate_reply(rng: Random, reply: Reply) -> Reply | None:
    """Change a response in one to three ways; None for a connection that is dropped."""
    if rng.random() < 0.03:
        return None
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(
            (
                _mutate_structure,
                _mutate_structure,
                _mutate_structure,
                _mutate_bytes,
                _mutate_bytes,
                _mutate_header,
                _mutate_header,
                _mutate_status,
                _mutate_framing,
            )
        )(rng, reply)
    return reply


def _mutate_structure(rng: Random, reply: Reply) -> None:
    try:
        value = json.loads(reply.content)
    except (ValueError, RecursionError):
        _mutate_bytes(rng, reply)
        return
    place = rng.choice(list(_list_places(value, [])))
    changed = _replace_value(rng, value, place)
    try:
        text = json.dumps(changed)
    except RecursionError:
        text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    if rng.random() < 0.1 and text.startswith("{") and len(text) > 2:
        text = "{" + text[1:-1] + "," + text[1:]  # every key twice
    _replace_content(reply, text.encode())


def _list_places(value: Any, path: list[Any]) -> Any:
    yield path
    if len(path) < 12:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, part in list(items)[:50]:
            yield from _list_places(part, [*path, key])


def _replace_value(rng: Random, value: Any, place: list[Any]) -> Any:
    if not place:
        return draw_unexpected_value(rng)
    parent = value
    for key in place[:-1]:
        parent = parent[key]
    key, kind = place[-1], rng.random()
    if kind < 0.2:
        del parent[key]
    elif kind < 0.3 and isinstance(parent, list):
        parent.extend(parent[key:])
        rng.shuffle(parent)
    elif kind < 0.4 and isinstance(parent, dict):
        parent[rng.choice(("error", "detail", "type", "status", "request_id", "\ud800"))] = draw_unexpected_value(rng)
    else:
        parent[key] = draw_unexpected_value(rng)
    return value


def _mutate_bytes(rng: Random, reply: Reply) -> None:
    content = reply.content
    opening = rng.choice((b"[", b'{"a":', b'[{"detail":'))
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: content[: rng.randrange(len(content) + 1)],
        lambda: content + content,
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: opening * MAX_DEPTH,
        lambda: b'{"detail":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        lambda: b"[" * 990 + b"]" * 990,
        lambda: b"NaN",
        lambda: b"1" * 5000,
        lambda: b"1e400",
        lambda: b"<html>",
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: _change_bytes(rng, content),
        lambda: _change_bytes(rng, content),
        lambda: _change_bytes(rng, content),
    )
    _replace_content(reply, rng.choice(choices)())


def _change_bytes(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 20))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _mutate_header(rng: Random, reply: Reply) -> None:
    name = rng.choice(HEADERS)
    values = {
        "retry-after": RETRY_AFTER,
        "retry-after-ms": RETRY_AFTER,
        "x-should-retry": ("true", "false", "TRUE", "", "\xff"),
        "content-type": CONTENT_TYPES,
        "content-encoding": ENCODINGS,
    }.get(name, tuple(text for text in ODD_TEXTS if text.isprintable()))
    value = rng.choice(values)
    if name == "content-encoding" and rng.random() < 0.5:
        _replace_content(reply, rng.choice((gzip.compress, zlib.compress))(reply.content))
    if rng.random() < 0.8:
        reply.headers = [header for header in reply.headers if header[0] != name]
    reply.headers.append((name, value))
    if name.startswith(("retry", "x-should")) and rng.random() < 0.7:
        reply.status = rng.choice(("429 x", "503 x", "500 x", "408 x", "409 x"))


def _mutate_status(rng: Random, reply: Reply) -> None:
    number = rng.choice(STATUSES + MORE_STATUSES)
    reply.status = rng.choice((f"{number} x", f"{number}", f"{number} \xff", f"{rng.randrange(100, 1000)} x"))
    if rng.random() < 0.5:
        text = rng.choice(
            (
                b'{"detail":"no"}',
                b'{"detail":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
                b"[" * MAX_DEPTH,
                b"\xff",
                b"",
            )
        )
        _replace_content(reply, text)


def _mutate_framing(rng: Random, reply: Reply) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        reply.status = rng.choice(("abc", "", "99999999999 x", "-1 x", "20"))
    elif kind == 1:
        length = rng.choice(("0", "1", str(len(reply.content) + 5), "-1", "abc", "9" * 30))
        reply.headers = [
            ("content-length", length) if header[0] == "content-length" else header for header in reply.headers
        ]
    elif kind == 2:
        reply.headers.append(("transfer-encoding", "chunked"))
    elif kind == 3:
        reply.headers.append(("x-long", "a" * rng.choice((9000, 70_000))))
    elif kind == 4:
        reply.is_whole = False
    else:
        reply.headers.append((rng.choice(("x y", "", "\xff", "content-length")), "1"))


def _replace_content(reply: Reply, content: bytes) -> None:
    reply.content = content
    reply.headers = [
        ("content-length", str(len(content))) if header[0] == "content-length" else header for header in reply.headers
    ]
