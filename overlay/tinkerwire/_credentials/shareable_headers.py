"""Headers that a handle or a pickle may contain: those without a visible credential.

A header is excluded if its name contains one of :data:`SECRET_NAMES`, or if its value looks like a secret: it begins
with an authorization scheme, or contains a password in a URL, a JSON web token, a key by its prefix, or 20 or more
consecutive letters and digits. In doubt a header is excluded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .secret import Secret

SECRET_NAMES = (
    "auth",
    "cf-access",
    "cookie",
    "credential",
    "jwt",
    "key",
    "passw",
    "pwd",
    "secret",
    "session",
    "signature",
    "token",
)
"""A header whose name contains one of these holds a credential."""
_SECRET_VALUE = re.compile(
    r"^(basic|bearer|digest|negotiate|token|apikey)\s"
    r"|://[^/\s]*:[^/\s]*@"
    r"|\beyJ[\w-]+\."
    r"|\b((tml|sk|pk|hf|glpat|xox[a-z]|gh[a-z])[-_]\w{6}|AKIA\w{12})"
    r"|(?=[A-Za-z_+=-]*[0-9])(?=[0-9_+=-]*[A-Za-z])[\w+=-]{20,}",
    re.IGNORECASE,
)


def is_shareable(name: str, value: str) -> bool:
    """Return whether a header holds no credential, by its name and its value."""
    lower = name.lower()
    return not any(part in lower for part in SECRET_NAMES) and not _SECRET_VALUE.search(value)


def select_shareable_headers(headers: Mapping[str, Secret]) -> dict[str, str]:
    """Return the shareable headers with their plain values."""
    revealed = {name: value.reveal() for name, value in headers.items()}
    return {name: value for name, value in revealed.items() if is_shareable(name, value)}
