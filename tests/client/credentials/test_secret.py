"""A wrapper that never shows what is in it, and the time that is left of a token."""

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


def test_a_secret_shows_nothing() -> None:
    """repr, str, format and an f-string of a secret do not show it, nor does anything that it is part of."""
    secret = Secret(KEY)
    keeper = attrs.make_class("Keeper", ["part"])(secret)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", "%s" % secret, repr([secret]), repr(keeper)):  # noqa: UP031
        assert KEY not in shown
    assert secret.reveal() == KEY
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_not_carried_away() -> None:
    """It cannot be pickled or put into JSON; a copy of what holds it holds the same."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled") as caught:
            pickle.dumps({"key": Secret(KEY)}, protocol)
        assert KEY not in str(caught.value)
    with pytest.raises(TypeError):
        json.dumps(Secret(KEY))
    secret = Secret(KEY)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_the_life_of_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key has no end; a token says when it ends, and a clock that is wrong does not make it longer."""
    ahead, now = 10_000, 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    assert Secret(KEY).expires_in_s() == math.inf
    assert Secret(token(1000)).expires_in_s() == 1000
    assert Secret(token(-1)).expires_in_s() == 0
    assert Secret(token(iat=now + ahead, exp=now + ahead + 60)).expires_in_s() == 60
    assert Secret(token(None, exp=now + 500)).expires_in_s() == 500
    for silent in (token(None), token(None, exp="soon"), token(None, exp=True), "eyJ", "eyJ.", "eyJ.!.", "eyJ.WzFd."):
        assert Secret(silent).expires_in_s() == UNKNOWN_LIFE_S


@given(st.text(st.characters(max_codepoint=300), max_size=20))
def test_what_can_be_sent(text: str) -> None:
    """Printable ASCII without blanks, and not nothing; no text breaks the reading of it as a token."""
    assert is_sendable(text) == (bool(text) and all("!" <= ch <= "~" for ch in text))
    assert Secret("eyJ" + text).expires_in_s() >= 0
