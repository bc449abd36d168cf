"""Tests of compressed bodies."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from tinkerwire._server.http import content_encoding
from tinkerwire._server.http.content_encoding import decompress
from tinkerwire._server.http.responses import HttpError

BODY = bytes(range(256)) * 400


def _compress_without_size(body: bytes) -> bytes:
    """Compress with zstd into a frame without a content size."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(body) + writer.flush()


@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ("zstd", zstandard.compress(BODY)),
        ("zstd", _compress_without_size(BODY)),
        ("gzip", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("", BODY),
        ("identity", BODY),
    ],
)
def test_body_is_decompressed(encoding: str, sent: bytes) -> None:
    """The body is the original one in every encoding."""
    assert decompress(sent, encoding) == BODY


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_broken_body_is_400(encoding: str) -> None:
    """The body has other bytes, no bytes, or a truncated stream."""
    compressed = zstandard.compress(BODY) if encoding == "zstd" else gzip.compress(BODY)
    for sent in (b"nonsense", b"", compressed[:-3]):
        with pytest.raises(HttpError) as rejection:
            decompress(sent, encoding)
        assert rejection.value.status == 400


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "deflate"])
def test_bytes_after_the_body_are_400(encoding: str) -> None:
    """A second body is not dropped silently."""
    compress = {"zstd": zstandard.compress, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    for rest in (b"x", compress(BODY), bytes(content_encoding.ZSTD_PIECE_BYTES * 2)):
        with pytest.raises(HttpError, match=f"{len(rest)} bytes after") as rejection:
            decompress(compress(BODY) + rest, encoding)
        assert rejection.value.status == 400


@pytest.mark.parametrize("encoding", ["zstd", "zstd without size", "gzip", "deflate"])
def test_memory_of_a_bomb_is_bounded(encoding: str) -> None:
    """A body of a few kilobytes would expand to 256 MiB; it never takes more than a part of that."""
    bomb = bytes(2**28)
    sent = {
        "zstd": zstandard.compress,
        "zstd without size": _compress_without_size,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
    }[encoding](bomb)
    del bomb
    tracemalloc.start()
    try:
        with pytest.raises(HttpError) as rejection:
            decompress(sent, encoding.partition(" ")[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rejection.value.status == 413
    assert peak < 2.5 * content_encoding.MAX_BODY_BYTES


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_too_large_decompressed_body_is_413(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before the whole body is in memory."""
    monkeypatch.setattr(content_encoding, "MAX_BODY_BYTES", 1000)
    compressed = zstandard.compress(BODY) if encoding == "zstd" else gzip.compress(BODY)
    with pytest.raises(HttpError) as rejection:
        decompress(compressed, encoding)
    assert rejection.value.status == 413
