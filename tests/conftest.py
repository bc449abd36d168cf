"""How properties are drawn in all tests."""

from __future__ import annotations

from hypothesis import settings

# The same draws in every run; `--hypothesis-profile=explore` draws others, and many. No draw has a time limit:
# a busy machine may stand still in any of them.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, derandomize=False, database=None, max_examples=1000)
settings.load_profile("tests")
