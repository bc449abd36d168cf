"""Requirements on the management of checkpoints: lists, publication, lifetimes, deletion and descriptions."""

from . import lists, management, descriptions  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
