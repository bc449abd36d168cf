"""Tests of Secret: the hidden value, and the remaining lifetime of a token."""

from __future__ import annotations

import copy
import json
import math
import pickle
import time

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.clients import KEY
from support.tokens import token
from tinkerwire._credentials.secret import UNKNOWN_LIFE_S, Secret, is_sendable


def test_secret_does_not_show_its_value() -> None:
    """Neither repr, str and format of a secret nor the repr of its container contain the value."""
    secret = Secret(KEY)
    holder = attrs.make_class("Holder", ["secret"])(secret)
    for text in (repr(secret), str(secret), f"{secret}", f"{secret!r}", "%s" % secret, repr([secret]), repr(holder)):  # noqa: UP031
        assert KEY not in text
    assert secret.reveal() == KEY
    assert not hasattr(secret, "__dict__")


def test_secret_cannot_be_serialized() -> None:
    """Pickling and JSON raise TypeError; copying returns the same secret."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled") as caught:
            pickle.dumps({"key": Secret(KEY)}, protocol)
        assert KEY not in str(caught.value)
    with pytest.raises(TypeError):
        json.dumps(Secret(KEY))
    secret = Secret(KEY)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_remaining_lifetime_of_a_token_ignores_a_wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key never expires, a token without a valid expiry soon; a wrong local clock does not extend a lifetime."""
    clock_error, now = 10_000, 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    assert Secret(KEY).expires_in_s() == math.inf
    assert Secret(token(1000)).expires_in_s() == 1000
    assert Secret(token(-1)).expires_in_s() == 0
    assert Secret(token(iat=now + clock_error, exp=now + clock_error + 60)).expires_in_s() == 60
    assert Secret(token(None, exp=now + 500)).expires_in_s() == 500
    for unknown in (token(None), token(None, exp="soon"), token(None, exp=True), "eyJ", "eyJ.", "eyJ.!.", "eyJ.WzFd."):
        assert Secret(unknown).expires_in_s() == UNKNOWN_LIFE_S


@given(st.text(st.characters(max_codepoint=300), max_size=20))
def test_sendable_credential_is_printable_ascii_without_spaces(text: str) -> None:
    """An empty text is not sendable, and any text after the prefix of a token has a lifetime."""
    assert is_sendable(text) == (bool(text) and all("!" <= ch <= "~" for ch in text))
    assert Secret("eyJ" + text).expires_in_s() >= 0


def test_lifetime_of_a_token_is_the_time_between_its_claims() -> None:
    """Other secrets, and tokens that lack a claim or end before they begin, have none."""
    assert Secret(token(None, iat=100, exp=160)).lifetime_s() == 60
    assert Secret(token(None, iat=100.5, exp=101)).lifetime_s() == 0.5
    for other in (KEY, token(None, exp=160), token(None, iat=100), token(None, iat=160, exp=100), "eyJ"):
        assert Secret(other).lifetime_s() == 0
    assert Secret(token(None, iat=True, exp=160)).lifetime_s() == 0


def test_claims_of_tokens_are_texts() -> None:
    """Only a token has claims, and a claim that is not a text counts as missing."""
    secret = Secret(token(None, iss="passport-1", sub=7))
    assert secret.claim("iss") == "passport-1"
    assert secret.claim("sub") is None
    assert secret.claim("aud") is None
    assert secret.is_token
    assert not Secret(KEY).is_token
    assert Secret(token(None, iss="passport-1")[1:]).claim("iss") is None


def test_token_with_an_expiry_is_recognized() -> None:
    """The expiry is a number, or a number as text."""
    for end in (160, 160.5, "160"):
        assert Secret(token(None, exp=end)).has_end
    for other in (token(None), token(None, exp="soon"), token(None, exp=None), KEY, token(None, exp=160)[1:]):
        assert not Secret(other).has_end


def test_fingerprint_distinguishes_secrets() -> None:
    """It is the beginning of the SHA-256, for any text."""
    assert Secret("abc").fingerprint == "ba7816bf"
    assert len(Secret("\udc80").fingerprint) == 8
