"""Parts of a content, for downloads that resume (RFC 9110, section 14)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from tinkerwire_base.call import WireResponse

BYTE_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def respond_with_range(content: bytes, headers: Mapping[str, str]) -> WireResponse:
    """Return the part of a content that the Range header names, or all of it.

    A client that resumes sends the ETag in If-Range, and gets all of the content if it has changed. A header with
    several ranges counts as none.
    """
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    answer = {"content-type": "application/octet-stream", "accept-ranges": "bytes", "etag": etag}
    match = BYTE_RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or not any(match.groups()) or headers.get("if-range", etag) != etag:
        return WireResponse(status=200, headers=answer, content=content)
    first, last = match.groups()
    if first:
        start, stop = int(first), min(int(last) + 1, len(content)) if last else len(content)
    else:
        start, stop = max(0, len(content) - int(last)), len(content)
    if start >= stop:
        return WireResponse(status=416, headers={**answer, "content-range": f"bytes */{len(content)}"})
    answer["content-range"] = f"bytes {start}-{stop - 1}/{len(content)}"
    return WireResponse(status=206, headers=answer, content=content[start:stop])
