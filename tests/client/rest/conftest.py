"""Fixtures of the tests of REST calls."""

from __future__ import annotations

import pytest

import tinkerwire as tw


@pytest.fixture
def rest(client: tw.ServiceClient) -> tw.RestClient:
    """Create a REST client of the scripted server."""
    return client.create_rest_client()
