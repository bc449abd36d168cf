# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family futures."""

from .cancel_future import cancel_future as cancel_future
from .retrieve_future import retrieve_future as retrieve_future
from .retrieve_futures import retrieve_futures as retrieve_futures
