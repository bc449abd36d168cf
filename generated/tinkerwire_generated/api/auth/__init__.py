# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family auth."""

from .auth_config import auth_config as auth_config
from .auth_token import auth_token as auth_token
from .client_config import client_config as client_config
from .client_dynamic_config import client_dynamic_config as client_dynamic_config
from .create_api_key import create_api_key as create_api_key
from .delete_own_api_key import delete_own_api_key as delete_own_api_key
from .get_own_api_key import get_own_api_key as get_own_api_key
