"""The key that the official SDK would find; a file or key that the SDK rejects counts as missing.

The rules are stricter than those of tinkerwire in one way (a key must begin as the service's keys do, and the whole
file must have the official form) and looser in another (the mode of the file does not count).
"""

from __future__ import annotations

import json
import os
from typing import Any

from tinkerwire_base.errors import TinkerError

from .credentials_file import VERSION, credentials_path
from .secret import JWT_PREFIX, Secret

KEY_PREFIX = "tml-"
"""Prefix of every API key of the service."""


def read_environment_key() -> str:
    """Return TINKER_API_KEY; empty without one."""
    return os.environ.get("TINKER_API_KEY", "")


def is_well_formed(key: str) -> bool:
    """Return whether a key begins as the service's keys do; a token must also have an expiry."""
    if key.startswith(JWT_PREFIX):
        return Secret(key).has_end
    return key.startswith(KEY_PREFIX)


def read_official_default_key() -> str | None:
    """Return the default key of the credentials file; None without one, and for a file or key of another form."""
    try:
        stored: Any = json.loads(credentials_path().read_text())
    except (OSError, ValueError, RecursionError, TinkerError):
        return None
    if not _is_official_form(stored):
        return None
    record = stored.get("keys", {}).get(stored.get("default"))
    return record["key"] if record is not None and is_well_formed(record["key"]) else None


def _is_official_form(stored: Any) -> bool:
    if not isinstance(stored, dict) or not isinstance(stored.get("default"), str | None):
        return False
    keys = stored.get("keys", {})
    return (
        stored.get("version", VERSION) == VERSION
        and isinstance(keys, dict)
        and all(_is_record(record) for record in keys.values())
    )


def _is_record(record: Any) -> bool:
    if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in ("key", "name")):
        return False
    details, kind = record.get("details"), record.get("type")
    if kind == "generated":
        return _is_details(details)
    return kind == "manual" and isinstance(record.get("note"), str | None) and (details is None or _is_details(details))


def _is_details(details: Any) -> bool:
    if not isinstance(details, dict):
        return False
    organization, user = details.get("org_details"), details.get("user_details")
    return (
        isinstance(organization, dict)
        and isinstance(organization.get("name"), str)
        and isinstance(user, dict)
        and isinstance(user.get("email"), str)
    )
