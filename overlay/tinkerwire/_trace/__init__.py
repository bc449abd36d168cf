"""Tracing: what each operation of a client spent its time on, for a file, for metrics and for OpenTelemetry."""
