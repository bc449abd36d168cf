"""Fixtures of the tests of the generated package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fixed_server import FixedServer, fixed_server


@pytest.fixture
def server() -> Iterator[FixedServer]:
    """Run a server with fixed responses for the test."""
    with fixed_server() as running_server:
        yield running_server
