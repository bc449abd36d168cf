"""Takes secrets out of what servers and transports say, before it becomes an error, a log line or an event."""

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
"""Shorter values are no secrets, and taking them out would leave no text readable."""
REMEMBERED = 16
"""Of secrets that change, the latest so many are looked for."""


class Redaction:
    """Knows the secrets of one client."""

    def __init__(self) -> None:
        self._secrets: deque[Secret] = deque(maxlen=REMEMBERED)
        self._lasting: list[Secret] = []

    def add(self, secret: Secret, *, is_lasting: bool = False) -> None:
        """Look for this one, too; for as long as the client lives if it is lasting."""
        if len(secret.reveal()) >= SHORTEST and not any(secret is each for each in (*self._lasting, *self._secrets)):
            (self._lasting if is_lasting else self._secrets).append(secret)

    def redact_text(self, text: str) -> str:
        """A text without the secrets."""
        for secret in (*self._lasting, *self._secrets):
            value = secret.reveal()
            # Bodies are JSON, where some characters are escaped; the rest of the time the two forms are one.
            for form in {value, json.dumps(value)[1:-1]}:
                if form in text:
                    text = text.replace(form, SHOWN)
        return text

    def redact_response(self, answer: WireResponse) -> WireResponse:
        """An error answer without the secrets; results are left as they are."""
        if answer.status < 300:
            return answer
        headers = {name: self.redact_text(value) for name, value in answer.headers.items()}
        # Byte by byte, so that what is no UTF-8 stays what it is.
        content = self.redact_text(answer.content.decode("latin-1")).encode("latin-1")
        return attrs.evolve(answer, headers=headers, content=content)

    def redact_error(self, error: BaseException) -> None:
        """Take the secrets out of an exception, its parts, and those that it came from."""
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
        """A value without the secrets: texts, and what of JSON or of an error has texts in it."""
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
