"""Requirements on training: forward, forward_backward and optim_step."""

from . import outputs, steps, limits  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
