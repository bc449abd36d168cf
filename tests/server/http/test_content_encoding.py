"""Bodies that are compressed."""

from __future__ import annotations

import gzip
import zlib

import pytest
import zstandard

from tinkerwire._server.http import content_encoding
from tinkerwire._server.http.content_encoding import decompress
from tinkerwire._server.http.responses import HttpError

BODY = bytes(range(256)) * 400


def _unsized(body: bytes) -> bytes:
    """zstd of a frame that does not say how long it is."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(body) + writer.flush()


@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ("zstd", zstandard.compress(BODY)),
        ("zstd", _unsized(BODY)),
        ("gzip", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("", BODY),
        ("identity", BODY),
    ],
)
def test_the_body_is_as_it_was(encoding: str, sent: bytes) -> None:
    """Whatever way it came."""
    assert decompress(sent, encoding) == BODY


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_what_is_broken_is_400(encoding: str) -> None:
    """Other bytes, no bytes, and bytes that break off."""
    whole = zstandard.compress(BODY) if encoding == "zstd" else gzip.compress(BODY)
    for sent in (b"nonsense", b"", whole[:-3]):
        with pytest.raises(HttpError) as refused:
            decompress(sent, encoding)
        assert refused.value.status == 400


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_body_that_grows_too_large_is_413(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is all in memory."""
    monkeypatch.setattr(content_encoding, "MAX_BODY_BYTES", 1000)
    whole = zstandard.compress(BODY) if encoding == "zstd" else gzip.compress(BODY)
    with pytest.raises(HttpError) as refused:
        decompress(whole, encoding)
    assert refused.value.status == 413
