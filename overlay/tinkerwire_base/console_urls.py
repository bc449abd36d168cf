"""Pages of the Tinker service's console; other servers have none."""

from __future__ import annotations

from urllib.parse import quote

CONSOLE = "https://tinker.thinkingmachines.ai"
KEYS = f"{CONSOLE}/keys"
"""The page of the user's API keys."""


def session_page(session_id: str) -> str:
    """The page of a session."""
    return f"{CONSOLE}/sessions/{quote(session_id, safe=':')}"


def run_page(training_run_id: str) -> str:
    """The page of a training run."""
    return f"{CONSOLE}/training_runs/{quote(training_run_id, safe=':')}"


def checkpoint_page(training_run_id: str, checkpoint_id: str) -> str:
    """The page of a checkpoint."""
    return f"{CONSOLE}/checkpoints/{quote(training_run_id, safe='')}/{quote(checkpoint_id, safe='')}"


def playground_page(tinker_path: str) -> str:
    """The page where one talks to the weights at a path."""
    return f"{CONSOLE}/playground?mode=checkpoint&checkpoint={quote(tinker_path, safe='')}"


def new_key_page(name: str) -> str:
    """The page where one makes an API key, with a name that is proposed for it."""
    return f"{KEYS}?new_key=true&key_name={quote(name, safe='')}"
