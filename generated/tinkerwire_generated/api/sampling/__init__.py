# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family sampling."""

from .asample import asample as asample
from .create_sampling_session import create_sampling_session as create_sampling_session
from .get_sampler import get_sampler as get_sampler
from .join_sampling_session import join_sampling_session as join_sampling_session
from .sample import sample as sample
