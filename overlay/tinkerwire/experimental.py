"""Warning category of experimental features."""


class ExperimentalWarning(FutureWarning):
    """Warning that a feature is experimental: later versions may change or remove it."""
