"""Removes keys and tokens from outcomes, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from tinkerwire_base.call import PROTOBUF

from ..._credentials.key_text import KEY_TEXT
from ..._credentials.redaction import PLACEHOLDER, Redaction
from ..._credentials.secret import Secret
from ..._credentials.shareable_headers import SECRET_NAMES
from ..exchange import Exchange
from ..outcome import Outcome

PLAIN_HEADERS = ("x-idempotency-key",)
"""Headers without a credential in spite of their names."""


class ReportRedaction:
    """Removes known keys, and text that looks like one.

    Args:
        secrets: the keys and tokens that the run used.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._known = Redaction()
        for secret in secrets:
            self._known.add(Secret(secret), is_lasting=True)

    def redact_outcome(self, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets in its texts and in its exchange."""
        exchange, submission = outcome.exchange, outcome.submission
        return attrs.evolve(
            outcome,
            expected=self.redact_text(outcome.expected),
            received=self.redact_text(outcome.received),
            reason=self.redact_text(outcome.reason),
            parts=tuple((self.redact_text(name), self.redact_text(reason)) for name, reason in outcome.parts),
            exchange=None if exchange is None else self._redact_exchange(exchange),
            submission=None if submission is None else self._redact_exchange(submission),
        )

    def _redact_exchange(self, exchange: Exchange) -> Exchange:
        request, response = exchange.request, exchange.response
        query = tuple((name, self.redact_text(value)) for name, value in request.query)
        request = attrs.evolve(
            request,
            query=query,
            headers=self._redact_headers(request.headers),
            content=None if request.content is None else self._redact_content(request.content, request.headers),
        )
        if response is not None:
            response = attrs.evolve(
                response,
                headers=self._redact_headers(response.headers),
                content=self._redact_content(response.content, response.headers),
            )
        return attrs.evolve(
            exchange,
            request=request,
            response=response,
            url=self.redact_text(exchange.url),
            error=self.redact_text(exchange.error),
        )

    def redact_text(self, text: str) -> str:
        """Return a text without secrets."""
        return KEY_TEXT.sub(PLACEHOLDER, self._known.redact_text(text))

    def _redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: PLACEHOLDER if _is_secret(name) else self.redact_text(value) for name, value in headers.items()}

    def _redact_content(self, content: bytes, headers: Mapping[str, str]) -> bytes:
        # latin-1 keeps every byte. Binary data may look like a key by chance, so only known keys are removed.
        text = content.decode("latin-1")
        is_binary = headers.get("content-type", "").startswith(PROTOBUF) or "\0" in text
        return (self._known.redact_text(text) if is_binary else self.redact_text(text)).encode("latin-1")


def _is_secret(name: str) -> bool:
    lower = name.lower()
    return lower not in PLAIN_HEADERS and any(part in lower for part in SECRET_NAMES)
