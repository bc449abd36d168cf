"""Version of this package, and default wire version of its server."""

__version__ = "0.1.0"

DEFAULT_WIRE = "0.16.1"
"""Default wire version of the embedded server: the newest version whose bodies are all JSON."""
