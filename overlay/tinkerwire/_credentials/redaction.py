"""Removes secrets from errors, log lines and events."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import attrs

from tinkerwire_base.call import WireResponse
from tinkerwire_base.errors import ResponseInfo

from .secret import Secret

PLACEHOLDER = "***"
MIN_LENGTH = 6
"""Shorter values do not count as secrets; removing them would make texts unreadable."""
MAX_CHANGING_SECRETS = 16
"""Number of the latest changing secrets that are removed."""


class Redaction:
    """Secrets of one client, and their removal from texts."""

    def __init__(self) -> None:
        self._secrets: deque[Secret] = deque(maxlen=MAX_CHANGING_SECRETS)
        self._lasting: list[Secret] = []

    def add(self, secret: Secret, *, is_lasting: bool = False) -> None:
        """Add a secret to remove; a lasting one until the client is closed."""
        if len(secret.reveal()) >= MIN_LENGTH and not any(
            secret is known_secret for known_secret in (*self._lasting, *self._secrets)
        ):
            (self._lasting if is_lasting else self._secrets).append(secret)

    def redact_text(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in (*self._lasting, *self._secrets):
            value = secret.reveal()
            # JSON bodies escape some characters; without such characters, both forms are equal.
            for form in {value, json.dumps(value)[1:-1]}:
                if form in text:
                    text = text.replace(form, PLACEHOLDER)
        return text

    def redact_response(self, response: WireResponse) -> WireResponse:
        """Return an error response without the secrets; results stay unchanged."""
        if response.status < 300:
            return response
        headers = {name: self.redact_text(value) for name, value in response.headers.items()}
        # latin-1 keeps every byte, also of invalid UTF-8.
        content = self.redact_text(response.content.decode("latin-1")).encode("latin-1")
        return attrs.evolve(response, headers=headers, content=content)

    def redact_error(self, error: BaseException) -> None:
        """Remove the secrets from an exception, its attributes, and its causes."""
        visited: set[int] = set()
        pending: list[BaseException | None] = [error]
        while pending:
            current = pending.pop()
            if current is None or id(current) in visited:
                continue
            visited.add(id(current))
            current.args = tuple(self.redact_value(part) for part in current.args)
            for name, value in vars(current).items():
                current.__dict__[name] = self.redact_value(value)
            pending += (current.__cause__, current.__context__)

    def redact_value(self, value: Any) -> Any:
        """Return a value without the secrets: texts, and texts inside JSON values and errors."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_value(key): self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.redact_value(item) for item in value]
        if isinstance(value, ResponseInfo):
            return attrs.evolve(
                value, headers=self.redact_value(dict(value.headers)), text=self.redact_text(value.text)
            )
        return value
