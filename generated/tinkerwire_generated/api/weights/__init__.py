# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family weights."""

from .copy_weights import copy_weights as copy_weights
from .load_weights import load_weights as load_weights
from .save_weights import save_weights as save_weights
from .save_weights_external import save_weights_external as save_weights_external
from .save_weights_for_sampler import save_weights_for_sampler as save_weights_for_sampler
from .weights_info import weights_info as weights_info
