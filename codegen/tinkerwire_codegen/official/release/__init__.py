"""Readers of a release of the official SDK, which do not run it."""
