"""Requirements on the protocol: HTTP, media types, bodies, errors and idempotency keys."""

from . import transport, bodies, encodings, errors  # isort: skip  # noqa: F401  # in the order of their tests
from .area import AREA as AREA
