"""Tests that a folder belongs to one server at a time, also after a kill or a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinkerwire._files import fcntl
from tinkerwire.local import EmbeddedServer

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(fcntl is None, reason="the system has no such locks")]


def test_second_server_on_a_folder_is_rejected(tmp_path: Path) -> None:
    """The error names the folder; a server that closes, or fails to start, releases it."""
    folder = tmp_path / "data"
    with pytest.raises(ValueError, match="alias"):
        EmbeddedServer(folder=folder, aliases={"a": "no-such-model"})
    for _ in range(2):
        with EmbeddedServer(folder=folder), pytest.raises(ValueError, match=f"another server uses {folder}"):
            EmbeddedServer(folder=folder)


def test_killed_server_releases_its_folder(tmp_path: Path) -> None:
    """A running process holds the folder, and a killed one does not."""
    code = f"""
import time, tinkerwire.local
server = tinkerwire.local.EmbeddedServer(folder={str(tmp_path)!r})
print("ready", flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    command = [sys.executable, "-m", "tinkerwire", "serve", "--port", "0", "--folder", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert f"another server uses {tmp_path}" in refused.stderr
    assert "Traceback" not in refused.stderr
    process.kill()
    process.communicate()
    EmbeddedServer(folder=tmp_path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forked_child_does_not_hold_the_folder(tmp_path: Path) -> None:
    """The child inherits the handle, and may live longer."""
    code = f"""
import os, time, tinkerwire.local
server = tinkerwire.local.EmbeddedServer(folder={str(tmp_path)!r})
reading, writing = os.pipe()
if os.fork() == 0:
    os.read(reading, 1)
    os._exit(0)
server.close()
tinkerwire.local.EmbeddedServer(folder={str(tmp_path)!r}).close()
os.write(writing, b"x")
os.wait()
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.parametrize("is_given", [True, False], ids=["a folder", "a temporary folder"])
def test_exit_of_a_forked_child_keeps_the_folder_of_the_parent(tmp_path: Path, is_given: bool) -> None:
    """The child's copy of the server neither releases nor removes the folder."""
    code = f"""
import os, sys, tinkerwire.local
server = tinkerwire.local.EmbeddedServer(folder={str(tmp_path) if is_given else None!r})
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert server.folder.exists()
if {is_given}:
    try:
        tinkerwire.local.EmbeddedServer(folder=server.folder)
    except ValueError:
        pass
    else:
        raise AssertionError("given back")
server.close()
assert server.folder.exists() == {is_given}
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
