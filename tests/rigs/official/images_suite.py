"""Images from the official SDK 0.38.0 to the embedded server: sampling, training, and a wrong number of tokens.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/images_suite.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64encode

import pytest
from tests.rigs.official.venv import ensure_official_python

from support.pictures import BLUE, RED, draw_image
from tinkerwire.testing import LocalServer

pytestmark = pytest.mark.timeout(1800)
TOKENS = 70
"""Number of tokens of an image of 300 x 200 pixels."""
PROGRAM = """
import base64, json, sys
import tinker
from tinker import types

images = [base64.b64decode(text) for text in json.loads(sys.argv[1])]

def prompt(image, expected=70):
    chunk = types.ImageChunk(data=image, format="png", expected_tokens=expected)
    text = [types.EncodedTextChunk(tokens=[number]) for number in (1, 2)]
    return types.ModelInput(chunks=[text[0], chunk, text[1]])

def datum(image, answer):
    length = prompt(image).length
    inputs = {
        "target_tokens": types.TensorData(data=[0] * (length - 1) + [answer], dtype="int64", shape=[length]),
        "weights": types.TensorData(data=[0.0] * (length - 1) + [1.0], dtype="float32", shape=[length]),
    }
    return types.Datum(model_input=prompt(image), loss_fn_inputs=inputs)

service = tinker.ServiceClient()
training = service.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1)
data = [datum(image, answer) for image, answer in zip(images, b"rb")]
for _ in range(25):
    training.forward_backward(data, "cross_entropy").result()
    training.optim_step(types.AdamParams(learning_rate=1e-2)).result()
sampling = training.save_weights_and_get_sampling_client("colours")
params = types.SamplingParams(max_tokens=1, temperature=0.0)
answers = [sampling.sample(prompt(image), 1, params).result().sequences[0].tokens for image in images]
logprobs = sampling.compute_logprobs(prompt(images[0])).result()
try:
    sampling.sample(prompt(images[0], 63), 1, params).result()
    error = None
except tinker.BadRequestError as exception:
    error = exception.body
print(json.dumps({
    "answers": bytes(token for tokens in answers for token in tokens).decode(),
    "positions": [index for index, value in enumerate(logprobs) if value is not None],
    "error": error,
}))
"""


def test_official_client_trains_and_samples_with_images() -> None:
    """The model names the colours of two images, and a wrong number of tokens has the error of the service."""
    python = ensure_official_python("0.38.0")
    images = json.dumps([b64encode(draw_image(300, 200, colour)).decode() for colour in (RED, BLUE)])
    with LocalServer(wire="0.38.0", quirks=["expected_tokens=terse"]) as server:
        environment = {**os.environ, **{name: value or "" for name, value in server.environment.items()}}
        run = subprocess.run(
            [str(python), "-c", PROGRAM, images],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=600,
        )
    assert not run.returncode, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["answers"] == "rb"
    assert result["positions"] == [TOKENS + 1]
    assert "Expected 63 tokens, got 70 from image" in json.dumps(result["error"])
