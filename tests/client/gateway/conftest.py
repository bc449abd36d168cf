"""Fixtures of the gateway's tests."""

from __future__ import annotations

import pytest

from support.gateway_clients import Upstreams


@pytest.fixture
def upstream() -> Upstreams:
    """Return an upstream without endpoints."""
    return Upstreams()
