"""The version of this package, and the wire version that its server speaks."""

__version__ = "0.1.0"

DEFAULT_WIRE = "0.16.1"
"""The wire version that the embedded server speaks unless told otherwise: the newest whose bodies are all JSON."""
