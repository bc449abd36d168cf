"""Requirements: what a server has to do, the contract behind it, and who suffers if it does not."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated.availability import OLDEST_MODELS_VERSION, OPERATION_VERSIONS

if TYPE_CHECKING:
    from .subject.server import Server

Test: TypeAlias = Callable[["Server"], Awaitable[None]]


class Level(enum.Enum):
    """Importance of a requirement.

    Clients lose work, or get wrong numbers, without a MUST; they lose a feature or time without a SHOULD. A MAY is
    optional, and the report shows whether the server has it.
    """

    MUST = "must"
    SHOULD = "should"
    MAY = "may"

    def includes(self, other: Level) -> bool:
        """Check whether a run at this level tests requirements of another level."""
        order = list(Level)
        return order.index(other) <= order.index(self)


class Feature(enum.Enum):
    """Uses of a server by clients; a prediction names those that do not work."""

    CONNECT = "connect"
    TRAIN = "train"
    SAMPLE = "sample"
    SAVE = "save and load weights"
    MANAGE = "list and manage checkpoints"


@attrs.frozen
class Breakage:
    """Versions of the official SDK that break if a requirement does not hold.

    Args:
        oldest: the first version.
        newest: the last version; None for all later ones.
        feature: what no longer works.
        effect: what happens, as a sentence without a subject, such as ``raises on every sample``.
    """

    oldest: str
    newest: str | None
    feature: Feature
    effect: str

    def covers(self, version: str) -> bool:
        """Check whether a version of the SDK breaks."""
        parsed = parse_version(version)
        return parse_version(self.oldest) <= parsed and (self.newest is None or parsed <= parse_version(self.newest))


@attrs.frozen(kw_only=True)
class Requirement:
    """One requirement and its test."""

    id: str
    """Identifier that never changes, such as ``FUT-007``."""
    area: str
    level: Level
    sentence: str
    """The behaviour of the server, as a sentence."""
    contract: tuple[str, ...]
    """Parts of the contract it rests on: ``OPERATION``, ``OPERATION STATUS``, ``Model`` or ``Model.field``."""
    since: str
    until: str | None
    """The first wire version without the requirement; None for none."""
    operations: tuple[str, ...]
    """Optional operations that the test uses; without them the requirement does not apply."""
    needs: tuple[str, ...]
    """Requirements without which the test would prove nothing; it is blocked if one of them fails."""
    breaks: tuple[Breakage, ...]
    remedy: str
    """An instruction for the author of a server that fails."""
    max_s: float
    """Time limit of the test."""
    test: Test = attrs.field(repr=False, eq=False)

    def applies_to(self, wire: str) -> bool:
        """Check whether a wire version has the requirement."""
        version = parse_version(wire)
        return parse_version(self.since) <= version and (self.until is None or version < parse_version(self.until))


class Area:
    """Requirements about one part of the wire, in the order in which they are tested.

    Args:
        prefix: start of their ids, such as ``FUT``.
        name: name of the area, as ``--only`` takes it.
        title: what it is about.
    """

    def __init__(self, prefix: str, name: str, title: str) -> None:
        self.prefix, self.name, self.title = prefix, name, title
        self.requirements: list[Requirement] = []
        # Decorators of tests, which take the arguments of `requirement` behind the level.
        self.must = partial(self.requirement, Level.MUST)
        self.should = partial(self.requirement, Level.SHOULD)
        self.may = partial(self.requirement, Level.MAY)

    def requirement(
        self,
        level: Level,
        number: int,
        *,
        contract: str | Sequence[str],
        remedy: str,
        sentence: str | None = None,
        since: str | None = None,
        until: str | None = None,
        operations: Sequence[str] = (),
        needs: Sequence[str] = (),
        breaks: Sequence[Breakage] = (),
        max_s: float = 120.0,
    ) -> Callable[[Test], Test]:
        """Return a decorator that registers a test.

        Args:
            level: how much depends on it.
            number: number within the area, which never changes.
            contract: see :class:`Requirement`.
            remedy: see :class:`Requirement`.
            sentence: see :class:`Requirement`; None for the first line of the test's docstring.
            since: the first wire version; None for the first that has all of ``operations``.
            until: see :class:`Requirement`.
            operations: see :class:`Requirement`.
            needs: see :class:`Requirement`.
            breaks: see :class:`Requirement`.
            max_s: see :class:`Requirement`.
        """

        def register(test: Test) -> Test:
            self.requirements.append(
                Requirement(
                    id=f"{self.prefix}-{number:03}",
                    area=self.name,
                    level=level,
                    sentence=sentence or (test.__doc__ or "").strip().partition("\n")[0],
                    contract=(contract,) if isinstance(contract, str) else tuple(contract),
                    since=since or first_version(operations),
                    until=until,
                    operations=tuple(operations),
                    needs=tuple(needs),
                    breaks=tuple(breaks),
                    remedy=remedy,
                    max_s=max_s,
                    test=test,
                )
            )
            return test

        return register


def first_version(operations: Sequence[str]) -> str:
    """Return the first wire version that has all of some operations."""
    first = [OPERATION_VERSIONS[name][0] for name in operations if name in OPERATION_VERSIONS]
    return max([OLDEST_MODELS_VERSION, *first], key=parse_version)
