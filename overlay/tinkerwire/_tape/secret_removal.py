"""Removal of secrets from requests and responses before they are recorded or compared.

A secret is replaced by asterisks of its length, so that protobuf messages stay whole.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping

from .._credentials.redaction import MIN_LENGTH
from .._credentials.secret import Secret
from .._credentials.shareable_headers import is_shareable

KEPT_REQUEST_HEADERS = ("accept", "content-encoding", "content-type", "x-idempotency-key", "x-tinker-request-type")
KEPT_RESPONSE_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
MAX_SECRETS = 64
_SECRET_FIELD = re.compile(
    rb'("(?:\w*_)?(?:jwt|api_key|secret|password|access_token|credential)"\s*:\s*")((?:[^"\\]|\\.)*)"'
)
_SECRET_TEXT = re.compile(rb"eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?|\btml-[\w-]{6,}|://[^/\s\"@]*:[^/\s\"@]*@")
_QUERY = re.compile(rb'(https?://[^\s"?]+\?)([^\s"]+)')
"""Query of a URL: that of a stored file holds a signature."""


class SecretRemoval:
    """Removes the credentials that requests carried, and whatever looks like one."""

    def __init__(self) -> None:
        self._secrets: deque[Secret] = deque(maxlen=MAX_SECRETS)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Remember the values of the headers that may hold a secret."""
        for name, value in headers.items():
            if name.lower() in (*KEPT_REQUEST_HEADERS, "user-agent") or len(value) < MIN_LENGTH:
                continue
            if not is_shareable(name, value) and all(value != secret.reveal() for secret in self._secrets):
                self._secrets.append(Secret(value))

    def clean(self, content: bytes) -> bytes:
        """Return a body without secrets, of the same length."""
        for secret in self._secrets:
            value = secret.reveal()
            for form in {value, json.dumps(value)[1:-1]}:
                encoded = form.encode()
                content = content.replace(encoded, b"*" * len(encoded)) if encoded in content else content
        content = _SECRET_FIELD.sub(lambda match: match[1] + b"*" * len(match[2]) + b'"', content)
        content = _SECRET_TEXT.sub(lambda match: b"*" * len(match[0]), content)
        return _QUERY.sub(lambda match: match[1] + b"*" * len(match[2]), content)

    def clean_text(self, text: str) -> str:
        """Return a text without secrets."""
        return self.clean(text.encode()).decode()


def keep_headers(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the headers that a recording holds."""
    return {name.lower(): value for name, value in headers.items() if name.lower() in names}
