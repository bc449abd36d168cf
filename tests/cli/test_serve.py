"""Tests of ``tinkerwire serve`` as a separate process, and of wrong usage of the command line."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import orjson
import pytest

from support.scripted import TEST_TIMEOUT_S
from support.server_fixtures import BatchFactory
from tinkerwire._server.http.content_encoding import MAX_BODY_BYTES

NANO = "tinkerwire/byte-nano"
READY = re.compile(r"tinkerwire serves the Tinker API at (http://[^ ]+) \(models: (.+)\)\n")


class ServerStarter(Protocol):
    """Starts ``tinkerwire serve`` as a process that is killed after the test."""

    def __call__(self, *flags: str) -> tuple[subprocess.Popen[str], httpx.Client]:
        """ServerStarter a server and return its process and an HTTP client of it."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[ServerStarter]:
    """ServerStarter servers that share a folder, and kill them after the test."""
    running: list[tuple[subprocess.Popen[str], httpx.Client]] = []

    def run(*flags: str) -> tuple[subprocess.Popen[str], httpx.Client]:
        folder = str(tmp_path / "data")
        command = [sys.executable, "-m", "tinkerwire", "serve", "--port", "0", "--folder", folder, *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        match = READY.fullmatch(line)
        assert match is not None, (line, process.stderr and process.stderr.read())
        running.append((process, httpx.Client(base_url=match[1] + "/api/v1/", timeout=TEST_TIMEOUT_S)))
        return running[-1]

    yield run
    for process, client in running:
        client.close()
        process.kill()
        process.communicate()


def _run_operation(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    submission = client.post(path, json=body)
    assert submission.status_code == 200, submission.text
    result = client.post("retrieve_future", json={"request_id": submission.json()["request_id"]})
    assert result.status_code == 200, result.text
    return result.json()


def _create_session(client: httpx.Client) -> str:
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    session_id: str = client.post("create_session", json=body).json()["session_id"]
    return session_id


def test_server_trains_samples_and_stops_on_sigterm(start: ServerStarter, batch: BatchFactory) -> None:
    """Train, save, list, download, sample and delete over HTTP; SIGTERM then ends the server with code 0."""
    process, client = start("--seed", "1")
    session_id = _create_session(client)
    body = {"session_id": session_id, "model_seq_id": 0, "base_model": NANO}
    model_id = _run_operation(client, "create_model", body)["model_id"]
    _run_operation(client, "forward_backward", {"model_id": model_id, "forward_backward_input": batch(), "seq_id": 1})
    _run_operation(client, "optim_step", {"model_id": model_id, "adam_params": {}, "seq_id": 2})
    _run_operation(client, "save_weights", {"model_id": model_id, "path": "a", "seq_id": 3})
    path = _run_operation(client, "save_weights_for_sampler", {"model_id": model_id, "path": "b", "seq_id": 4})["path"]
    listing = client.get("checkpoints", params={"limit": 10}).json()
    assert [checkpoint["checkpoint_id"] for checkpoint in listing["checkpoints"]] == ["sampler_weights/b", "weights/a"]
    archive = client.get(f"training_runs/{model_id}/checkpoints/weights/a/archive")
    assert archive.status_code == 302
    content = io.BytesIO(client.get(archive.headers["location"]).content)
    with tarfile.open(fileobj=content) as tar:
        assert tar.getnames() == ["a.npz", "checkpoint_complete"]
    tail = client.get(archive.headers["location"], headers={"range": "bytes=-10"})
    assert (tail.status_code, tail.content) == (206, content.getvalue()[-10:])
    sampler = client.post(
        "create_sampling_session", json={"session_id": session_id, "sampling_session_seq_id": 0, "model_path": path}
    )
    sample_request = {
        "sampling_session_id": sampler.json()["sampling_session_id"],
        "prompt": {"chunks": [{"tokens": [1]}]},
        "sampling_params": {"max_tokens": 4},
    }
    assert len(_run_operation(client, "asample", sample_request)["sequences"][0]["tokens"]) == 4
    deleted = client.delete(f"training_runs/{model_id}/checkpoints/weights/a")
    assert (deleted.status_code, deleted.content) == (204, b"")
    process.send_signal(signal.SIGTERM)
    assert process.wait(TEST_TIMEOUT_S) == 0
    assert process.communicate() == ("", "")


def test_address_is_one_line_of_json(tmp_path: Path) -> None:
    """A program reads the address while the server runs."""
    command = [sys.executable, "-m", "tinkerwire", "serve", "--port", "0", "--folder", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = orjson.loads(process.stdout.readline())
        process.terminate()
    assert answer["address"].startswith("http://127.0.0.1:")
    assert NANO in answer["models"]


def test_sigint_stops_a_busy_server(start: ServerStarter, batch: BatchFactory) -> None:
    """The server does not finish its work before it ends."""
    process, client = start("--long-poll", "1000")
    body = {"session_id": _create_session(client), "model_seq_id": 0, "base_model": "tinkerwire/byte-small"}
    model_id = _run_operation(client, "create_model", body)["model_id"]
    large_batch = batch(list(range(256)) * 8)
    large_batch["data"] *= 16
    for _ in range(20):
        client.post("forward_backward", json={"model_id": model_id, "forward_backward_input": large_batch})
    process.send_signal(signal.SIGINT)
    assert process.wait(TEST_TIMEOUT_S) == 0


def test_malformed_http_requests_get_4xx(start: ServerStarter) -> None:
    """Invalid bodies, unknown paths, wrong methods and wrong queries get a 4xx; a deflated body is accepted."""
    _, client = start()
    content = orjson.dumps({"tags": [], "user_metadata": {}, "sdk_version": "0.16.1"})
    headers = {"content-type": "application/json; charset=utf-8", "content-encoding": "deflate"}
    assert client.post("create_session", content=zlib.compress(content), headers=headers).status_code == 200
    assert client.post("create_session", content=b"no deflate", headers=headers).status_code == 400
    assert client.get("nothing").status_code == 404
    assert client.get("/").status_code == 404
    assert client.put("create_session").headers["allow"] == "POST"
    assert client.post("create_session", content=b"\xff" * 9).status_code == 422
    assert client.get("training_runs/a%2F..%2Fb").status_code == 404
    assert client.get("checkpoints?limit=5&limit=x").status_code == 422


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_oversized_body_gets_413(start: ServerStarter, encoding: str) -> None:
    """The limit counts decompressed bytes; the response is JSON and names the limit, and the server continues."""
    _, client = start()
    body = b'{"tags": [' + b"0," * (MAX_BODY_BYTES // 2) + b"0]}"
    content = gzip.compress(body) if encoding else body
    response = client.post("create_session", content=content, headers={"content-encoding": encoding or "identity"})
    assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (413, "application/json")
    assert response.json()["detail"] == f"the body must not exceed {MAX_BODY_BYTES} bytes; send smaller batches"
    assert client.get("healthz").status_code == 200


def test_fault_injection_drops_connections(start: ServerStarter) -> None:
    """A reset and a lost response break the connection; a resend with the same key creates no second session."""
    _, client = start("--seed", "5", "--inject-faults", "p_lost_reply=0.5,p_reset=0.2,only=create_session")
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    drops = 0
    for number in range(10):
        while True:
            try:
                client.post("create_session", json=body, headers={"x-idempotency-key": str(number)})
                break
            except httpx.TransportError:
                drops += 1
    assert drops > 3
    assert len(client.get("sessions").json()["sessions"]) == 10


def test_restarted_server_lists_earlier_checkpoints(start: ServerStarter) -> None:
    """A killed server leaves its checkpoints to the next server with the same folder."""
    process, client = start()
    body = {"session_id": _create_session(client), "model_seq_id": 0, "base_model": NANO}
    model_id = _run_operation(client, "create_model", body)["model_id"]
    path = _run_operation(client, "save_weights", {"model_id": model_id, "path": "a"})["path"]
    process.kill()
    process.wait()
    _, client = start()
    assert client.get("checkpoints").json()["checkpoints"][0]["tinker_path"] == path


INVALID_FLAGS: list[tuple[list[str], str]] = [
    (["--wire", "9.9"], "--wire: wire version must be .* got 9.9"),
    (["--wire", "latest"], "--wire: .*latest"),
    (["--inject-faults", "p_1=2"], "--inject-faults: .*p_1=2"),
    (["--quirks", "failure=501"], "--quirks: .*501"),
    (["--alias", "x"], "--alias: .*NAME=VALUE"),
    (["--alias", "x=no-such-model"], "--alias: .*no-such-model"),
    (["--flag", "x"], "--flag: .*NAME=VALUE"),
    (["--flag", "no_such_flag=1"], "--flag: .*no_such_flag"),
    (["--wire", "0.38.0", "--flag", "proto_compress_fwdbwd=7"], "--flag: .*proto_compress_fwdbwd"),
    (["--port", "x"], "--port: .*x"),
    (["--port", "99999"], "--port: 99999 is not in the range 0<=x<=65535"),
    (["--long-poll", "-1"], "--long-poll: .*-1"),
    (["--gap-wait", "inf"], "--gap-wait: .*inf"),
    (["--seed", "x"], "--seed: .*x"),
    (["--nonsense"], "unknown option --nonsense"),
]


@pytest.mark.parametrize(("flags", "reason"), INVALID_FLAGS, ids=[" ".join(flags) for flags, _ in INVALID_FLAGS])
def test_invalid_flag_exits_with_2(flags: list[str], reason: str, tmp_path: Path) -> None:
    """Standard error has one line, which names the flag; the server creates no folder."""
    command = [sys.executable, "-m", "tinkerwire", "serve", "--folder", str(tmp_path / "data"), *flags]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TEST_TIMEOUT_S, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(
        rf"tinkerwire( serve)?: error: (argument )?{reason}.*; see `tinkerwire( serve)? --help`\n", run.stderr
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [(["serve", "--port", "0"], "jsonschema_rs", "server"), (["demo"], "rich", "demo")],
)
def test_command_without_its_packages_names_the_extra(
    arguments: list[str], package: str, extra: str, tmp_path: Path
) -> None:
    """A bare installation gets one line with the way out, no traceback."""
    # A module of this name that cannot be imported hides the installed one.
    (tmp_path / f"{package}.py").write_text("raise ImportError\n")
    run = subprocess.run(
        [sys.executable, "-m", "tinkerwire", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert run.stderr.endswith(f"needs the package {package}; install the extra: pip install 'tinkerwire[{extra}]'\n")


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["auth"], ["demo", "--seed", "x"]], ids=str)
def test_invalid_command_exits_with_2(arguments: list[str]) -> None:
    """Standard error has one line, which names the command or flag."""
    command = [sys.executable, "-m", "tinkerwire", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TEST_TIMEOUT_S, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(r"tinkerwire.*: error: .*(COMMAND|--nonsense|--seed).*; see `.* --help`\n", run.stderr)
