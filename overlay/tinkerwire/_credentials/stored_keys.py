"""Changes of the credentials file. The official SDK uses the file as well, so unknown parts are preserved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import attrs

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models

from .._files import lock, replace_file
from .credentials_file import VERSION, credentials_path, read_credentials_file, unusable
from .secret import Secret

T = TypeVar("T")
Record = dict[str, Any]


@attrs.frozen(kw_only=True)
class StoredKey:
    """Key of the file; missing values are empty."""

    id: str
    name: str
    type: str
    """``manual``: the user entered it; ``generated``: a sign-in with the official SDK, 0.26.2 to 0.29.1, created it."""
    organization: str
    email: str
    secret: Secret
    is_default: bool


def list_keys() -> list[StoredKey]:
    """Return all keys of the file in its order.

    Raises:
        TinkerError: other users can read the file, this user cannot, or its format is unknown. The other functions here
            raise it too, also if the file cannot be written, and leave the file unchanged.
    """
    return _parse_keys(read_credentials_file() or {})


def add_key(secret: Secret, description: models.SelfApiKeyResponse) -> StoredKey:
    """Store a key with the description of a server, as the default; raise TinkerError if another key has its id."""
    new_id = str(description.key_id)

    def change(stored: Record) -> StoredKey:
        existing_key = {key.id: key for key in _parse_keys(stored)}.get(new_id)
        if existing_key is not None and existing_key.secret.reveal() != secret.reveal():
            raise TinkerError(
                f"{credentials_path()}: another key, {existing_key.name!r}, has the id {new_id}, perhaps of "
                f"another server; to remove it, run `tinkerwire auth logout {new_id}`"
            )
        details = {
            "org_details": {"name": description.details.org_details.name},
            "user_details": {"email": description.details.user_details.email},
        }
        record = {
            "type": "manual",
            "key": secret.reveal(),
            "name": description.name,
            "note": description.note,
            "details": details,
        }
        old = stored["keys"].get(new_id, {})
        # A key keeps its type.
        stored["keys"][new_id] = {**old, **record, "type": old.get("type", "manual")}
        stored["default"] = new_id
        return _select_key(_parse_keys(stored), new_id)

    return _update_file(change)


def use_key(name: str) -> StoredKey:
    """Make a key the default, by its id or name; raise TinkerError for an unknown or ambiguous name."""

    def change(stored: Record) -> StoredKey:
        key = _select_key(_parse_keys(stored), name)
        stored["default"] = key.id
        return attrs.evolve(key, is_default=True)

    return _update_file(change)


def remove_key(name: str) -> StoredKey:
    """Remove a key by its id or name; without its default key the file has no default. Errors: see :func:`use_key`."""

    def change(stored: Record) -> StoredKey:
        key = _select_key(_parse_keys(stored), name)
        del stored["keys"][key.id]
        if key.is_default:
            stored.pop("default")
        return key

    return _update_file(change)


def find_key(name: str | None) -> StoredKey:
    """Return a key by its id or name; the default for None. Errors: see :func:`use_key`."""
    keys = list_keys()
    if name is not None:
        return _select_key(keys, name)
    default_key = next((key for key in keys if key.is_default), None)
    if default_key is None:
        raise TinkerError(f"{credentials_path()} has no default key; give an id or a name{_list_choices(keys)}")
    return default_key


def _select_key(keys: list[StoredKey], name: str) -> StoredKey:
    matches = [key for key in keys if key.id == name] or [key for key in keys if key.name == name]
    if len(matches) > 1:
        raise TinkerError(f"{len(matches)} keys have this name; use the id{_list_choices(matches)}")
    if not matches:
        # The error does not show the name, because the user may have entered a key.
        raise TinkerError(f"{credentials_path()} has no key with this id or name{_list_choices(keys)}")
    return matches[0]


def _list_choices(keys: list[StoredKey]) -> str:
    names = ", ".join(f"{key.id} ({key.name})" for key in keys)
    return f": {names}" if names else "; the file has no keys, run `tinkerwire auth login`"


def _parse_keys(stored: Record) -> list[StoredKey]:
    keys = _read_keys(stored)
    if isinstance(keys, str):
        raise unusable(keys)
    return keys


def _read_keys(stored: Record) -> list[StoredKey] | str:
    keys, default = {} if stored.get("keys") is None else stored["keys"], stored.get("default")
    if not isinstance(keys, dict):
        return "its keys must be an object"
    if default is not None and not isinstance(default, str):
        return "its default must be text"
    stored_keys = []
    for key_id, record in keys.items():
        if not isinstance(record, dict):
            return f"its key {key_id!r:.40} must be an object"
        stored_keys.append(
            StoredKey(
                id=key_id,
                name=_text(record, "name"),
                type=_text(record, "type"),
                organization=_text(record, "details", "org_details", "name"),
                email=_text(record, "details", "user_details", "email"),
                secret=Secret(_text(record, "key")),
                is_default=key_id == default,
            )
        )
    return stored_keys


def _text(value: Any, *names: str) -> str:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _update_file(change: Callable[[Record], T]) -> T:
    """Read the file, change it, and replace it under a lock."""
    # A symbolic link to the file is kept.
    path = Path(os.path.realpath(credentials_path()))
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o700)
        with ExitStack() as stack:
            # The official SDK does not take this lock, but it writes only for a moment.
            stack.callback(lock(path.parent, waits=True))
            stored = read_credentials_file() or {}
            _parse_keys(stored)
            stored.setdefault("version", VERSION)
            stored["keys"] = {} if stored.get("keys") is None else stored["keys"]
            result = change(stored)
            with replace_file(path) as file:
                file.write(json.dumps(stored, indent=2).encode())
    except OSError as error:
        raise TinkerError(f"{path}: cannot be written ({error.strerror})") from None
    return result
