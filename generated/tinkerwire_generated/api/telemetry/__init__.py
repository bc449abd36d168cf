# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family telemetry."""

from .telemetry import telemetry as telemetry
