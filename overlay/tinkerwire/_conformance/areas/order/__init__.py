"""Requirements on the order of a model's operations by their seq_ids, and on repeated operations."""

from . import sequence, repetition, rejection  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
