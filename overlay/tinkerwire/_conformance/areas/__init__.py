"""The requirements, one module or package for each area of the wire."""
