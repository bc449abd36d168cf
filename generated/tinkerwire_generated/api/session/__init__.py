# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family session."""

from .create_session import create_session as create_session
from .get_session import get_session as get_session
from .list_sessions import list_sessions as list_sessions
from .session_heartbeat import session_heartbeat as session_heartbeat
