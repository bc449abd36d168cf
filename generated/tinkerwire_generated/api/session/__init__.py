# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family session."""

from .assign_session_project import assign_session_project as assign_session_project
from .create_session import create_session as create_session
from .export_session_trace import export_session_trace as export_session_trace
from .finish_session import finish_session as finish_session
from .get_session import get_session as get_session
from .list_sessions import list_sessions as list_sessions
from .search_sessions import search_sessions as search_sessions
from .session_heartbeat import session_heartbeat as session_heartbeat
