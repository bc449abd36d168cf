"""Tests of the written pages of the reference: they are complete, compared with the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin

import numpy as np
import pytest

import tinkerwire as tw
from tinkerwire._server.engine.losses import LOSSES
from tinkerwire._training.result_merging import REDUCTIONS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
ENVIRONMENT = (REFERENCE / "environment.md").read_text()
PREFIXED = re.compile(r"\b(?:TINKER|TINKERWIRE|CLOUDFLARE|OTEL)_[A-Z][A-Z_]*[A-Z]\b")
OF_LIBRARIES = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "TMPDIR", "PYTHONPATH"})
"""Variables that the standard library reads."""
NOT_SETTINGS = frozenset({"TINKER_SCHEME"})
"""Names of constants."""


def list_variables() -> Iterator[str]:
    """Yield the environment variables that the code names in strings or reads."""
    for file in sorted((ROOT / "overlay").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from PREFIXED.findall(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv", "environ.get"):
                argument = node.args[0]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def test_environment_page_is_complete() -> None:
    """Every variable that the code reads is on the page, and no other."""
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", ENVIRONMENT))
    read = {name for name in list_variables() if not name.startswith("_")} - NOT_SETTINGS
    assert read - named == set()
    assert named - read - OF_LIBRARIES == set()


def test_errors_page_is_complete() -> None:
    """Every class of errors and warnings has a row with cause and way out."""
    text = (REFERENCE / "errors.md").read_text()
    classes = {name: getattr(tw, name) for name in tw.__all__}
    # Generic aliases are types to isinstance in Python 3.10.
    errors = {
        name
        for name, value in classes.items()
        if isinstance(value, type)
        and not get_origin(value)
        and issubclass(value, tw.TinkerError | Warning)
        and name != "APIError"
    }
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert errors - rows == set()


def list_metrics() -> Iterator[str]:
    """Yield the names of all metrics of the embedded server."""
    inputs = {
        "weights": np.ones(2, np.float32),
        "logprobs": np.full(2, -5.0, np.float32),
        "advantages": np.ones(2, np.float32),
    }
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2, seed=1)
        for name, loss in LOSSES.items():
            needed = loss.required or ("weights",)
            values = {"target_tokens": [2, 3]} | {key: inputs[key] for key in needed}
            datum = tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs=values)
            yield from training.forward_backward([datum], name).result().metrics
        yield from training.optim_step(tw.AdamParams()).result().metrics or {}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_metrics_page_is_complete() -> None:
    """Every metric of the embedded server and every reduction is on the page."""
    text = (REFERENCE / "metrics.md").read_text()
    named = set(re.findall(r"`([\w:]+)`", text))
    assert set(list_metrics()) - named == set()
    assert {*REDUCTIONS, "unique"} - named == set()
