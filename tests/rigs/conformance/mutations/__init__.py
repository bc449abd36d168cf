"""Mutations of the embedded server: each changes one thing, and names the requirements that are meant to fail."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .mutation import Group, Mutation

GROUP_MODULES = (
    "service",
    "authentication",
    "sessions",
    "trained_models",
    "training",
    "steps",
    "losses",
    "sampling",
    "logprobs",
    "samplers",
    "futures",
    "batched_polls",
    "order",
    "weights",
    "checkpoints",
    "protocol",
    "bad_requests",
    "concurrency",
    "quirks",
    "faults",
)
"""Modules with a ``GROUP`` each."""


@cache
def load_groups() -> tuple[Group, ...]:
    """Return all groups of mutations."""
    return tuple(import_module(f".{name}", __package__).GROUP for name in GROUP_MODULES)


@cache
def load_mutations() -> dict[str, Mutation]:
    """Return all mutations by name, in order; raise ValueError if two have one name."""
    mutations: dict[str, Mutation] = {}
    for group in load_groups():
        for mutation in group.mutations:
            if mutation.name in mutations:
                raise ValueError(f"two mutations are called {mutation.name}")
            mutations[mutation.name] = mutation
    return mutations
