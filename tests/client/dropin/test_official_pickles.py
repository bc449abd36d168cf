"""Pickles that official releases wrote: loaded under the drop-in with all of their values, or refused."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tinkerwire import types
from tinkerwire_base.pickling import set_state

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "official-pickles.jsonl").read_text().splitlines()]
CASES = [(each["version"], int(protocol), text) for each in RECORDED for protocol, text in each["pickles"].items()]

IDS = types.TensorData(data=[3, 4], dtype="int64", shape=[2])
TABLE = types.TensorData(data=[1.0, 2.0, 3.0, 4.0], dtype="float32", shape=[2, 2])
TEXT = types.EncodedTextChunk(tokens=[1, 2])
EQUAL: dict[str, Any] = {
    "datum": types.Datum(
        model_input=types.ModelInput(chunks=[TEXT]), loss_fn_inputs={"target_tokens": IDS, "weights": TABLE}
    ),
    "model_input": types.ModelInput(chunks=[TEXT, types.ImageChunk(data=b"abc", format="png")]),
    "tensor": TABLE,
    "adam": types.AdamParams(learning_rate=0.001, beta1=0.5),
    "params": types.SamplingParams(max_tokens=3, stop=["end"], temperature=0.5),
    "output": types.ForwardBackwardOutput(
        loss_fn_output_type="x", loss_fn_outputs=[{"logprobs": TABLE}], metrics={"loss:sum": 1.5}
    ),
    "lora": types.LoraConfig(rank=3),
}
"""The values that the recorder made, by the classes of this client."""

LOADER = """
import tinkerwire.dropin; tinkerwire.dropin.install()
import pickle, sys
found = [pickle.loads(each) for each in pickle.loads(sys.stdin.buffer.read())]
sys.stdout.buffer.write(pickle.dumps(found))
"""
"""Loads official pickles in a process of its own, as the drop-in stays installed, and pickles them as this client's."""


@pytest.fixture(scope="module")
def loaded() -> list[dict[str, Any]]:
    official = [zlib.decompress(base64.b64decode(text)) for _, _, text in CASES]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADER],
        input=pickle.dumps(official),
        capture_output=True,
        env=environment,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: list[dict[str, Any]] = pickle.loads(done.stdout)
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{version}-{protocol}" for version, protocol, _ in CASES])
def test_official_pickles_load_with_all_values(loaded: list[dict[str, Any]], number: int) -> None:
    """Models of three releases, pydantic models and dataclasses alike, in every protocol; copies are equal."""
    version, _, _ = CASES[number]
    models = loaded[number]
    for name, expected in EQUAL.items():
        assert models[name] == expected, name
    assert models["tensor"].to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert models["run"].last_request_time.isoformat() == "2026-01-02T03:04:05+00:00"
    assert models["run"].lora_rank is None
    response = models["response"]
    for sequence in (models["sequence"], response.sequences[0]):
        assert (sequence.stop_reason, sequence.tokens, sequence.logprobs) == ("length", [5, 6], [-0.5, -1.0])
        assert sequence.tokens_np.tolist() == [5, 6]
        assert sequence.sequence_id == ("q" if version == "0.38.0" else None)
    assert response.prompt_logprobs == [None, -1.0]
    assert response.topk_prompt_logprobs[-1] == [(7, -0.5), (8, -1.5)]
    for name, model in models.items():
        for again in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert again.model_dump() == model.model_dump(), name


def test_all_recorded_protocols_are_there() -> None:
    """Three releases in six protocols."""
    assert len(CASES) == 18


@pytest.mark.parametrize(
    ("cls", "state", "text"),
    [
        (types.AdamParams, {"__dict__": {"learning_rate": 0.1, "momentum": 0.5}}, "has no fields momentum"),
        (types.AdamParams, {"__dict__": {"learning_rate": "fast"}}, "learning_rate"),
        (types.TensorData, {"dtype": "float32"}, "data"),
        (types.ModelInput, None, "its state is a NoneType"),
    ],
    ids=["unknown field", "wrong type", "missing field", "no state"],
)
def test_a_state_that_does_not_fit_is_refused(cls: Any, state: Any, text: str) -> None:
    """The error names the class, what does not fit, and the way out; no object without fields comes back."""
    with pytest.raises(pickle.UnpicklingError, match=rf"^{cls.__name__}: .*{text}.*model_dump\(\)"):
        set_state(cls.__new__(cls), state)


def test_responses_keep_fields_that_are_unknown_here() -> None:
    """Models of responses hold such values in extra_fields, as for those that a server sends."""
    model = types.SupportedModel.__new__(types.SupportedModel)
    state = {"__dict__": {"model_name": "base", "colour": "red"}, "__pydantic_extra__": {"size": 3}}
    set_state(model, state)
    assert model == types.SupportedModel(model_name="base", extra_fields={"colour": "red", "size": 3})
