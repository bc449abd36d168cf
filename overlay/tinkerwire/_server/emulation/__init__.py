"""Emulation of other servers and injection of faults, as middleware around the handlers."""
