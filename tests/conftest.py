"""How properties are drawn in all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine may stand still within any draw, so none has a time limit.
ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("tests", ANY_TIME, derandomize=True)
# Other draws, and more of them: pytest --hypothesis-profile=explore
settings.register_profile("explore", ANY_TIME, derandomize=False, max_examples=1000)
settings.load_profile("tests")
