"""Lifecycle: connections open and close here."""
