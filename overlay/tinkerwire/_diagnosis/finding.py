"""The result of one check of a connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs

FindingStatus = Literal["ok", "warning", "failed"]


@attrs.frozen
class Finding:
    """Result of one check of :meth:`ServiceClient.diagnose`."""

    name: str
    """The check, such as ``name lookup``, ``connection`` or ``latency``."""
    status: FindingStatus
    """``failed`` if requests cannot succeed; a warning does not prevent them."""
    detail: str
    """Result of the check in words."""
    remedy: str | None = None
    """Way out of the problem; None without a problem, or if the detail includes it."""


def has_failed(findings: Iterable[Finding]) -> bool:
    """Return whether a check failed."""
    return any(finding.status == "failed" for finding in findings)
