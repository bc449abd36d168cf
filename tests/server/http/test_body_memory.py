"""Limit of the bodies that a server holds at the same time."""

from __future__ import annotations

import pytest

from tinkerwire._server.http.body_memory import BodyMemory
from tinkerwire._server.http.responses import HttpError


def test_memory_is_shared_and_free_again() -> None:
    memory = BodyMemory(10)
    with memory.hold() as take:
        take(4)
        take(4)
        with memory.hold() as other, pytest.raises(HttpError, match="memory") as refusal:
            other(3)
        assert (refusal.value.status, refusal.value.headers["retry-after"]) == (503, "1")
        take(2)
    with memory.hold() as take:
        take(10)


def test_memory_of_a_refused_body_is_free_again() -> None:
    memory = BodyMemory(10)
    with pytest.raises(HttpError), memory.hold() as take:
        take(9)
        take(9)
    with memory.hold() as take:
        take(10)
