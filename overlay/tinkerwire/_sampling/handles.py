"""Handles: a sampling client as text, for another process.

A handle contains no credential. The process that decodes it finds its own credential, as a ServiceClient there would,
and sends it to the address in the handle: accept handles only from trusted sources.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any

import attrs

from tinkerwire_base.call import default_converter
from tinkerwire_generated import models

from .._connection.retry import RetryConfig
from .._transport.address import is_embedded, resolve_base_url
from .._wire.dialect import Dialect

log = logging.getLogger("tinkerwire")
HANDLE_VERSION = 1
"""Version of the handle format."""
UNSERIALIZABLE = ("retry_if", "retryable_exceptions")
"""Settings of a RetryConfig that are functions or classes, which text cannot contain."""


@attrs.frozen(kw_only=True)
class SamplerHandle:
    """The state of a sampling client that another process needs."""

    base_url: str
    session_id: str
    sampling_session_id: str
    dialect: Dialect
    retry: RetryConfig
    record_stability_info: bool
    headers: Mapping[str, str] = attrs.field(factory=dict)
    """The user's headers, except those that may contain a credential."""
    omitted_headers: tuple[str, ...] = ()
    """Names of the user's headers that may contain a credential."""
    context_length: int | None = None
    """Maximum number of tokens of prompt and sample together; None if the encoding client did not know it."""

    def encode(self) -> str:
        """Return the handle as text that is safe in URLs and command lines.

        Raises:
            ValueError: the server runs in this process only, or ``retry_if`` is set.
        """
        if is_embedded(self.base_url):
            raise ValueError(
                f"a client of base_url={self.base_url!r} cannot be used in another process: its server runs in this "
                "one; start `tinkerwire serve` and give its URL"
            )
        if self.retry.retry_if is not None:
            raise ValueError(
                "a client with RetryConfig.retry_if has no handle, because text cannot contain a function; pickle the "
                "client, or create it with another retry_config"
            )
        dialect = {
            **attrs.asdict(self.dialect, recurse=False),
            "protobuf_operations": sorted(self.dialect.protobuf_operations),
        }
        dialect["config"] = default_converter().unstructure(self.dialect.config)
        state = {
            **attrs.asdict(self, recurse=False),
            "tinkerwire_handle": HANDLE_VERSION,
            "dialect": dialect,
            "retry": attrs.asdict(self.retry, filter=lambda field, _: field.name not in UNSERIALIZABLE),
        }
        return base64.urlsafe_b64encode(json.dumps(state, separators=(",", ":")).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> SamplerHandle:
        """Return the handle that a text encodes.

        Raises:
            ValueError: the text is not a handle of this version.
        """
        try:
            state: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
            version = state.pop("tinkerwire_handle", None)
            if version != HANDLE_VERSION:
                raise ValueError(f"its version must be {HANDLE_VERSION}, got {version!r}")
            dialect = state["dialect"]
            dialect["protobuf_operations"] = frozenset(dialect["protobuf_operations"])
            dialect["config"] = default_converter().structure(dialect["config"], models.ClientConfigResponse)
            state |= {"dialect": Dialect(**dialect), "retry": RetryConfig(**state["retry"])}
            state["headers"] = _require_text_headers(state.get("headers", {}))
            state["omitted_headers"] = tuple(_require_text_headers(dict.fromkeys(state.get("omitted_headers", ()), "")))
            return cls(**{**state, "base_url": resolve_base_url(state["base_url"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"handle: {str(text)[:40]!r} is not a handle from get_sampler_handle of this version: {error}"
            ) from None


def _require_text_headers(headers: dict[str, str]) -> dict[str, str]:
    if not all(isinstance(text, str) for item in headers.items() for text in item):
        raise TypeError("its headers must be text")
    return headers
