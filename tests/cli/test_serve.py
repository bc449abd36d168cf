"""``tinkerwire serve`` as a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from support.scripted import PATIENCE_S
from tinkerwire._server.http.content_encoding import MAX_BODY_BYTES

NANO = "tinkerwire/byte-nano"
READY = re.compile(r"tinkerwire serves the Tinker API at (http://[^ ]+) \(models: (.+)\)\n")
Start = Callable[..., "tuple[subprocess.Popen[str], httpx.Client]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts ``tinkerwire serve`` with the given flags, and stops it after the test."""
    running: list[tuple[subprocess.Popen[str], httpx.Client]] = []

    def run(*flags: str) -> tuple[subprocess.Popen[str], httpx.Client]:
        command = [
            sys.executable,
            "-m",
            "tinkerwire",
            "serve",
            "--port",
            "0",
            "--folder",
            str(tmp_path / "data"),
            *flags,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        match = READY.fullmatch(line)
        assert match is not None, (line, process.stderr and process.stderr.read())
        running.append((process, httpx.Client(base_url=match[1] + "/api/v1/", timeout=PATIENCE_S)))
        return running[-1]

    yield run
    for process, client in running:
        client.close()
        process.kill()
        process.communicate()


def _do(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    result = client.post("retrieve_future", json={"request_id": answer.json()["request_id"]})
    assert result.status_code == 200, result.text
    return result.json()


def _session(client: httpx.Client) -> str:
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    found: str = client.post("create_session", json=body).json()["session_id"]
    return found


def test_the_whole_flow_over_http(start: Start, batch: Any) -> None:
    """Create, train, save, list, fetch the archive, sample, delete; then SIGTERM ends it at once with code 0."""
    process, client = start("--seed", "1")
    session_id = _session(client)
    body = {"session_id": session_id, "model_seq_id": 0, "base_model": NANO}
    model_id = _do(client, "create_model", body)["model_id"]
    _do(client, "forward_backward", {"model_id": model_id, "forward_backward_input": batch(), "seq_id": 1})
    _do(client, "optim_step", {"model_id": model_id, "adam_params": {}, "seq_id": 2})
    _do(client, "save_weights", {"model_id": model_id, "path": "a", "seq_id": 3})
    path = _do(client, "save_weights_for_sampler", {"model_id": model_id, "path": "b", "seq_id": 4})["path"]
    listed = client.get("checkpoints", params={"limit": 10}).json()
    assert [each["checkpoint_id"] for each in listed["checkpoints"]] == ["sampler_weights/b", "weights/a"]
    archive = client.get(f"training_runs/{model_id}/checkpoints/weights/a/archive")
    assert archive.status_code == 302
    assert client.get(archive.headers["location"]).content.startswith(b"PK")
    opened = client.post(
        "create_sampling_session", json={"session_id": session_id, "sampling_session_seq_id": 0, "model_path": path}
    )
    ask = {
        "sampling_session_id": opened.json()["sampling_session_id"],
        "prompt": {"chunks": [{"tokens": [1]}]},
        "sampling_params": {"max_tokens": 4},
    }
    assert len(_do(client, "asample", ask)["sequences"][0]["tokens"]) == 4
    deleted = client.delete(f"training_runs/{model_id}/checkpoints/weights/a")
    assert (deleted.status_code, deleted.content) == (204, b"")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    out, err = process.communicate()
    assert (out, err) == ("", "")


def test_it_stops_while_a_poll_waits(start: Start, batch: Any) -> None:
    """SIGINT ends a server that is at work, and waits neither for the work nor for the poll."""
    process, client = start("--long-poll", "1000")
    body = {"session_id": _session(client), "model_seq_id": 0, "base_model": "tinkerwire/byte-small"}
    model_id = _do(client, "create_model", body)["model_id"]
    big = batch(list(range(256)) * 8)
    big["data"] *= 16
    for _ in range(20):
        client.post("forward_backward", json={"model_id": model_id, "forward_backward_input": big})
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0


def test_http_is_read_as_it_may_come(start: Start) -> None:
    """Compressed bodies, prefixed and unknown paths, wrong methods, broken bodies: never a 500."""
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
def test_a_body_beyond_all_bounds_is_413(start: Start, encoding: str) -> None:
    """In JSON, with the bound, and without filling the memory, however few bytes it takes on the wire."""
    _, client = start()
    body = b'{"tags": [' + b"0," * (MAX_BODY_BYTES // 2) + b"0]}"
    sent = zlib.compress(body, wbits=31) if encoding else body
    answer = client.post("create_session", content=sent, headers={"content-encoding": encoding or "identity"})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (413, "application/json")
    assert answer.json()["detail"] == f"the body must not exceed {MAX_BODY_BYTES} bytes; send smaller batches"
    assert client.get("healthz").status_code == 200


def test_misbehaviour_drops_real_connections(start: Start) -> None:
    """A reset and a lost reply break the connection; the resend under the key finds one session, not two."""
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


def test_a_restarted_process_has_the_checkpoints(start: Start) -> None:
    """A server that was killed outright leaves its checkpoints to the next one on the folder."""
    process, client = start()
    body = {"session_id": _session(client), "model_seq_id": 0, "base_model": NANO}
    model_id = _do(client, "create_model", body)["model_id"]
    path = _do(client, "save_weights", {"model_id": model_id, "path": "a"})["path"]
    process.kill()
    process.wait()
    _, client = start()
    assert client.get("checkpoints").json()["checkpoints"][0]["tinker_path"] == path


WRONG_FLAGS: list[tuple[list[str], str]] = [
    (["--wire", "9.9"], "--wire: wire version must be .* got 9.9"),
    (["--wire", "latest"], "--wire: .*latest"),
    (["--inject-faults", "p_1=2"], "--inject-faults: .*p_1=2"),
    (["--quirks", "failure=501"], "--quirks: .*501"),
    (["--alias", "x"], "--alias: .*NAME=MODEL"),
    (["--alias", "x=no-such-model"], "--alias: .*no-such-model"),
    (["--flag", "x"], "--flag: .*NAME=VALUE"),
    (["--flag", "no_such_flag=1"], "--flag: .*no_such_flag"),
    (["--wire", "0.38.0", "--flag", "proto_compress_fwdbwd=7"], "--flag: .*proto_compress_fwdbwd"),
    (["--port", "x"], "--port: .*x"),
    (["--port", "99999"], "--port: 99999"),
    (["--long-poll", "-1"], "--long-poll: -1"),
    (["--gap-wait", "inf"], "--gap-wait: inf"),
    (["--seed", "x"], "--seed: .*x"),
    (["--nonsense"], "unrecognized arguments: --nonsense"),
]


@pytest.mark.parametrize(("flags", "reason"), WRONG_FLAGS, ids=[" ".join(flags) for flags, _ in WRONG_FLAGS])
def test_wrong_flags_are_named(flags: list[str], reason: str, tmp_path: Path) -> None:
    """The exit code is 2, after one line on stderr that names the flag."""
    command = [sys.executable, "-m", "tinkerwire", "serve", "--folder", str(tmp_path / "data"), *flags]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(
        rf"tinkerwire( serve)?: error: (argument )?{reason}.*; see `tinkerwire( serve)? --help`\n", run.stderr
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("words", [[], ["nonsense"], ["--nonsense"], ["auth"], ["demo", "--seed", "x"]], ids=str)
def test_wrong_commands_are_named(words: list[str]) -> None:
    """The exit code is 2, after one line on stderr."""
    command = [sys.executable, "-m", "tinkerwire", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(r"tinkerwire.*: error: .*(COMMAND|--seed).*; see `tinkerwire.* --help`\n", run.stderr)
