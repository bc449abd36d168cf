"""The warning of what may change."""


class ExperimentalWarning(FutureWarning):
    """What was called is experimental: later versions may change or drop it."""
