"""whoami: the identity of the user, read from a token."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from support.tokens import token

pytestmark = pytest.mark.timeout(60)
USER = {"sub": "tml:user:u1", "org_id": "o1", "email": "a@example.org"}
EXCHANGED = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}


def test_identity_is_read_from_the_exchanged_token(server: ScriptedServer) -> None:
    """The client exchanges the key for a token once, and sends no other request."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(**USER)})
    with open_client(server.url, **EXCHANGED) as client:
        rest = client.create_rest_client()
        for _ in range(2):
            identity = rest.whoami().result(TEST_TIMEOUT_S)
            assert (identity.user_urn, identity.org_urn, identity.email) == (
                USER["sub"],
                "tml:organization:o1",
                USER["email"],
            )
    assert [request.name for request in server.requests] == ["auth/token"]


@pytest.mark.parametrize("email", [{}, {"email": ""}, {"email": None}])
def test_missing_email_is_none(server: ScriptedServer, email: dict[str, str | None]) -> None:
    """A token without an email gives None, as in the official SDK."""
    claims = {name: value for name, value in USER.items() if name != "email"}
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(**claims, **email)})
    with open_client(server.url, **EXCHANGED) as client:
        assert client.create_rest_client().whoami().result(TEST_TIMEOUT_S).email is None


def test_identity_is_read_from_a_token_as_api_key(server: ScriptedServer) -> None:
    """A token of a known issuer as the API key holds the identity, so that the client sends nothing."""
    with open_client(server.url, api_key=token(iss="passport-1", **USER)) as client:
        assert client.create_rest_client().whoami().result(TEST_TIMEOUT_S).user_urn == USER["sub"]
    assert not server.requests


@pytest.mark.parametrize("key", ["tml-key", token(iss="others", **USER), token(**USER)])
def test_key_without_identity_raises_runtime_error(server: ScriptedServer, key: str) -> None:
    """RuntimeError, as in the official SDK, names the setting that is missing."""
    with open_client(server.url, api_key=key) as client, pytest.raises(RuntimeError, match="pjwt_auth_enabled"):
        client.create_rest_client().whoami().result(TEST_TIMEOUT_S)


def test_token_without_identity_is_an_error(server: ScriptedServer) -> None:
    """The error names the missing claims and does not show the token."""
    secret = token(sub="tml:user:u1")
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": secret})
    with (
        open_client(server.url, **EXCHANGED) as client,
        pytest.raises(tw.TinkerError, match="sub or org_id is missing") as caught,
    ):
        client.create_rest_client().whoami().result(TEST_TIMEOUT_S)
    assert secret not in str(caught.value)


def test_embedded_server_has_one_user_and_one_organization() -> None:
    """The embedded server has one user and one organization."""
    options = ("--wire", "0.38.0", "--flag", "pjwt_auth_enabled=true", "--api-key", "tml-key")
    with embedded_http_server(*options) as url, open_client(url, api_key="tml-key", wire_version=None) as client:
        identity = client.create_rest_client().whoami().result(TEST_TIMEOUT_S)
    assert (identity.user_urn, identity.org_urn, identity.email) == ("local", "tml:organization:local", None)
