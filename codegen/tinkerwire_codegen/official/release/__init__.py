"""Readers of a release of the official SDK; they do not run it."""
