"""Who the user is: what a token says, and what a key does not."""

from __future__ import annotations

from typing import Any

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.embedded import embedded_http_server
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer
from support.tokens import token

pytestmark = pytest.mark.timeout(60)
USER = {"sub": "tml:user:u1", "org_id": "o1", "email": "a@example.org"}
EXCHANGED = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}


def test_the_exchanged_token_says_it(server: ScriptedServer) -> None:
    """It is obtained if need be, once, and no other request is made."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(**USER)})
    with open_client(server.url, **EXCHANGED) as client:
        rest = client.create_rest_client()
        for _ in range(2):
            found = rest.whoami().result(PATIENCE_S)
            assert (found.user_urn, found.org_urn, found.email) == (USER["sub"], "tml:organization:o1", USER["email"])
    assert [asked.name for asked in server.asked] == ["auth/token"]


@pytest.mark.parametrize("email", [{}, {"email": ""}, {"email": None}])
def test_a_user_without_address(server: ScriptedServer, email: dict[str, Any]) -> None:
    """None, as in the official SDK."""
    given = {name: value for name, value in USER.items() if name != "email"}
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(**given, **email)})
    with open_client(server.url, **EXCHANGED) as client:
        assert client.create_rest_client().whoami().result(PATIENCE_S).email is None


def test_a_token_of_one_s_own(server: ScriptedServer) -> None:
    """One that serves as the API key, of those who issue such; nothing is sent."""
    with open_client(server.url, api_key=token(iss="passport-1", **USER)) as client:
        assert client.create_rest_client().whoami().result(PATIENCE_S).user_urn == USER["sub"]
    assert not server.asked


@pytest.mark.parametrize("key", ["tml-key", token(iss="others", **USER), token(**USER)])
def test_a_key_does_not_say_it(server: ScriptedServer, key: str) -> None:
    """RuntimeError, as in the official SDK, and the way out."""
    with open_client(server.url, api_key=key) as client, pytest.raises(RuntimeError, match="pjwt_auth_enabled"):
        client.create_rest_client().whoami().result(PATIENCE_S)


def test_a_token_that_does_not_say_it(server: ScriptedServer) -> None:
    """The server's fault, told without the token."""
    secret = token(sub="tml:user:u1")
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": secret})
    with (
        open_client(server.url, **EXCHANGED) as client,
        pytest.raises(tw.TinkerError, match="sub or org_id is missing") as caught,
    ):
        client.create_rest_client().whoami().result(PATIENCE_S)
    assert secret not in str(caught.value)


def test_of_the_embedded_server() -> None:
    """It has one user and one organization."""
    options = ("--wire", "0.38.0", "--flag", "pjwt_auth_enabled=true", "--api-key", "tml-key")
    with embedded_http_server(*options) as url, open_client(url, api_key="tml-key", wire_version=None) as client:
        found = client.create_rest_client().whoami().result(PATIENCE_S)
    assert (found.user_urn, found.org_urn, found.email) == ("local", "tml:organization:local", None)
