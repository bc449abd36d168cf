"""Requirements that no mutation trips, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

UNTRIPPED: Mapping[str, str] = {
    "CON-003": "needs CON-001 and CON-002, which notice the same mutations with fewer requests",
    "FUT-004": "needs work that takes longer than 45 s",
    "LOS-050": "needs torch in the environment of the server",
    "LOS-051": "needs torch in the environment of the server",
    "LOS-052": "needs torch in the environment of the server",
    "LOS-053": "needs torch in the environment of the server",
    "LOS-054": "needs torch in the environment of the server",
    "SRV-038": "fails without a mutation, because the embedded server does not have the audit log",
    "SRV-039": "fails without a mutation, because the embedded server does not have search_sessions",
}
