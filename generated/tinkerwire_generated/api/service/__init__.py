# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family service."""

from .get_server_capabilities import get_server_capabilities as get_server_capabilities
from .healthz import healthz as healthz
