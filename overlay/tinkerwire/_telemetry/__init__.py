"""Telemetry: events of a session, and errors by class and location."""
