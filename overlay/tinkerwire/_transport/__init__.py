"""Transports: the address of a server, and how requests reach it."""
