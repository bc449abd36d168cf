"""Pages of the console."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from tinkerwire import console

pytestmark = pytest.mark.timeout(60)


def test_pages_of_session_and_run(client: tw.ServiceClient) -> None:
    """Each names what is there, and waits until it is."""
    assert client.create_lora_training_client("base").get_console_url() == f"{console.CONSOLE}/training_runs/m1"
    assert client.get_console_url() == f"{console.CONSOLE}/sessions/s1"


def test_ids_stand_in_a_path() -> None:
    """Colons stay, slashes do not."""
    assert console.run_page("s1:train:0/a b") == f"{console.CONSOLE}/training_runs/s1:train:0%2Fa%20b"
