"""Tests of pickles that official releases wrote: they load under the drop-in with all values, or raise."""

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
from tinkerwire_base.model import Model
from tinkerwire_base.pickling import set_state

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "official-pickles.jsonl").read_text().splitlines()]
CASES = [
    (release["version"], int(protocol), text) for release in RECORDED for protocol, text in release["pickles"].items()
]
"""Version, pickle protocol and encoded pickle of each recording."""

IDS = types.TensorData(data=[3, 4], dtype="int64", shape=[2])
TABLE = types.TensorData(data=[1.0, 2.0, 3.0, 4.0], dtype="float32", shape=[2, 2])
TEXT = types.EncodedTextChunk(tokens=[1, 2])
EXPECTED: dict[str, object] = {
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
"""The recorded values as models of this client."""

LOADER = """
import tinkerwire.dropin; tinkerwire.dropin.install()
import pickle, sys
models = [pickle.loads(content) for content in pickle.loads(sys.stdin.buffer.read())]
sys.stdout.buffer.write(pickle.dumps(models))
"""
"""Program that loads official pickles under the drop-in, and writes the models as pickles of this client."""


@pytest.fixture(scope="module")
def loaded_cases() -> list[dict[str, Any]]:
    """Return the models of each case by name, loaded in a new process."""
    official = [zlib.decompress(base64.b64decode(text)) for _, _, text in CASES]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADER],
        input=pickle.dumps(official),
        capture_output=True,
        env=environment,
        timeout=100,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()
    cases: list[dict[str, Any]] = pickle.loads(process.stdout)
    return cases


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{version}-{protocol}" for version, protocol, _ in CASES])
def test_official_pickles_load_with_all_values(loaded_cases: list[dict[str, Any]], number: int) -> None:
    """Pydantic models and dataclasses of three releases load in every protocol, and their copies are equal."""
    version, _, _ = CASES[number]
    models = loaded_cases[number]
    for name, expected in EXPECTED.items():
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
        for duplicate in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert duplicate.model_dump() == model.model_dump(), name


def test_recordings_cover_all_releases_and_protocols() -> None:
    """Three releases have a pickle in each of six protocols."""
    assert len({(version, protocol) for version, protocol, _ in CASES}) == len(CASES) == 18


@pytest.mark.parametrize(
    ("cls", "state", "text"),
    [
        (types.AdamParams, {"__dict__": {"learning_rate": 0.1, "momentum": 0.5}}, "has no fields momentum"),
        (types.AdamParams, {"__dict__": {"learning_rate": "fast"}}, "learning_rate"),
        (types.TensorData, {"dtype": "float32"}, "data"),
        (types.ModelInput, None, "expected a dict as state, got NoneType"),
    ],
    ids=["unknown field", "wrong type", "missing field", "no state"],
)
def test_invalid_state_raises_unpickling_error(cls: type[Model], state: object, text: str) -> None:
    """The error names the class, the problem and the remedy."""
    with pytest.raises(pickle.UnpicklingError, match=rf"^{cls.__name__}: .*{text}.*model_dump\(\)"):
        set_state(cls.__new__(cls), state)


def test_unknown_fields_of_responses_are_kept() -> None:
    """Models of responses keep unknown fields in extra_fields, as in a server's response."""
    model = types.SupportedModel.__new__(types.SupportedModel)
    state = {"__dict__": {"model_name": "base", "colour": "red"}, "__pydantic_extra__": {"size": 3}}
    set_state(model, state)
    assert model == types.SupportedModel(model_name="base", extra_fields={"colour": "red", "size": 3})
