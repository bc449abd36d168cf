"""Tests of the embedded server's folder: named, or temporary for the process."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT
from tinkerwire._server.storage import temporary_folder
from tinkerwire._transport.address import embedded_folder, is_embedded, resolve_base_url
from tinkerwire._transport.embedded import shared_server

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
MODEL = "tinkerwire/byte-small"
SAVE = """
import os, sys, tinkerwire as tw
client = tw.ServiceClient(base_url=sys.argv[1] if len(sys.argv) > 1 else None)
print(client.create_lora_training_client("tinkerwire/byte-small", rank=2).save_state("a").result(100).path, flush=True)
"""
LOAD = """
import os, sys, tinkerwire as tw
with tw.ServiceClient(base_url=sys.argv[1]) as client:
    client.create_training_client_from_state(sys.argv[2]).result(100)
    print(len(client.create_rest_client().list_user_checkpoints().result(100).checkpoints))
"""
WAIT = SAVE + "sys.stdin.readline()\n"


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)


def list_temporary_folders(parent: Path) -> list[str]:
    """Return the embedded servers' folders inside a temporary folder."""
    return [path.name for path in parent.glob(f"{temporary_folder.FOLDER_PREFIX}*")]


def test_named_folder_keeps_checkpoints(tmp_path: Path) -> None:
    """A process loads what another one saved, and the log reports no loss."""
    address = f"local:{tmp_path / 'runs'}"
    saved = run(SAVE, address)
    assert not saved.stderr
    assert run(LOAD, address, saved.stdout.strip()).stdout.strip() == "1"


@pytest.mark.parametrize(
    "variables", [{"TINKER_BASE_URL": "local:{}"}, {"TINKER_BASE_URL": "local", "TINKERWIRE_LOCAL_FOLDER": "{}"}]
)
def test_environment_variable_sets_folder(tmp_path: Path, variables: dict[str, str]) -> None:
    """TINKER_BASE_URL or TINKERWIRE_LOCAL_FOLDER names the folder."""
    run(SAVE, **{name: value.format(tmp_path) for name, value in variables.items()})
    assert list(tmp_path.rglob("*.npz"))


def test_folder_of_an_address_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Home and relative paths become absolute; ``local`` has no folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    resolved_path = str(tmp_path.resolve())
    for text, folder in {
        "local:~/runs": f"{resolved_path}/runs",
        "local:runs/": f"{resolved_path}/runs",
        "local:./a/../runs": f"{resolved_path}/runs",
        f"local:{resolved_path}": resolved_path,
        "local:/": "/",
        "local:a:b": f"{resolved_path}/a:b",
    }.items():
        address = resolve_base_url(text)
        assert address == f"local:{folder}"
        assert is_embedded(address)
        assert embedded_folder(address) == Path(folder)
    assert resolve_base_url("local") == resolve_base_url("local/") == "local"
    assert embedded_folder("local") is None
    assert not is_embedded("http://local:80")
    for text in ("local:", "local: ", "local:~nobody-of-this-name/a", "local:a\0b"):
        with pytest.raises(ValueError, match="base_url"):
            resolve_base_url(text)


def test_clients_of_one_process_share_a_folder(tmp_path: Path) -> None:
    """Two clients use one server; after the last one another process may use the folder."""
    address = f"local:{tmp_path}"
    with tw.ServiceClient(base_url=address) as first:
        with tw.ServiceClient(base_url=f"local:{tmp_path}/.") as second:
            path = second.create_lora_training_client(MODEL, rank=2).save_state("a").result().path
        first.create_training_client_from_state(path).result()
        with pytest.raises(subprocess.CalledProcessError):
            run(LOAD, address, path)
    assert run(LOAD, address, path).stdout.strip() == "1"
    with tw.ServiceClient(base_url=address) as second_client:
        second_client.create_training_client_from_state(path).result()


def test_folder_in_use_raises_error_with_advice(tmp_path: Path) -> None:
    """The error of a second process names the folder and the alternatives."""
    with tw.ServiceClient(base_url=f"local:{tmp_path}"):
        command = [sys.executable, "-c", SAVE, f"local:{tmp_path}"]
        child = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert f"ValueError: folder: another server uses {tmp_path.resolve()}; close its client" in child.stderr
    assert "tinkerwire serve --folder" in child.stderr


def test_unusable_folder_is_rejected(tmp_path: Path) -> None:
    """A file at the path raises a ValueError that names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file cannot be used"):
        tw.ServiceClient(base_url=f"local:{tmp_path / 'file'}")


def test_clients_of_a_folder_stay_in_their_process(tmp_path: Path) -> None:
    """Handles and pickles raise an error that names the address and the alternative."""
    with tw.ServiceClient(base_url=f"local:{tmp_path}") as client:
        sampling = client.create_sampling_client(base_model=MODEL)
        sampling.sample(PROMPT, 1, PARAMS).result()
        for send in (sampling.get_sampler_handle, lambda: pickle.dumps(sampling)):
            with pytest.raises(
                ValueError, match=f"base_url='local:{tmp_path.resolve()}' cannot be used in another process"
            ):
                send()


def test_losing_checkpoints_of_a_temporary_folder_is_logged(tmp_path: Path) -> None:
    """One log line gives the number of lost checkpoints and how to keep them; without checkpoints nothing is logged."""
    ended = run(SAVE, "local", TMPDIR=str(tmp_path))
    assert ended.stderr.splitlines() == [
        "1 checkpoint of the embedded server will be lost with the temporary folder of this process; "
        'base_url="local:FOLDER" or TINKERWIRE_LOCAL_FOLDER=FOLDER keeps them'
    ]
    assert not list_temporary_folders(tmp_path)
    use = "import tinkerwire as tw\nwith tw.ServiceClient(base_url='local') as c: c.get_server_capabilities()"
    assert not run(use, TMPDIR=str(tmp_path)).stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_no_temporary_folder(tmp_path: Path, number: signal.Signals) -> None:
    """The signal ends the process as without the client, and the folder is gone."""
    # Signals that nohup and background jobs ignore are inherited.
    default = f"import signal\nsignal.signal({int(number)}, signal.SIG_DFL)\n"
    with start_program(default + WAIT, tmp_path) as process:
        assert list_temporary_folders(tmp_path)
        process.send_signal(number)
        assert process.wait(60) == -number
    assert not list_temporary_folders(tmp_path)


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: print('handled', flush=True)"])
def test_signal_handlers_of_the_program_stay(tmp_path: Path, handler: str) -> None:
    """A program that handles or ignores the signal still does so with the embedded server."""
    program = f"import signal\nsignal.signal(signal.SIGTERM, {handler})\n{WAIT}print('end', flush=True)\n"
    with start_program(program, tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate("\n", timeout=60)
    assert output.splitlines() == [*(["handled"] if "lambda" in handler else []), "end"]
    assert process.returncode == 0
    assert not list_temporary_folders(tmp_path)


def test_next_process_removes_folder_of_killed_process(tmp_path: Path) -> None:
    """The next process removes folders of ended processes and leaves those of running ones."""
    with start_program(WAIT, tmp_path) as running:
        with start_program(WAIT, tmp_path) as killed:
            assert len(list_temporary_folders(tmp_path)) == 2
            killed.kill()
            killed.wait(60)
        assert len(list_temporary_folders(tmp_path)) == 2
        run(SAVE, "local", TMPDIR=str(tmp_path))
        (remaining_folder,) = list_temporary_folders(tmp_path)
        assert remaining_folder.startswith(f"{temporary_folder.FOLDER_PREFIX}{running.pid}-")
        running.communicate("\n", timeout=60)
    assert not list_temporary_folders(tmp_path)


def test_foreign_folders_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders with a similar name stay, and so do links to other folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    linked_folder = tmp_path / "kept"
    linked_folder.mkdir()
    (linked_folder / "file").write_text("")
    (tmp_path / "tinkerwire-99999999-link").symlink_to(linked_folder)
    (tmp_path / "tinkerwire-x-1").mkdir()
    (tmp_path / "tinkerwire-99999999-gone").mkdir()
    temporary_folder.remove(temporary_folder.create())
    assert sorted(list_temporary_folders(tmp_path)) == ["tinkerwire-99999999-link", "tinkerwire-x-1"]
    assert (linked_folder / "file").exists()


def test_forked_child_leaves_the_folder_to_its_parent() -> None:
    """A child that a signal ends does not remove its parent's folder."""
    with tw.ServiceClient(base_url="local") as client:
        client.get_server_capabilities()
        folder = shared_server().folder
        pid = os.fork()
        if not pid:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGTERM
        assert folder.exists()


def start_program(program: str, folder: Path) -> subprocess.Popen[str]:
    """Start a program that saves a checkpoint on the embedded server and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, "local"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("tinker://")
    return process
