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
from tinkerwire_generated.models import SelfApiKeyResponse

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
    """``manual``: somebody gave it; ``generated``: a sign-in with the official SDK, 0.26.2 to 0.29.1, made it."""
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
    return _keys(read_credentials_file() or {})


def add_key(secret: Secret, about: SelfApiKeyResponse) -> StoredKey:
    """Store a key that a server described, as the default; raise TinkerError if another key has its id."""
    new_id = str(about.key_id)

    def change(stored: Record) -> StoredKey:
        known = {each.id: each for each in _keys(stored)}.get(new_id)
        if known is not None and known.secret.reveal() != secret.reveal():
            raise TinkerError(
                f"{credentials_path()}: another key, {known.name!r}, has the number {new_id} there, perhaps of "
                f"another server; to remove that key, run `tinkerwire auth logout {new_id}`"
            )
        details = {
            "org_details": {"name": about.details.org_details.name},
            "user_details": {"email": about.details.user_details.email},
        }
        record = {"type": "manual", "key": secret.reveal(), "name": about.name, "note": about.note, "details": details}
        old = stored["keys"].get(new_id, {})
        # A key keeps its type.
        stored["keys"][new_id] = {**old, **record, "type": old.get("type", "manual")}
        stored["default"] = new_id
        return _one(_keys(stored), new_id)

    return _update_file(change)


def use_key(name: str) -> StoredKey:
    """Make a key the default, by its id or name; raise TinkerError for an unknown or ambiguous name."""

    def change(stored: Record) -> StoredKey:
        found = _one(_keys(stored), name)
        stored["default"] = found.id
        return attrs.evolve(found, is_default=True)

    return _update_file(change)


def remove_key(name: str) -> StoredKey:
    """Remove a key by its id or name; without its default key the file has no default. Errors: see :func:`use_key`."""

    def change(stored: Record) -> StoredKey:
        found = _one(_keys(stored), name)
        del stored["keys"][found.id]
        if found.is_default:
            stored.pop("default")
        return found

    return _update_file(change)


def find_key(name: str | None) -> StoredKey:
    """Return a key by its id or name; the default for None. Errors: see :func:`use_key`."""
    keys = list_keys()
    if name is not None:
        return _one(keys, name)
    found = next((each for each in keys if each.is_default), None)
    if found is None:
        raise TinkerError(f"{credentials_path()} has no default key; name one{_choice(keys)}")
    return found


def _one(keys: list[StoredKey], name: str) -> StoredKey:
    found = [each for each in keys if each.id == name] or [each for each in keys if each.name == name]
    if len(found) > 1:
        raise TinkerError(f"{len(found)} keys have this name; use the id{_choice(found)}")
    if not found:
        # Not shown, as it may be the key itself that somebody gave.
        raise TinkerError(f"{credentials_path()} has no key of that id or name{_choice(keys)}")
    return found[0]


def _choice(keys: list[StoredKey]) -> str:
    known = ", ".join(f"{each.id} ({each.name})" for each in keys)
    return f": {known}" if known else "; the file has no keys, run `tinkerwire auth login`"


def _keys(stored: Record) -> list[StoredKey]:
    found = _described(stored)
    if isinstance(found, str):
        raise unusable(found)
    return found


def _described(stored: Record) -> list[StoredKey] | str:
    keys, default = {} if stored.get("keys") is None else stored["keys"], stored.get("default")
    if not isinstance(keys, dict):
        return "its keys must be an object"
    if default is not None and not isinstance(default, str):
        return "its default must be text"
    found = []
    for key_id, record in keys.items():
        if not isinstance(record, dict):
            return f"its key {key_id!r:.40} must be an object"
        found.append(
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
    return found


def _text(value: Any, *names: str) -> str:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _update_file(change: Callable[[Record], T]) -> T:
    """Read the file, change it, and replace it under a lock."""
    # A link to the file stays one.
    path = Path(os.path.realpath(credentials_path()))
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o700)
        with ExitStack() as stack:
            # The official SDK does not take this lock, but it writes only for a moment.
            stack.callback(lock(path.parent, waits=True))
            stored = read_credentials_file() or {}
            _keys(stored)
            stored.setdefault("version", VERSION)
            stored["keys"] = {} if stored.get("keys") is None else stored["keys"]
            found = change(stored)
            with replace_file(path) as file:
                file.write(json.dumps(stored, indent=2).encode())
    except OSError as error:
        raise TinkerError(f"{path}: it cannot be written ({error.strerror})") from None
    return found
