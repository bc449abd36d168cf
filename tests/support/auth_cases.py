"""Credentials files and variables, valid and broken, with the results of the official SDK 0.38.0.

``tests/rigs/official/credentials_suite.py`` compares the results with the official SDK itself.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from attrs import field, frozen

MANUAL = {"type": "manual", "key": "tml-stored", "name": "n"}
DETAILS = {"org_details": {"name": "o"}, "user_details": {"email": "e"}}


def token(**claims: Any) -> str:
    """Return a JSON web token without a signature."""
    parts = ({"alg": "none"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".x"


def stored(**record: Any) -> bytes:
    """Return a credentials file whose default is one record."""
    return json.dumps({"version": 1, "default": "a", "keys": {"a": {**MANUAL, **record}}}).encode()


@frozen
class AuthCase:
    """Credentials file (None for no file), variables of the environment, and the results of tinker.auth."""

    content: bytes | None
    key: str | None = None
    """The return value of get_tinker_token."""
    variables: dict[str, str] = field(factory=dict)
    has: bool | None = None
    """The return value of tinker_has_credentials, if it differs from the presence of a key."""
    mode: int = 0o600

    @property
    def has_credentials(self) -> bool:
        """The return value of tinker_has_credentials."""
        return self.key is not None if self.has is None else self.has

    def put(self, home: Path) -> None:
        """Write the file of the case into a home folder, or remove the file there if the case has none."""
        file = home / ".tinker" / "credentials.json"
        file.unlink(missing_ok=True)
        if self.content is not None:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(self.content)
            file.chmod(self.mode)


def without(name: str) -> bytes:
    """Return a credentials file whose record lacks a field."""
    record = {key: value for key, value in MANUAL.items() if key != name}
    return json.dumps({"default": "a", "keys": {"a": record}}).encode()


FAR = 4102444800
LIVING, ENDED = token(exp=FAR, iat=1), token(exp=1)
VALID_FILE = stored()
AUTH_CASES: dict[str, AuthCase] = {
    "no file": AuthCase(None),
    "whole": AuthCase(VALID_FILE, "tml-stored"),
    "open to others": AuthCase(VALID_FILE, "tml-stored", mode=0o644),
    "more than is known": AuthCase(stored(more=1), "tml-stored"),
    "generated": AuthCase(stored(type="generated", details=DETAILS), "tml-stored"),
    "generated without details": AuthCase(stored(type="generated")),
    "details": AuthCase(stored(details=DETAILS), "tml-stored"),
    "null details": AuthCase(stored(details=None, note=None), "tml-stored"),
    "wrong details": AuthCase(stored(details={"org_details": {}, "user_details": {"email": "e"}})),
    "details of another type": AuthCase(stored(details=[])),
    "a note that is not text": AuthCase(stored(note=1)),
    "unknown type": AuthCase(stored(type="other")),
    "no type": AuthCase(without("type")),
    "no name": AuthCase(without("name")),
    "no key": AuthCase(without("key")),
    "a key that is not text": AuthCase(stored(key=1)),
    "an empty key": AuthCase(stored(key="")),
    "a key of another form": AuthCase(stored(key="sk-1")),
    "a key with blanks": AuthCase(stored(key="tml-a b"), "tml-a b"),
    "a key beyond ASCII": AuthCase(stored(key="tml-ä"), "tml-ä"),
    "a token": AuthCase(stored(key=LIVING), LIVING),
    "a token that ended": AuthCase(stored(key=ENDED), ENDED),
    "a token without an end": AuthCase(stored(key=token(iat=1))),
    "an invalid token": AuthCase(stored(key="eyJx")),
    "empty": AuthCase(b""),
    "blank": AuthCase(b" \n"),
    "no JSON": AuthCase(b"{"),
    "TOML": AuthCase(b'default = "a"\n'),
    "no text": AuthCase(b"\xff\xfe{}"),
    "a byte order mark": AuthCase(b"\xef\xbb\xbf" + VALID_FILE),
    "a list": AuthCase(b"[]"),
    "null": AuthCase(b"null"),
    "an empty object": AuthCase(b"{}"),
    "no version": AuthCase(json.dumps({"default": "a", "keys": {"a": MANUAL}}).encode(), "tml-stored"),
    "version 2": AuthCase(json.dumps({"version": 2, "default": "a", "keys": {"a": MANUAL}}).encode()),
    "version as text": AuthCase(json.dumps({"version": "1", "default": "a", "keys": {"a": MANUAL}}).encode()),
    "version null": AuthCase(json.dumps({"version": None, "default": "a", "keys": {"a": MANUAL}}).encode()),
    "version true": AuthCase(
        json.dumps({"version": True, "default": "a", "keys": {"a": MANUAL}}).encode(), "tml-stored"
    ),
    "version 1.0": AuthCase(json.dumps({"version": 1.0, "default": "a", "keys": {"a": MANUAL}}).encode(), "tml-stored"),
    "no default": AuthCase(json.dumps({"keys": {"a": MANUAL}}).encode()),
    "a default that is not there": AuthCase(json.dumps({"default": "b", "keys": {"a": MANUAL}}).encode()),
    "a default that is not text": AuthCase(json.dumps({"default": 1, "keys": {"a": MANUAL}}).encode()),
    "keys as a list": AuthCase(json.dumps({"default": "a", "keys": [MANUAL]}).encode()),
    "keys null": AuthCase(json.dumps({"default": "a", "keys": None}).encode()),
    "a record that is not an object": AuthCase(json.dumps({"default": "a", "keys": {"a": "tml-stored"}}).encode()),
    "another record is broken": AuthCase(json.dumps({"default": "a", "keys": {"a": MANUAL, "b": {}}}).encode()),
    "deep": AuthCase(b"[" * 100_000),
    "variable": AuthCase(None, "tml-v", {"TINKER_API_KEY": "tml-v"}),
    "variable before the file": AuthCase(VALID_FILE, "tml-v", {"TINKER_API_KEY": "tml-v"}),
    "empty variable": AuthCase(VALID_FILE, "tml-stored", {"TINKER_API_KEY": ""}),
    "variable of another form": AuthCase(VALID_FILE, None, {"TINKER_API_KEY": "sk-1"}),
    "blank variable": AuthCase(VALID_FILE, None, {"TINKER_API_KEY": " "}),
    "variable with a line end": AuthCase(None, "tml-v\n", {"TINKER_API_KEY": "tml-v\n"}),
    "token variable": AuthCase(None, LIVING, {"TINKER_API_KEY": LIVING}),
    "invalid token variable": AuthCase(None, None, {"TINKER_API_KEY": "eyJ"}),
    "invalid token variable, and a command": AuthCase(
        None, None, {"TINKER_API_KEY": "eyJ", "TINKER_CREDENTIAL_CMD": "echo"}
    ),
    "command": AuthCase(None, None, {"TINKER_CREDENTIAL_CMD": "false"}, has=True),
    "command and a file": AuthCase(VALID_FILE, "tml-stored", {"TINKER_CREDENTIAL_CMD": "false"}),
    "command and a broken file": AuthCase(b"{", None, {"TINKER_CREDENTIAL_CMD": "false"}, has=True),
    "command and a variable of another form": AuthCase(
        None, None, {"TINKER_CREDENTIAL_CMD": "false", "TINKER_API_KEY": "sk-1"}, has=True
    ),
    "empty command": AuthCase(None, None, {"TINKER_CREDENTIAL_CMD": ""}),
}
