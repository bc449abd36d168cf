"""Requirements on the losses: cross_entropy, those of reinforcement learning, and custom ones."""

from . import policy, inputs, custom  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
