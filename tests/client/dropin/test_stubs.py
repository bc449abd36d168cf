"""Stubs of ``tinker`` for type checkers, which have no official SDK to look at."""

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
    filled = pb.ForwardBackwardRequest(model_id="m", seq_id=1)
    return len(filled.SerializeToString()) + len(forward_backward_request_to_proto(request).SerializeToString())


def key() -> str | None:
    return tinker.auth.get_tinker_token() if tinker.auth.tinker_has_credentials() else None


wrong: int = tinker.AdamParams(learning_rate=1e-4)
missing = tinker.no_such_name
"""
WRONG_LINES = [len(PROGRAM.splitlines()) - 1, len(PROGRAM.splitlines())]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that uses tinker, beside the stubs, in the folder where pyright looks for them."""
    folder = tmp_path_factory.mktemp("typed")
    command = [sys.executable, "-m", "tinkerwire.dropin", "stubs", str(folder / "typings")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "stubs of tinker" in told
    file = folder / "program.py"
    file.write_text(PROGRAM)
    return file


def test_pyright_resolves_tinker(program: Path) -> None:
    """It finds the two mistakes of the program, and none where there is none."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, program.name]
    run = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False, timeout=300)
    found = [each for each in json.loads(run.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    assert [each["range"]["start"]["line"] + 1 for each in found] == WRONG_LINES, found


def test_mypy_resolves_tinker(program: Path) -> None:
    """It finds the same two in strict mode."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(program.parent / "cache"), program.name]
    environment = {**os.environ, "MYPYPATH": str(program.parent / "typings")}
    run = subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == WRONG_LINES, run.stdout
    assert all(line.startswith("program.py:") for line in errors)


def test_stubs_are_written_again_and_wrong_usage_is_told(tmp_path: Path) -> None:
    """A second run gives the same files; no folder or an option is wrong usage, and a file in the way is an error."""
    first = {file: file.read_text() for file in write_stubs(tmp_path / "a")}
    assert {file: file.read_text() for file in write_stubs(tmp_path / "a")} == first
    (tmp_path / "file").write_text("")
    for words, code in (([], 2), (["--help"], 2), (["a", "b"], 2), ([str(tmp_path / "file")], 1)):
        command = [sys.executable, "-m", "tinkerwire.dropin", "stubs", *words]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == code, words
        assert run.stderr.startswith("usage: " if code == 2 else str(tmp_path / "file")), run.stderr
