"""Request authentication: adds secret headers just before sending, and replaces a rejected credential."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import attrs

from tinkerwire_base.call import ResponseLimits, WireRequest, WireResponse
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.auth.auth_token import OPERATION as AUTH_TOKEN
from tinkerwire_generated.api.auth.client_config import OPERATION as CLIENT_CONFIG

from .redaction import Redaction
from .refreshing import RefreshingCredential
from .secret import Secret, is_sendable
from .sources import Credential, StaticCredential, create_command_credential

KEY_HEADER = "x-api-key"
TRANSPORT_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "expect", "transfer-encoding"}
)
"""Headers of a single request or connection, which cannot be the same for all requests."""
UNEXCHANGED_PATHS = frozenset({CLIENT_CONFIG.path, AUTH_TOKEN.path})
"""Paths of the requests that lead to a token, which are sent without one."""
API_KEY_ISSUER_PREFIX = "passport-"
"""Issuer prefix of tokens that serve as API keys."""
INVALID_TOKEN = 'error="invalid_token"'


class Authorization:
    """Secrets of one client. Used on the loop thread.

    Args:
        credential: credential of the user; None for a server that needs none.
        headers: further headers for every request; each may be a secret.
        exchange: function that exchanges the credential for a token.

    Raises:
        ValueError, TypeError: a header cannot be sent.
    """

    def __init__(
        self,
        credential: Credential | None,
        headers: Mapping[str, str],
        exchange: Callable[[], Coroutine[Any, Any, Secret]],
    ) -> None:
        valid_headers = {name: _check_header(name, value) for name, value in headers.items()}
        self.headers = {name.lower(): Secret(value) for name, value in valid_headers.items()}
        self.redaction = Redaction()
        for name, secret in self.headers.items():
            if name != "user-agent":
                self.redaction.add(secret, is_lasting=True)
        if isinstance(credential, StaticCredential):
            self.redaction.add(credential.secret, is_lasting=True)
        self._credential = credential
        self._fetch_token = exchange
        self._tokens = RefreshingCredential(self._exchange, "the token")
        self._config: models.ClientConfigResponse | None = None

    def select_credential(self, request: WireRequest, config: models.ClientConfigResponse | None) -> Credential | None:
        """Return the credential for a request, on a server with this client/config."""
        is_exchanged = self._is_exchanged(config) and request.path not in UNEXCHANGED_PATHS
        return self._tokens if is_exchanged else self._credential

    async def token(self, config: models.ClientConfigResponse) -> Secret | None:
        """Return the token that identifies the user; None for an API key or no credential.

        Raises:
            TinkerError: the token could not be obtained.
        """
        if self._is_exchanged(config):
            return await self._tokens.get()
        secret = None if self._credential is None else await self._credential.get()
        is_own = secret is not None and (secret.claim("iss") or "").startswith(API_KEY_ISSUER_PREFIX)
        return secret if is_own else None

    def sign(self, request: WireRequest, secret: Secret | None, limits: ResponseLimits) -> WireRequest:
        """Return the request with all its headers and its limits; callers must not keep it."""
        headers = {**{name: header_secret.reveal() for name, header_secret in self.headers.items()}, **request.headers}
        if secret is not None:
            self.redaction.add(secret)
            headers[KEY_HEADER] = secret.reveal()
        return attrs.evolve(request, headers=headers, limits=limits)

    async def retry_credential(self, credential: Credential, rejected: Secret, response: WireResponse) -> Secret | None:
        """Return the credential for another attempt of the same request; None if the rejection is final.

        Raises:
            TinkerError: another credential could not be obtained.
        """
        if response.status != 401:
            return None
        if credential is self._tokens and INVALID_TOKEN not in response.headers.get("www-authenticate", ""):
            return None
        return await credential.replace(rejected)

    async def close(self) -> None:
        """Stop pending refreshes."""
        await self._tokens.close()
        if self._credential is not None:
            await self._credential.close()

    def _is_exchanged(self, config: models.ClientConfigResponse | None) -> bool:
        self._config = config
        return config is not None and config.pjwt_auth_enabled and self._credential is not None

    async def _exchange(self) -> Secret:
        requires_command = self._config is not None and self._config.credential_default_source == "credential_cmd"
        if requires_command and isinstance(self._credential, StaticCredential) and not self._credential.secret.is_token:
            command = create_command_credential()
            if command is None:
                raise TinkerError(
                    "the organization of this API key requires temporary credentials: set TINKER_CREDENTIAL_CMD to a "
                    "shell command that prints one"
                )
            self._credential = command
        return await self._fetch_token()


def _check_header(name: str, value: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"default_headers_overrides: expected names of type str, got {type(name).__name__}")
    if not isinstance(value, str):
        # The error does not show the value, which may be a key.
        raise TypeError(f"header {name!r}: expected a value of type str, got {type(value).__name__}")
    if not is_sendable(name) or ":" in name:
        raise ValueError(f"header {name!r}: the name must be printable ASCII without spaces or colons")
    if name.lower() in TRANSPORT_HEADERS:
        raise ValueError(f"header {name!r}: the client sets this header itself; leave it out")
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"header {name!r}: the value must be printable ASCII")
    return value
