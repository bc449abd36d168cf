"""Compatibility: the methods of pydantic and dataclasses on models, as on the official types."""
