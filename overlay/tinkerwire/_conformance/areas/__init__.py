"""The requirements, one module for each area of the wire."""
