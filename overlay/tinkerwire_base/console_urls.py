"""URLs of the Tinker service's web console; other servers do not have one."""

from __future__ import annotations

from urllib.parse import quote

CONSOLE = "https://tinker.thinkingmachines.ai"
KEYS = f"{CONSOLE}/keys"
"""URL of the page of the user's API keys."""


def session_page(session_id: str) -> str:
    """Return the URL of a session's page."""
    return f"{CONSOLE}/sessions/{quote(session_id, safe=':')}"


def run_page(training_run_id: str) -> str:
    """Return the URL of a training run's page."""
    return f"{CONSOLE}/training_runs/{quote(training_run_id, safe=':')}"


def checkpoint_page(training_run_id: str, checkpoint_id: str) -> str:
    """Return the URL of a checkpoint's page."""
    return f"{CONSOLE}/checkpoints/{quote(training_run_id, safe='')}/{quote(checkpoint_id, safe='')}"


def playground_page(tinker_path: str) -> str:
    """Return the URL of the page where a user chats with the weights at a path."""
    return f"{CONSOLE}/playground?mode=checkpoint&checkpoint={quote(tinker_path, safe='')}"


def new_key_page(name: str) -> str:
    """Return the URL of the page that creates an API key, with a suggested name."""
    return f"{KEYS}?new_key=true&key_name={quote(name, safe='')}"
