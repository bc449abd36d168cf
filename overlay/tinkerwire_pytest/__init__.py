"""Plugin of pytest: fixtures of an embedded server for each test, a client of it, and its fault injection.

pytest loads this module in every project where tinkerwire is installed. Therefore it is a package of its own, and
imports tinkerwire only for tests that ask for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tinkerwire import ServiceClient
    from tinkerwire.testing import FaultInjection, LocalServer

MARK = "tinker"
MARK_TEXT = (
    f"{MARK}(wire=None, quirks=(), models=(), seed=0): settings of the fixtures tinker_server, tinker_service and "
    "tinker_faults: wire version, quirks to emulate, further names of models, and the seed of adapters and samples"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", MARK_TEXT)


@pytest.fixture
def tinker_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """Return a new embedded server, which also serves HTTP at its ``url``; it is closed after the test.

    During the test, the environment directs clients that name no server to this one, with a key of no service.
    """
    from tinkerwire._testing.mark import read_settings  # noqa: PLC0415
    from tinkerwire.testing import LocalServer  # noqa: PLC0415

    settings = read_settings([(mark.args, mark.kwargs) for mark in request.node.iter_markers(MARK)])
    with LocalServer(**settings) as server:
        for name, value in server.environment.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def tinker_service(tinker_server: LocalServer) -> Iterator[ServiceClient]:
    """Return a ServiceClient of the server of the test, in this process; it is closed after the test."""
    service = tinker_server.create_client()
    yield service
    service.close().result(timeout=60)


@pytest.fixture
def tinker_faults(tinker_server: LocalServer) -> FaultInjection:
    """Return the fault injection of the server of the test, which injects nothing until the test asks for it."""
    return tinker_server.fault_injection
