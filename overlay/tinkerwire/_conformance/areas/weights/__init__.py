"""Requirements on weights: saving, and loading into models."""

from . import saving, loading  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
