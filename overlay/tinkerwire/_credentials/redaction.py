"""Removes secrets from errors, log lines and events."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import attrs

from tinkerwire_base.call import WireResponse
from tinkerwire_base.errors import ResponseInfo

from .secret import Secret

SHOWN = "***"
SHORTEST = 6
"""Shorter values do not count as secrets; removing them would make texts unreadable."""
REMEMBERED = 16
"""Of secrets that change, the latest so many are looked for."""


class Redaction:
    """Secrets of one client, and their removal from texts."""

    def __init__(self) -> None:
        self._secrets: deque[Secret] = deque(maxlen=REMEMBERED)
        self._lasting: list[Secret] = []

    def add(self, secret: Secret, *, is_lasting: bool = False) -> None:
        """Remove this secret as well, for the life of the client if it is lasting."""
        if len(secret.reveal()) >= SHORTEST and not any(secret is each for each in (*self._lasting, *self._secrets)):
            (self._lasting if is_lasting else self._secrets).append(secret)

    def redact_text(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in (*self._lasting, *self._secrets):
            value = secret.reveal()
            # Bodies are JSON, where some characters are escaped; the rest of the time the two forms are one.
            for form in {value, json.dumps(value)[1:-1]}:
                if form in text:
                    text = text.replace(form, SHOWN)
        return text

    def redact_response(self, answer: WireResponse) -> WireResponse:
        """Return an error response without the secrets; results stay unchanged."""
        if answer.status < 300:
            return answer
        headers = {name: self.redact_text(value) for name, value in answer.headers.items()}
        # As latin-1, which keeps every byte, also of invalid UTF-8.
        content = self.redact_text(answer.content.decode("latin-1")).encode("latin-1")
        return attrs.evolve(answer, headers=headers, content=content)

    def redact_error(self, error: BaseException) -> None:
        """Remove the secrets from an exception, its attributes, and its causes."""
        seen: set[int] = set()
        left: list[BaseException | None] = [error]
        while left:
            each = left.pop()
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            each.args = tuple(self.redact_value(part) for part in each.args)
            for name, value in vars(each).items():
                each.__dict__[name] = self.redact_value(value)
            left += (each.__cause__, each.__context__)

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
