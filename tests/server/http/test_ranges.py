"""Tests of parts of a content."""

from __future__ import annotations

import pytest

from tinkerwire._server.http.ranges import respond_with_range

CONTENT = b"0123456789"
ETAG = respond_with_range(CONTENT, {}).headers["etag"]


@pytest.mark.parametrize(
    ("headers", "status", "content", "content_range"),
    [
        ({}, 200, CONTENT, None),
        ({"range": "bytes=3-"}, 206, b"3456789", "bytes 3-9/10"),
        ({"range": "bytes=3-4"}, 206, b"34", "bytes 3-4/10"),
        ({"range": "bytes=3-99"}, 206, b"3456789", "bytes 3-9/10"),
        ({"range": "bytes=-2"}, 206, b"89", "bytes 8-9/10"),
        ({"range": "bytes=-99"}, 206, CONTENT, "bytes 0-9/10"),
        ({"range": "bytes=3-", "if-range": ETAG}, 206, b"3456789", "bytes 3-9/10"),
        ({"range": "bytes=3-", "if-range": '"other"'}, 200, CONTENT, None),
        ({"range": "bytes=10-"}, 416, b"", "bytes */10"),
        ({"range": "bytes=5-4"}, 416, b"", "bytes */10"),
        ({"range": "bytes=-"}, 200, CONTENT, None),
        ({"range": "bytes=1-2,4-5"}, 200, CONTENT, None),
        ({"range": "lines=1-2"}, 200, CONTENT, None),
    ],
)
def test_range_is_a_part_of_the_content(
    headers: dict[str, str], status: int, content: bytes, content_range: str | None
) -> None:
    response = respond_with_range(CONTENT, headers)
    assert (response.status, response.content) == (status, content)
    assert response.headers.get("content-range") == content_range
    assert response.headers["etag"] == ETAG
