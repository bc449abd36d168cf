"""Generation: the same bytes everywhere, a check against drift, small differences, and contracts of users."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.generated_package import GENERATED, RANK_FIELD, SCHEMA, read_package_files, replace, run_codegen
from tinkerwire_codegen.cli import default_schema, main
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.generate.command import default_out
from tinkerwire_codegen.generate.package import PACKAGE, _differences

pytest.importorskip("datamodel_code_generator", reason="generation needs Python 3.11")

NEWEST: str = load(SCHEMA)["info"]["version"]
SCHEME = "        TINKER_SCHEME: 'tinker://'\n"


def test_generation_is_deterministic(tmp_path: Path) -> None:
    """Another hash seed, folder, time zone, locale and user settings give the committed bytes.

    Modules of an earlier contract are removed; files beside the package stay.
    """
    (tmp_path / "ruff.toml").write_text("line-length = 40\n")
    (tmp_path / "pyproject.toml").write_text("[tool.datamodel-codegen]\nsnake-case-field = true\n")
    (tmp_path / PACKAGE / "api").mkdir(parents=True)
    (tmp_path / PACKAGE / "api" / "old.py").write_text("")
    settings = {"PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONUTF8": "0"}
    run = run_codegen("generate", "--schema", str(SCHEMA), "--out", str(tmp_path), cwd=tmp_path, **settings)
    assert run.returncode == 0, run.stderr
    assert read_package_files(tmp_path / PACKAGE) == read_package_files(GENERATED / PACKAGE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pyproject.toml", "ruff.toml", PACKAGE]


def test_generated_modules_name_their_command() -> None:
    """Every module names the command that generates it."""
    for name, content in read_package_files(GENERATED / PACKAGE).items():
        if name.endswith(".py"):
            assert content.startswith(b"# Generated from schema/ by `python -m tinkerwire_codegen generate`"), name


def test_check_succeeds_for_committed_files() -> None:
    """The check of this tree succeeds and prints nothing."""
    run = run_codegen("check")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_check_lists_differing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed, a missing and an extra file: exit 1, each file by name, and the remedy."""
    package = Path(shutil.copytree(GENERATED / PACKAGE, tmp_path / PACKAGE))
    (package / "constants.py").write_bytes((package / "constants.py").read_bytes() + b" ")
    (package / "api" / "training" / "forward.py").unlink()
    (package / "api" / "stray.py").write_text("")
    assert main(["check", "--out", str(tmp_path)]) == 1
    *files, way_out = capsys.readouterr().err.splitlines()
    assert files == ["not generated: api/stray.py", "missing: api/training/forward.py", "differs: constants.py"]
    assert way_out == f"{tmp_path} does not match {SCHEMA}; run `make generate` and commit the result"


def test_check_fails_without_a_package(tmp_path: Path) -> None:
    """Without a package, every file is missing."""
    target = tmp_path / "fresh"
    target.mkdir()
    (target / "constants.py").write_text("")
    assert _differences(target, tmp_path / "nowhere") == ["missing: constants.py"]


@pytest.mark.parametrize(
    ("file", "old", "new", "pattern"),
    [
        ("training.yaml", "schemas/ModelID", "schemas/ModelIDX", "#/components/schemas/ModelIDX does not exist"),
        (
            "training.yaml",
            "type: array",
            "type: strnig",
            "/properties/data/type: 'strnig' is not valid JSON Schema",
        ),
        (
            "training.yaml",
            RANK_FIELD,
            "        rank: integer\n",
            "#/components/schemas/LoraConfig/properties/rank: expected a mapping, got 'integer'",
        ),
        (
            "training.yaml",
            "[rank]",
            "[rnak]",
            "#/components/schemas/LoraConfig: required 'rnak' is not one of its properties",
        ),
        (
            "optimizers.yaml",
            "default: 0.0001",
            "default: small",
            "AdamParams/properties/learning_rate/default: 'small' is not",
        ),
        ("weights.yaml", "x-mixin: CheckpointPathMixin", "x-mixin: Path", "x-mixin Path is not in tinkerwire_base"),
        (
            "runs.yaml",
            "x-essential: [training_runs]",
            "x-essential: [runs]",
            "TrainingRunsResponse: x-essential 'runs' is not one of its properties",
        ),
        ("futures.yaml", "      x-untagged: true\n", "", "must have a discriminator, or the mark x-untagged"),
        ("futures.yaml", "propertyName: state", "propertyName: kind", "FutureFinished.kind must be a const"),
        ("futures.yaml", "finished: '#/", "done: '#/", "mapping maps to FutureFinished, got 'finished'"),
        ("runs.yaml", SCHEME, f"{SCHEME}        runs: 2\n", "'runs' must be the name of a constant"),
        ("runs.yaml", SCHEME, f"{SCHEME}        MAX_RUNS: 2.5\n", "expected a text, an integer, or a mapping of texts"),
        (
            "runs.yaml",
            SCHEME,
            f"{SCHEME}        SEQ_IDS_PER_COPY: 2\n",
            "SEQ_IDS_PER_COPY is a constant of",
        ),
        (
            "training.yaml",
            "x-result: OptimStepResponse",
            "x-result: Step",
            "x-result 'Step' is not the name of a schema",
        ),
        ("openapi.yaml", "x-versions: [", "x-releases: [", "#/info: x-versions must list the wire versions"),
        ("openapi.yaml", "x-versions: [0.1.0, 0.2.0,", "x-versions: [0.2.0, 0.1.0,", "must be in order and differ"),
        ("openapi.yaml", f"{NEWEST}]", "9.9.9]", f"the last version must be the version of the contract, {NEWEST}"),
        ("openapi.yaml", "x-models-since: 0.3.0", "x-models-since: 0.3.1", "x-models-since must be one of x-versions"),
        (
            "runs.yaml",
            "x-since: 0.13.1",
            "x-since: soon",
            "x-since: expected the text of a version, such as 0.16.1; put a number such as 0.30 in quotes, got 'soon'",
        ),
        ("service.yaml", "HealthResponse:", "Health-Response:", "HealthResponse does not exist"),
        ("service.yaml", "operationId: healthz", "operationId: the health", "must be words in lower case"),
        ("sampling.yaml", "/{sampler_id}", "/{sampler}", "parameter 'sampler' is in the path, but not declared"),
        ("futures.yaml", "paths:", "paths: [", "futures.yaml:4: must be YAML"),
        ("openapi.yaml", "x-families: [errors", "x-families: [mistakes", "mistakes.yaml: file does not exist"),
        ("openapi.yaml", "x-families: [errors", "x-families: [my-errors", "'my-errors' cannot be the name of a module"),
        (
            "optimizers.yaml",
            "    DimuonParams:\n",
            "    Plan:\n      x-since: 0.38.0\n      description: Own.\n      type: object\n      properties:\n"
            "        lora: {description: Own., $ref: '#/components/schemas/LoraConfig'}\n    DimuonParams:\n",
            "Plan of optimizers refers to LoraConfig of training",
        ),
        ("runs.yaml", "Cursor:", "TensorData:", "schemas TensorData is defined in inputs.yaml and in runs.yaml"),
        (
            "training.yaml",
            RANK_FIELD,
            "        rank: {type: string, enum: [a, b], description: x.}\n",
            "LoraConfig/properties/rank: must be a $ref to a named schema",
        ),
    ],
)
def test_broken_contract_leaves_the_old_package(
    file: str, old: str, new: str, pattern: str, schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A contract with errors: exit 2, the place and the value, and the old package stays."""
    replace(schema / file, old, new)
    old_file = tmp_path / PACKAGE / "constants.py"
    old_file.parent.mkdir()
    old_file.write_text("# old")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 2
    output = capsys.readouterr().err
    assert pattern in output
    assert str(schema) in output
    assert read_package_files(tmp_path / PACKAGE) == {"constants.py": b"# old"}


def test_failing_generator_leaves_the_old_package(
    schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing tool causes exit code 2 with the text of the tool; the old package stays."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    (tmp_path / "hidden" / "ruff").mkdir(parents=True)
    (tmp_path / "hidden" / "ruff" / "__init__.py").write_text("")
    (tmp_path / "hidden" / "ruff" / "__main__.py").write_text("raise SystemExit('no ruff')")
    old_file = tmp_path / PACKAGE / "constants.py"
    old_file.parent.mkdir()
    old_file.write_text("# old")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 2
    assert "ruff" in capsys.readouterr().err
    assert read_package_files(tmp_path / PACKAGE) == {"constants.py": b"# old"}


def test_package_is_generated_beside_the_contract(tmp_path: Path) -> None:
    """Without --out the package is written beside the contract, never into another folder."""
    assert default_out(tmp_path / "mine" / "schema") == tmp_path / "mine" / "generated"
    assert default_out(default_schema()) == GENERATED


def test_missing_extra_is_reported() -> None:
    """Without the extra, the error names the command that installs it."""
    script = (
        "import runpy, sys\nsys.modules['yaml'] = None\nrunpy.run_module('tinkerwire_codegen', run_name='__main__')"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.strip().endswith("install the extra: pip install 'tinkerwire[codegen]'")
    assert "Traceback" not in run.stderr
