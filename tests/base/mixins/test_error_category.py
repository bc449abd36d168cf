"""Categories of failed requests."""

from __future__ import annotations

import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import (
    RequestFailedResponse,
)

CONVERTER = Converter()


@pytest.mark.parametrize(
    ("sent", "read"),
    [("user", "user"), ("User", "user"), ("SERVER", "server"), ("Unknown", "unknown"), ("billing", "billing")],
)
def test_category_is_read_in_any_case(sent: str, read: str) -> None:
    """Known categories become lower case; unknown ones do not change."""
    response = CONVERTER.structure({"error": "boom", "category": sent}, RequestFailedResponse)
    assert response.category == read
