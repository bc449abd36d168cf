"""Fixtures of the tests of storage."""

from support.restarts import restart as restart
from support.restarts import sampling as sampling
