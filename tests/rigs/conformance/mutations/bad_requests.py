"""Mutations of the validation of requests."""

from __future__ import annotations

from typing import Any

from . import patches
from .mutation import Group

GROUP = Group("Validation")


REJECTIONS = (
    *("BAD-001", "BAD-002", "BAD-004", "BAD-005", "BAD-006", "BAD-007", "BAD-008", "BAD-009", "BAD-010"),
    *("BAD-011", "BAD-012", "BAD-013", "BAD-014", "BAD-015", "BAD-016", "BAD-017", "BAD-018", "BAD-019"),
    *("BAD-020", "BAD-021", "BAD-022", "CKP-016", "LGP-012", "LOS-042", "MOD-015", "ORD-022", "PRO-027"),
    *("PRO-046", "PRO-060", "PRO-061", "PRO-062", "PRO-063", "PRO-064", "PRO-065", "SWT-006", "SWT-007"),
    *("WGT-010", "WGT-011", "WGT-020", "WGT-022"),
)
"""Requirements that fail if a server does not reject what the contract forbids."""


@GROUP.mutation(*REJECTIONS, "PRO-067")
def invalid_requests_crash() -> None:
    """A request that does not fit the contract is answered with 500."""
    patches.respond(".*", 500, when=lambda _, response: response.status == 422)


@GROUP.mutation(*REJECTIONS)
def invalid_requests_accepted() -> None:
    """A request that does not fit the contract is answered with 200."""
    patches.respond(".*", 200, when=lambda _, response: response.status == 422)


@GROUP.mutation("BAD-006", "BAD-009", "BAD-012", "BAD-015", "BAD-016", "BAD-018")
def large_integers_crash() -> None:
    """A request with an integer beyond 64 bits is answered with 500."""
    patches.respond(".*", 500, when=patches.contains(str(2**63).encode()))


@GROUP.mutation("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "PRO-025", "SES-004")
def unicode_crashes() -> None:
    """A request with characters beyond Latin-1 is answered with 500."""

    def has_unicode(request: Any, _: Any) -> bool:
        try:
            text = (request.content or b"").decode()
        except ValueError:
            return False
        return any(ord(character) > 255 for character in text)

    patches.respond(".*", 500, when=has_unicode)


# An object of the wrong type lacks the fields of the right one.
@GROUP.mutation(
    *("BAD-001", "BAD-004", "BAD-005", "BAD-007", "BAD-008", "BAD-010", "BAD-011", "BAD-013", "BAD-022"),
    *("PRO-062",),
)
def missing_fields_crash() -> None:
    """A request without a required field is answered with 500."""
    patches.respond(
        ".*", 500, when=lambda _, response: response.status == 422 and b"this field is required" in response.content
    )


@GROUP.mutation("RUN-013", "BAD-002", "BAD-003")
def search_accepts_anything() -> None:
    """Each search for sessions is answered with an empty list, whatever its body."""
    patches.respond("sessions/search", 200, b'{"sessions":[]}')
