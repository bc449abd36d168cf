"""Signs in an error response that the server no longer has the session of a request, or its result."""

from __future__ import annotations

import re

from tinkerwire_base.errors import APIStatusError, NotFoundError, TinkerError

LOSS_STATUSES = frozenset({400, 404, 410})
"""Statuses that servers give for things that they no longer have."""
HEARTBEAT_PATH = "session_heartbeat"
_MISSING = r"not found|not exist|doesn t exist|not known|not recogni[sz]ed|no longer|unknown|expired|gone|no such"
_LOSS = rf"(?:{_MISSING}|there is no|not active|closed|ended|finished|terminated|invalid|missing|unloaded)"
_LOSS_PATTERN = re.compile(rf"\b{_LOSS}\b")
_SESSION_LOSS_PATTERN = re.compile(
    rf"(?<!sampling )\bsession(?: id)?(?: [\w.:]+)?(?: (?:is|was|has|does|did|could|be|been|already))* {_LOSS}\b"
    rf"|\b(?:{_LOSS}|no) session\b"
)
_UNSUPPORTED = re.compile(r"\b(?:support|implement|endpoint|route|disabled|cannot post|method)")


def may_mean_loss(error: TinkerError) -> bool:
    """Check whether an error may mean a lost session, so that asking the server about the session is worth it."""
    if not isinstance(error, APIStatusError) or error.status_code not in LOSS_STATUSES:
        return False
    # Most responses of status 400 are about the request itself.
    return error.status_code != 400 or _LOSS_PATTERN.search(_words(error)) is not None


def names_lost_session(error: TinkerError) -> bool:
    """Check whether the text of an error response means that the session is lost; a sampling session does not count.

    Servers write "Session s1 not found", "session_not_found", "Unknown session" and the like.
    """
    if not isinstance(error, APIStatusError) or error.status_code not in LOSS_STATUSES:
        return False
    return _SESSION_LOSS_PATTERN.search(_words(error)) is not None


def names_missing_thing(error: APIStatusError) -> bool:
    """Check whether the text of an error response means that something does not exist, or is empty."""
    words = _words(error).strip()
    return not words or re.search(rf"\b(?:{_MISSING})\b", words) is not None


def may_refuse_session(error: BaseException) -> bool:
    """Check whether the error of a heartbeat may be about the session; a 404 may be about the path instead."""
    return isinstance(error, NotFoundError) or (isinstance(error, TinkerError) and names_lost_session(error))


def names_session(error: TinkerError, session_id: str) -> bool:
    """Check whether the response to a heartbeat is about the session, as opposed to a missing path."""
    if not isinstance(error, APIStatusError) or error.status_code not in LOSS_STATUSES:
        return False
    text = error.response.text.replace(HEARTBEAT_PATH, "")
    words = _words(error)
    return session_id in text or ("session" in words and not _UNSUPPORTED.search(words))


def _words(error: APIStatusError) -> str:
    """Return the text of a response in lower case, with single spaces for marks and between the parts of names."""
    text = error.response.text[:2000].replace(HEARTBEAT_PATH, "")
    return re.sub(r"[^a-z0-9.:]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
