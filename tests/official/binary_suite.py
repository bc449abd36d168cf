"""The official SDK 0.38.0 as judge of binary messages: what it makes decodes here, and what we make decodes there.

Its name keeps it out of the fast suite: run `pytest tests/official/binary_suite.py`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.official.venv import ensure_venv

from tinkerwire import binary
from tinkerwire.local import binary as served
from tinkerwire_generated import models as m

HERE = Path(__file__).parent
pytestmark = pytest.mark.timeout(1800)


def our_request() -> m.ForwardBackwardRequest:
    """The request that the worker makes, too."""
    sparse = m.TensorData(
        data=[5, 6], dtype="int64", shape=[2, 3], sparse_crow_indices=[0, 1, 2], sparse_col_indices=[2, 0]
    )
    inputs: Any = {
        "target_tokens": sparse,
        "weights": m.TensorData(data=[0.5, 1.5], dtype="float32", shape=[2]),
        "advantages": np.arange(6, dtype=np.float32).reshape(2, 3),
    }
    image = m.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=3)
    text = m.EncodedTextChunk(tokens=[1, -2, 2**31 - 1])
    datum = m.Datum(model_input=m.ModelInput(chunks=[text, image]), loss_fn_inputs=inputs)
    given = m.ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config={"beta": 0.5, "loss_id": "x"})
    return m.ForwardBackwardRequest(forward_backward_input=given, model_id="run", seq_id=7)


def our_output() -> m.ForwardBackwardOutput:
    """Two runs of datums with different trailing shapes."""
    rows = [np.ones((2, 2), np.float32), np.zeros((1, 2), np.float32), np.ones((1, 3), np.float32)]
    outputs = [{"logprobs": m.TensorData.from_numpy(row)} for row in rows]
    return m.ForwardBackwardOutput(loss_fn_output_type="Rec", loss_fn_outputs=outputs, metrics={"loss:sum": 2.5})


def our_sample() -> m.SampleResponse:
    """Everything that a sample can have."""
    sequence: Any = m.SampledSequence
    response: Any = m.SampleResponse
    topk = [None, [(5, -0.5)], [(6, -1.0), (7, -2.0)]]
    ids, logprobs = np.array([[1, 2], [3, 4]]), np.array([[-1.0, -2.0], [-3.0, -4.0]], np.float32)
    alternatives = {"tokens": m.TensorData.from_numpy(ids), "logprobs": m.TensorData.from_numpy(logprobs)}
    one = sequence(
        stop_reason="stop", tokens=[1, 2, 3], logprobs=[-0.5, -1.0, -2.0], extra_fields={"topk_logprobs": topk}
    )
    found: m.SampleResponse = response(
        sequences=[one, m.SampledSequence(stop_reason="length", tokens=[])],
        prompt_logprobs=[None, -1.5, -2.5],
        topk_prompt_logprobs=topk,
        prompt_cache_hit_tokens=4,
        extra_fields={"target_prompt_logprobs": m.TensorData.from_numpy(logprobs), "prompt_alt_tokens": alternatives},
    )
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that both sides wrote."""
    folder = tmp_path_factory.mktemp("binary")
    (folder / "our_request.bin").write_bytes(binary.encode_request(our_request()))
    (folder / "our_output.bin").write_bytes(served.encode_output(our_output()))
    (folder / "our_sample.bin").write_bytes(served.encode_sample(our_sample()))
    python = ensure_venv("official-0.38.0", HERE / "requirements-0.38.0.txt")
    command = [str(python), "-I", str(HERE / "binary_worker.py"), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    """What the official SDK read."""
    read: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return read


def test_their_request_decodes_here(folder: Path) -> None:
    """Equal arrays, and the same everything else; a tensor whose shape they left out has one dimension."""
    assert served.decode_request((folder / "request.bin").read_bytes()) == our_request()


def test_our_request_decodes_there(folder: Path) -> None:
    """Equal to theirs as their own class sees it, but for the shape that they leave out when the user gave none."""
    from tinkerwire_generated.messages import message  # noqa: PLC0415

    kind = message("ForwardBackwardRequest")
    ours = kind.FromString((folder / "our_request.bin").read_bytes())
    theirs = kind.FromString((folder / "request.bin").read_bytes())
    theirs.data[0].loss_fn_inputs["weights"].shape.append(2)
    assert ours == theirs


def test_our_output_decodes_there(found: dict[str, Any]) -> None:
    """Type, tensors with their shapes, and metrics."""
    rows = [[2, 2], [1.0] * 4], [[1, 2], [0.0] * 2], [[1, 3], [1.0] * 3]
    assert found["output"] == ["Rec", [{"logprobs": ["float32", *row]} for row in rows], {"loss:sum": 2.5}]


def test_our_sample_decodes_there(found: dict[str, Any]) -> None:
    """Every part of it."""
    topk = [None, [[5, -0.5]], [[6, -1.0], [7, -2.0]]]
    logprobs = ["float32", [2, 2], [-1.0, -2.0, -3.0, -4.0]]
    assert found["sample"] == {
        "sequences": [["stop", [1, 2, 3], [-0.5, -1.0, -2.0], topk], ["length", [], None, None]],
        "prompt_logprobs": [None, -1.5, -2.5],
        "topk_prompt_logprobs": topk,
        "cache": 4,
        "target": logprobs,
        "alternatives": [["int64", [2, 2], [1, 2, 3, 4]], logprobs],
    }
