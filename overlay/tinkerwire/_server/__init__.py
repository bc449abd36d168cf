"""The embedded server. Its public names are in ``tinkerwire.local``."""
