"""Futures of the server: created immediately, computed by a worker, kept until fetched or expired."""
