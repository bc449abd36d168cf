"""Tests of the removal of secrets from recordings."""

from __future__ import annotations

import pytest

from tinkerwire._tape.secret_removal import SecretRemoval


@pytest.mark.parametrize(
    "text",
    [
        b'{"jwt":"SECRET"}',
        b'{"api_key": "SECRET", "id": "1"}',
        b'{"weights_access_token":"SECRET"}',
        b'{"x":"tml-SECRETSECRET"}',
        b'{"x":"eyJSECRETSECRET.SECRET.SECRET"}',
        b'{"url":"https://files.example/a.tar?signature=SECRET&x=SECRET"}',
        b'{"proxy":"http://user:SECRET@host/"}',
    ],
)
def test_secrets_become_asterisks_of_the_same_length(text: bytes) -> None:
    cleaned = SecretRemoval().clean(text)
    assert b"SECRET" not in cleaned
    assert len(cleaned) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"tokens":[1,2],"path":"tinker://run/weights/sk-learning","model_id":"s-0123456789abcdef0123:train:0"}',
        b'{"seq_id":1,"credential_default_source":"api_key","pjwt_auth_enabled":true}',
        b"\x00\xff\x80",
    ],
)
def test_other_content_stays(text: bytes) -> None:
    assert SecretRemoval().clean(text) == text


def test_values_of_secret_headers_are_removed_from_bodies() -> None:
    removal = SecretRemoval()
    removal.learn({"X-Api-Key": 'own"key', "x-team": "research", "accept": "application/json", "cookie": "abc"})
    assert removal.clean(b'{"a":"own\\"key","b":"research","c":"abc"}') == b'{"a":"********","b":"research","c":"abc"}'
    assert removal.clean_text('key own"key') == "key *******"
