"""Tests that a folder belongs to one server at a time, also after a kill or a fork."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinkerwire._files import LOCK_FILE
from tinkerwire.local import EmbeddedServer

pytestmark = pytest.mark.timeout(120)


def test_second_server_on_a_folder_is_rejected(tmp_path: Path) -> None:
    """The error names the folder; a server that closes, or fails to start, releases it."""
    folder = tmp_path / "data"
    with pytest.raises(ValueError, match="alias"):
        EmbeddedServer(folder=folder, aliases={"a": "no-such-model"})
    for _ in range(2):
        with EmbeddedServer(folder=folder), pytest.raises(ValueError, match=f"another server uses {folder}"):
            EmbeddedServer(folder=folder)


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_users_of_a_folder_can_lock_each_others_file(tmp_path: Path) -> None:
    """The lock file is readable and writable for all who can reach the folder, under any umask."""
    previous = os.umask(0o077)
    try:
        with EmbeddedServer(folder=tmp_path):
            assert (tmp_path / LOCK_FILE).stat().st_mode & 0o666 == 0o666
    finally:
        os.umask(previous)


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
    rejection = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert rejection.returncode != 0
    assert f"another server uses {tmp_path}" in rejection.stderr
    assert "Traceback" not in rejection.stderr
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


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_folder_on_a_file_system_without_locks_is_used_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Two servers can use the folder; the user has to prevent that."""
    fcntl = pytest.importorskip("fcntl")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    with EmbeddedServer(folder=tmp_path), EmbeddedServer(folder=tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no permissions of this kind")
def test_read_only_folder_is_used_unlocked() -> None:
    """Sessions and samples live in memory, models are rejected for good; an unreadable folder is an error."""
    code = """
import os, pathlib, tempfile, tinkerwire as tw, tinkerwire.local
tinkerwire.local.EmbeddedServer().close()
read_only, unreadable = (pathlib.Path(tempfile.mkdtemp()) for _ in range(2))
read_only.chmod(0o555)
unreadable.chmod(0)
try:
    if os.geteuid() == 0:
        os.seteuid(65534)
    for _ in range(2):
        tinkerwire.local.EmbeddedServer(folder=read_only).close()
    with tinkerwire.local.EmbeddedServer(folder=read_only) as server:
        transport = tinkerwire.local.embedded_transport(server)
        with tw.ServiceClient(transport=transport, api_key="tml-x") as client:
            sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
            sample = sampling.sample(tw.ModelInput.from_ints([1]), 1, tw.SamplingParams(max_tokens=1))
            assert sample.result(60).sequences
            try:
                client.create_lora_training_client("tinkerwire/byte-nano", rank=2).result(60)
            except tw.APIStatusError as error:
                assert error.status_code == 503 and "cannot be written" in str(error), error
            else:
                raise AssertionError("no error")
    assert not list(read_only.iterdir())
    try:
        tinkerwire.local.EmbeddedServer(folder=unreadable)
    except ValueError as error:
        assert "cannot be used: Permission denied" in str(error), error
    else:
        raise AssertionError("no error")
finally:
    os.seteuid(os.getuid())
    read_only.rmdir()
    unreadable.rmdir()
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
