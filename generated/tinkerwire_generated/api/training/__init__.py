# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family training."""

from .create_custom_loss import create_custom_loss as create_custom_loss
from .create_model import create_model as create_model
from .forward import forward as forward
from .forward_backward import forward_backward as forward_backward
from .get_info import get_info as get_info
from .optim_step import optim_step as optim_step
from .unload_model import unload_model as unload_model
