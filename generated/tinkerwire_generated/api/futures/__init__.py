# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family futures."""

from .retrieve_future import retrieve_future as retrieve_future
