"""``tinkerwire demo``: the whole road on real text, from an untrained adapter to a continued checkpoint."""

from .run import DemoFailed as DemoFailed
from .run import run_demo as run_demo
