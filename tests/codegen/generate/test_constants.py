"""Generation of constants: one edit of the contract reaches the models, the client and the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.generate.constants import collect_constants

SCHEMA = Path(__file__).parents[3] / "schema"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Copy the contract, to change it."""
    return Path(shutil.copytree(SCHEMA, tmp_path / "schema"))


def edit(file: Path, old: str, new: str) -> None:
    """Replace a text that occurs once in a file."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def run_with(generated: Path, program: str) -> str:
    """Run a program with a generated package in place of the installed one; return its output."""
    path = os.pathsep.join([str(generated), *filter(None, sys.path)])
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_new_loss_input_and_checkpoint_kind_are_one_edit_each(schema: Path, tmp_path: Path) -> None:
    """A list under the new input has its dtype, and a path of the new kind is a checkpoint path everywhere."""
    edit(schema / "inputs.yaml", "          weights: float32\n", "          weights: float32\n          ranks: int64\n")
    edit(schema / "runs.yaml", "external: external_weights}", "external: external_weights, merged: merged_weights}")
    edit(schema / "runs.yaml", "enum: [training, sampler, external]", "enum: [training, sampler, external, merged]")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    program = """
import tinkerwire as tw
from tinkerwire._server.storage.checkpoint_paths import KINDS
from tinkerwire.types import Datum, ModelInput, ParsedCheckpointTinkerPath
datum = Datum(model_input=ModelInput.from_ints([1, 2]), loss_fn_inputs={"ranks": [3, 4]})
print(datum.loss_fn_inputs["ranks"].dtype, datum.loss_fn_inputs["ranks"].data)
print(ParsedCheckpointTinkerPath.from_tinker_path("tinker://run/merged_weights/a").checkpoint_type)
print(KINDS["merged_weights"])
"""
    assert run_with(tmp_path, program).splitlines() == ["int64 [3, 4]", "merged", "merged"]


def test_constant_of_two_schemas_is_rejected(schema: Path) -> None:
    """The error names the schema and the constant."""
    edit(schema / "runs.yaml", "        TINKER_SCHEME:", "        SEQ_IDS_PER_COPY: 2\n        TINKER_SCHEME:")
    with pytest.raises(ValueError, match="SEQ_IDS_PER_COPY is defined twice"):
        collect_constants(load(schema))


@pytest.mark.parametrize(
    ("constant", "message"),
    [("max_runs: 2", "must be the name of a constant"), ("MAX_RUNS: 2.5", "expected a text, an integer")],
)
def test_invalid_constant_is_rejected(
    constant: str, message: str, schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A constant has a name in capitals, and is a text, an integer or a mapping of texts."""
    edit(schema / "runs.yaml", "        TINKER_SCHEME:", f"        {constant}\n        TINKER_SCHEME:")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) != 0
    assert message in capsys.readouterr().err
