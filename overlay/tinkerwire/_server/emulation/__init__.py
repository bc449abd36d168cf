"""Emulation: quirks of other servers, and injected faults."""
