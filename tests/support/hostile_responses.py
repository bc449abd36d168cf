"""Responses that a client must reject at once, although the server leaves the connection open."""

from __future__ import annotations

HOSTILE = {
    "no HTTP": b"banana\r\n\r\n",
    "unknown version": b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "status of four digits": b"HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\nok",
    "status below 100": b"HTTP/1.1 099 OK\r\ncontent-length: 2\r\n\r\nok",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n"
    b"2\r\nok\r\n0\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
    "length beyond 64 bits": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nok",
    "invalid chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nok",
    "chunk beyond 64 bits": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nok",
    "other protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "endless status line": b"HTTP/1.1 200 " + b"x" * 200_000,
    "endless header": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000,
    "endless interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "endless chunk extension": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"x" * 200_000,
    "endless trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 40_000,
}
