"""Tests of the stubs of ``tinker``, which type checkers read in place of the official SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinkerwire.dropin.stubs import write_stubs

pytestmark = pytest.mark.timeout(600)
PROGRAM = """\
import tinker
from tinker import APIFuture, types
from tinker.lib.public_interfaces import TrainingClient
from tinker.lib.public_interfaces.api_future import AwaitableConcurrentFuture
from tinker.lib.retry_handler import RetryConfig
from tinker.proto import tinker_public_pb2 as pb
from tinker.proto.request_conv import forward_backward_request_to_proto
from tinker.types.model_input import ModelInput
from tinker.types.tensor_data import TensorData

config: RetryConfig = RetryConfig(200, enable_stuck_detection=False)
future_type: type[AwaitableConcurrentFuture[int]] | None = None


def train(service: tinker.ServiceClient) -> float:
    client: TrainingClient = service.create_lora_training_client("base", rank=4)
    tokens = TensorData(data=[1, 2], dtype="int64", shape=[2])
    datum = types.Datum(model_input=ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": tokens})
    future: APIFuture[tinker.ForwardBackwardOutput] = client.forward_backward([datum], "cross_entropy")
    client.optim_step(tinker.AdamParams(learning_rate=1e-4)).result()
    return future.result().metrics["loss:sum"]


def size(request: types.ForwardBackwardRequest) -> int:
    message = pb.ForwardBackwardRequest(model_id="m", seq_id=1)
    return len(message.SerializeToString()) + len(forward_backward_request_to_proto(request).SerializeToString())


def key() -> str | None:
    return tinker.auth.get_tinker_token() if tinker.auth.tinker_has_credentials() else None


wrong: int = tinker.AdamParams(learning_rate=1e-4)
missing = tinker.no_such_name
"""
ERROR_LINES = [len(PROGRAM.splitlines()) - 1, len(PROGRAM.splitlines())]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a program that uses tinker, with the stubs in the folder that pyright searches; return its path."""
    folder = tmp_path_factory.mktemp("typed")
    command = [sys.executable, "-m", "tinkerwire.dropin", "stubs", str(folder / "typings")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "stubs of tinker" in output
    file = folder / "program.py"
    file.write_text(PROGRAM)
    return file


def test_pyright_resolves_tinker(program: Path) -> None:
    """Pyright reports the two errors of the program and nothing else."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, program.name]
    run = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False, timeout=300)
    diagnostics = json.loads(run.stdout)["generalDiagnostics"]
    errors = [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == "error"]
    assert [error["range"]["start"]["line"] + 1 for error in errors] == ERROR_LINES, errors


def test_mypy_resolves_tinker(program: Path) -> None:
    """In strict mode, mypy reports the two errors of the program and nothing else."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(program.parent / "cache"), program.name]
    environment = {**os.environ, "MYPYPATH": str(program.parent / "typings")}
    run = subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == ERROR_LINES, run.stdout
    assert all(line.startswith("program.py:") for line in errors)


def test_stubs_are_reproducible(tmp_path: Path) -> None:
    """A second run writes the same files."""
    first = {file: file.read_text() for file in write_stubs(tmp_path / "a")}
    assert {file: file.read_text() for file in write_stubs(tmp_path / "a")} == first


def test_stubs_command_rejects_wrong_usage(tmp_path: Path) -> None:
    """The exit code is 2 for wrong arguments, and 1 for a file in place of the folder."""
    (tmp_path / "file").write_text("")
    for arguments, code in (([], 2), (["--help"], 2), (["a", "b"], 2), ([str(tmp_path / "file")], 1)):
        command = [sys.executable, "-m", "tinkerwire.dropin", "stubs", *arguments]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == code, arguments
        assert run.stderr.startswith("usage: " if code == 2 else str(tmp_path / "file")), run.stderr
