"""A mutation: a change of the embedded server, and the requirements of the kit that notice it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

WIRE = "0.38.0"
"""Wire version at which most mutations run."""
Apply = Callable[[], None]


@attrs.frozen(kw_only=True)
class Mutation:
    """One change of the embedded server."""

    name: str
    group: str
    change: str
    """The change, as a sentence."""
    trips: frozenset[str]
    """The ids of the requirements that are meant to fail; all others hold, or are blocked."""
    apply: Apply
    """Makes the change, in the process of the server and before the server is created."""
    wire: str = WIRE
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Arguments of the server; ``quirks`` and ``fault_injection`` are texts."""
    over_http: bool = False
    """True if requests go over sockets, because the change concerns HTTP itself."""
    unseen: str = ""
    """The reason for which no requirement can notice it; empty if some do."""


class Group:
    """Mutations of one part of the server.

    Args:
        title: the part.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.mutations: list[Mutation] = []

    def mutation(
        self, *trips: str, wire: str = WIRE, over_http: bool = False, unseen: str = "", **settings: Any
    ) -> Callable[[Apply], Apply]:
        """Return a decorator that registers a function under its name; its docstring is the change.

        Args:
            trips: see :class:`Mutation`.
            wire: the wire version of the server.
            over_http: see :class:`Mutation`.
            unseen: see :class:`Mutation`.
            settings: see :class:`Mutation`.
        """

        def register(apply: Apply) -> Apply:
            change = " ".join((apply.__doc__ or "").split())
            self.add(
                apply.__name__.replace("_", "-"),
                change,
                apply,
                *trips,
                wire=wire,
                over_http=over_http,
                unseen=unseen,
                **settings,
            )
            return apply

        return register

    def add(
        self,
        name: str,
        change: str,
        apply: Apply,
        *trips: str,
        wire: str = WIRE,
        over_http: bool = False,
        unseen: str = "",
        **settings: Any,
    ) -> None:
        """Add a mutation; see :meth:`mutation`."""
        self.mutations.append(
            Mutation(
                name=name,
                group=self.title,
                change=change,
                trips=frozenset(trips),
                apply=apply,
                wire=wire,
                settings=settings,
                over_http=over_http,
                unseen=unseen,
            )
        )
