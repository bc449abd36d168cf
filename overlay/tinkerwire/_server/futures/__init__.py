"""Futures of the server: created at once, computed by a worker, kept until they are fetched."""
