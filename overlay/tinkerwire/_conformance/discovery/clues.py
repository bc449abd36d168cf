"""Clues to the wire version of a server, and the version that fits them best."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tinkerwire_base.conversion.versioning import VersionRange, parse_version
from tinkerwire_generated.availability import OLDEST_MODELS_VERSION, VERSIONS

DECISIVE = 20.0
"""Weight of what clients of other versions cannot live with, such as the only encoding of a request."""
STRONG = 3.0
"""Weight of behaviour that only servers of the versions have."""
LIKELY = 1.0
"""Weight of behaviour that servers of other versions may have, too."""
WEAK = 0.25
"""Weight of the absence of optional things."""


@attrs.frozen
class Clue:
    """One observation, and the wire versions of which servers show it.

    Args:
        text: the observation, such as ``optim_step takes weight_decay``.
        versions: the first version that fits, and the first later one that does not; None for no limit.
        weight: how much it counts.
    """

    text: str
    versions: tuple[str | None, str | None]
    weight: float

    def fits(self, version: str) -> bool:
        """Check whether a server of a version shows this."""
        since, until = self.versions
        parsed = parse_version(version)
        return (since is None or parse_version(since) <= parsed) and (until is None or parsed < parse_version(until))

    def __str__(self) -> str:
        since, until = self.versions
        limits = [f"wire {since} or later" if since else "", f"before wire {until}" if until else ""]
        return f"{self.text}: {', '.join(limit for limit in limits if limit)}"


def known_and_unknown(text: str, versions: VersionRange, *, is_known: bool, weight: float) -> Clue:
    """Return the clue that a server has something that came with a version, or that it does not have it."""
    return Clue(text, (versions[0], None) if is_known else (None, versions[0]), weight)


def choose_version(clues: Sequence[Clue]) -> str:
    """Return the version that fits most clues by weight; of equal ones the newest."""
    oldest = parse_version(OLDEST_MODELS_VERSION)
    candidates = [version for version in VERSIONS if parse_version(version) >= oldest]
    return max(reversed(candidates), key=lambda version: sum(clue.weight for clue in clues if clue.fits(version)))


def explain(clues: Sequence[Clue], version: str) -> tuple[str, ...]:
    """Return the clues that set the limits of a version, then those that contradict it, as lines."""
    fitting = [clue for clue in clues if clue.fits(version)]
    lower = max((clue.versions[0] for clue in fitting if clue.versions[0]), key=parse_version, default=None)
    upper = min((clue.versions[1] for clue in fitting if clue.versions[1]), key=parse_version, default=None)
    limits = [
        clue for clue in fitting if (lower and clue.versions[0] == lower) or (upper and clue.versions[1] == upper)
    ]
    against = [clue for clue in clues if not clue.fits(version) and clue.weight > WEAK]
    return (*map(str, limits), *(f"{clue}, which does not fit" for clue in against))
