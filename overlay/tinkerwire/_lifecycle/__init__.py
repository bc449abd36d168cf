"""Lifecycle: connections are made from the arguments of a client, opened, kept open, and closed."""
