"""Requirements on samples: their number and length, stop conditions, and the parameters of sampling."""

from . import parameters, stops, fields, prompts  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
