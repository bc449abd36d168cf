"""Generation: the same bytes everywhere, a check against drift, small differences, and contracts of users."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinkerwire_codegen.cli import default_schema, main
from tinkerwire_codegen.generate.command import default_out
from tinkerwire_codegen.generate.package import PACKAGE, _differences

ROOT = Path(__file__).parents[3]
SCHEMA, GENERATED = ROOT / "schema", ROOT / "generated"
FIELD = """        rank: {type: integer, description: Inner dimension of the adapter.}
"""
SCHEME = "        TINKER_SCHEME: 'tinker://'\n"
NEW_FIELD = """        alpha:
          description: Scale of the adapter.
          x-since: 0.16.1
          type: [number, 'null']
          default: null
"""
PROTOBUF_FIELDS = [
    (
        "tinker_public.proto",
        "// One sample.",
        """// Own.
enum Priority {  // since: 0.38.0
  // Own.
  PRIORITY_LOW = 0;
  // Own.
  PRIORITY_HIGH = 1;
}

// Own.
message Count {  // since: 0.38.0
  // Own.
  int64 value = 1;
}

""",
    ),
    (
        "tinker_public.proto",
        "  // Reason of the end.",
        """  // Own.
  optional float entropy = 5;  // since: 0.38.0
  // Own.
  repeated int32 ranks = 6;  // since: 0.38.0
  // Own.
  map<string, Count> counts = 7;  // since: 0.38.0
""",
    ),
    (
        "tinker_public.proto",
        "  // The model.\n",
        """  // Own.
  optional float gradient_scale = 8;  // since: 0.38.0
  // Own.
  Priority priority = 9;  // since: 0.38.0
""",
    ),
    (
        "sampling.yaml",
        "    SampledSequence:\n",
        """    Count:
      x-since: 0.38.0
      description: Own.
      type: object
      required: [value]
      properties: {value: {description: Own., type: integer}}
""",
    ),
    (
        "sampling.yaml",
        "        topk_logprobs:\n",
        """        entropy:
          {x-since: 0.38.0, x-protobuf-only: true, description: Own., type: [number, 'null'], default: null}
        ranks:
          {x-since: 0.38.0, x-protobuf-only: true, description: Own., type: array, items: {type: integer}, default: []}
        counts:
          x-since: 0.38.0
          x-protobuf-only: true
          description: Own.
          anyOf: [{type: object, additionalProperties: {$ref: '#/components/schemas/Count'}}, {type: 'null'}]
          default: null
""",
    ),
    (
        "training.yaml",
        "    ForwardBackwardInput:\n",
        "    Priority: {x-since: 0.38.0, description: Own., type: string, enum: [low, high]}\n",
    ),
    (
        "training.yaml",
        "        loss_fn_config:\n",
        """        gradient_scale: {x-since: 0.38.0, description: Own., type: number, default: 1.0}
        priority: {x-since: 0.38.0, description: Own., $ref: '#/components/schemas/Priority', default: low}
""",
    ),
]
"""File, text in it, and the addition before that text."""


def files_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def run_codegen(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "tinkerwire_codegen", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=100
    )


def run_python(program: str, path: Path) -> str:
    """Run a program that imports the package generated into ``path``; return its output."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(path), *filter(None, sys.path)]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Copy the contract, to change it."""
    return Path(shutil.copytree(SCHEMA, tmp_path / "schema"))


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, (file, old)
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def diff_lines(before: bytes, after: bytes) -> list[str]:
    lines = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0)
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


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
    assert files_of(tmp_path / PACKAGE) == files_of(GENERATED / PACKAGE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pyproject.toml", "ruff.toml", PACKAGE]


def test_generated_modules_name_their_command() -> None:
    """Every module names the command that generates it."""
    for name, content in files_of(GENERATED / PACKAGE).items():
        if name.endswith(".py"):
            assert content.startswith(b"# Generated from schema/ by `python -m tinkerwire_codegen generate`"), name


def test_check_succeeds_for_committed_files() -> None:
    """The check of this tree succeeds and prints nothing."""
    run = run_codegen("check")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_check_lists_differing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed, a missing and an extra file: exit 1, each file by name, and the remedy."""
    package = Path(shutil.copytree(GENERATED / PACKAGE, tmp_path / PACKAGE))
    (package / "models.py").write_bytes((package / "models.py").read_bytes() + b" ")
    (package / "api" / "training" / "forward.py").unlink()
    (package / "api" / "stray.py").write_text("")
    assert main(["check", "--out", str(tmp_path)]) == 1
    *files, way_out = capsys.readouterr().err.splitlines()
    assert files == ["not generated: api/stray.py", "missing: api/training/forward.py", "differs: models.py"]
    assert way_out == f"{tmp_path} does not match {SCHEMA}; run `make generate` and commit the result"


def test_check_fails_without_a_package(tmp_path: Path) -> None:
    """Without a package, every file is missing."""
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "models.py").write_text("")
    assert _differences(fresh, tmp_path / "nowhere") == ["missing: models.py"]


def test_new_field_changes_few_lines_and_works(schema: Path, tmp_path: Path) -> None:
    """A new field in the YAML changes a few lines of three files, and works from its version on."""
    replace(schema / "training.yaml", FIELD, FIELD + NEW_FIELD)
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    before, after = files_of(GENERATED / PACKAGE), files_of(tmp_path / PACKAGE)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"models.py", "availability.py", "contract.json"}
    lines = {name: diff_lines(before[name], after[name]) for name in changed}
    assert len(lines["models.py"]) <= 3
    assert len(lines["availability.py"]) <= 2
    assert len(lines["contract.json"]) <= 12
    program = """
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_generated.models import LoraConfig
from tinkerwire_generated.availability import FIELD_VERSIONS
for version, alpha in (("0.16.1", 0.5), ("0.15.0", None), ("0.15.0", 0.5)):
    converter = Converter(VersionRules(min_version=version, fields=FIELD_VERSIONS))
    try:
        text = converter.encode(LoraConfig(rank=8, alpha=alpha))
        print(text.decode(), converter.decode(text, LoraConfig).alpha)
    except ValueError as error:
        print(error)
"""
    switches = '"train_unembed":true,"train_mlp":true,"train_attn":true'
    output = run_python(program, tmp_path).splitlines()
    assert output[0] == '{"rank":8,"alpha":0.5,' + switches + "} 0.5"
    assert output[1] == '{"rank":8,' + switches + "} None"
    assert output[2].startswith("LoraConfig.alpha is not in wire 0.15.0: it exists from 0.16.1 on;")


def test_new_loss_input_and_checkpoint_kind_are_one_edit_each(schema: Path, tmp_path: Path) -> None:
    """A list under the new input has its dtype, and a path of the new kind is a checkpoint path everywhere."""
    replace(
        schema / "inputs.yaml", "          weights: float32\n", "          weights: float32\n          ranks: int64\n"
    )
    replace(schema / "runs.yaml", "external: external_weights}", "external: external_weights, merged: merged_weights}")
    replace(schema / "runs.yaml", "enum: [training, sampler, external]", "enum: [training, sampler, external, merged]")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    program = """
from tinkerwire._server.storage.checkpoint_paths import KINDS
from tinkerwire.types import Datum, ModelInput, ParsedCheckpointTinkerPath
datum = Datum(model_input=ModelInput.from_ints([1, 2]), loss_fn_inputs={"ranks": [3, 4]})
print(datum.loss_fn_inputs["ranks"].dtype, datum.loss_fn_inputs["ranks"].data)
print(ParsedCheckpointTinkerPath.from_tinker_path("tinker://run/merged_weights/a").checkpoint_type)
print(KINDS["merged_weights"])
"""
    assert run_python(program, tmp_path).splitlines() == ["int64 [3, 4]", "merged", "merged"]


def test_new_protobuf_field_is_one_edit(schema: Path, tmp_path: Path) -> None:
    """Client and server encode and decode it; an older server gets it only if it has another value than the default."""
    for file, following, addition in PROTOBUF_FIELDS:
        replace(schema / file, following, addition + following)
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    program = """
from tinkerwire._server.http.protobuf import decode_request, encode_result
from tinkerwire._wire.protobuf import decode_sample, encode_request
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import message_class

def encode(version=None, **fields):
    batch = m.ForwardBackwardInput(data=[], loss_fn="ppo", **fields)
    return encode_request(m.ForwardBackwardRequest(forward_backward_input=batch, model_id="run"), version)

def encode_sequence(**fields):
    sequence = m.SampledSequence(stop_reason="stop", tokens=[], **fields)
    return encode_result(m.SampleResponse(sequences=[sequence]))

sample = m.SampleResponse(sequences=[
    m.SampledSequence(stop_reason="stop", tokens=[1], entropy=0.5, ranks=[3, -4], counts={"a": m.Count(value=7)}),
    m.SampledSequence(stop_reason="stop", tokens=[]),
])
first, second = message_class("SampleResponse").FromString(encode_result(sample)).sequences
print(first.entropy, list(first.ranks), first.counts["a"].value, second.HasField("entropy"), list(second.ranks))
for sequence in decode_sample(encode_result(sample)).sequences:
    print(sequence.entropy, sequence.ranks, sequence.counts)
message = message_class("ForwardBackwardRequest").FromString(encode(gradient_scale=0.25, priority="high"))
print(message.gradient_scale, message.priority)
for fields in ({}, {"gradient_scale": 0.25, "priority": "high"}):
    batch = decode_request(encode(**fields)).forward_backward_input
    print(batch.gradient_scale, batch.priority)
print(encode("0.36.0") == message_class("ForwardBackwardRequest")(model_id="run", loss_fn="ppo").SerializeToString())
for action in (
    lambda: encode("0.36.0", gradient_scale=0.5),
    lambda: encode(gradient_scale=1e39),
    lambda: encode_sequence(ranks=[2**31]),
    lambda: encode_sequence(entropy="x"),
):
    try:
        print(action())
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""
    output = run_python(program, tmp_path).splitlines()
    assert output[:7] == [
        "0.5 [3, -4] 7 False []",
        "0.5 [3, -4] {'a': Count(value=7)}",
        "None [] None",
        "0.25 1",
        "1.0 low",
        "0.25 high",
        "True",
    ]
    assert output[7].startswith("DialectError ForwardBackwardInput.gradient_scale is not in wire 0.36.0:")
    assert output[8:] == [
        "NumberRangeError gradient_scale: 1e+39 must fit into float for protobuf",
        "NumberRangeError sequences[0].ranks: [2147483648] must fit into int32 for protobuf",
        "TypeError sequences[0].entropy: 'x' must fit into float for protobuf",
    ]


def test_optional_field_can_be_absent_or_null(schema: Path, tmp_path: Path) -> None:
    """A nullable field without a default has three states; without null it has two, and null is rejected."""
    own = (
        "        note: {type: [string, 'null'], description: Own.}\n        level: {type: integer, description: Own.}\n"
    )
    replace(schema / "training.yaml", FIELD, FIELD + own)
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    program = """
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import LoraConfig
converter = Converter()
for more in ({}, {"note": None}, {"note": "x"}, {"level": 3}, {"level": None}):
    try:
        model = LoraConfig(rank=8, **more)
        wire = converter.unstructure(model)
        again = converter.structure(wire, LoraConfig)
        print({k: v for k, v in wire.items() if k in ("note", "level")}, again.note, again.level, again == model)
    except TypeError as error:
        print(error)
"""
    assert run_python(program, tmp_path).splitlines() == [
        "{} UNSET UNSET True",
        "{'note': None} None UNSET True",
        "{'note': 'x'} x UNSET True",
        "{'level': 3} UNSET 3 True",
        "LoraConfig.level: expected an int, got None (NoneType)",
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
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
            FIELD,
            "        rank: integer\n",
            "#/components/schemas/LoraConfig/properties/rank: 'integer'",
        ),
        (
            "training.yaml",
            "[rank]",
            "[rnak]",
            "#/components/schemas/LoraConfig: required 'rnak' is not one of its properties",
        ),
        (
            "training.yaml",
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
        ("openapi.yaml", "0.36.0, 0.38.0]", "0.36.0]", "the last version must be the version of the contract, 0.38.0"),
        ("openapi.yaml", "x-models-since: 0.3.0", "x-models-since: 0.3.1", "x-models-since must be one of x-versions"),
        ("runs.yaml", "x-since: 0.13.1", "x-since: soon", "wire version 'soon' must be numbers"),
        ("service.yaml", "HealthResponse:", "Health-Response:", "HealthResponse does not exist"),
        ("service.yaml", "operationId: healthz", "operationId: the health", "operationId must be an identifier"),
        ("sampling.yaml", "/{sampler_id}", "/{sampler}", "Path parameter 'sampler'"),
        ("futures.yaml", "paths:", "paths: [", "futures.yaml: must be YAML"),
        ("openapi.yaml", "x-families: [errors", "x-families: [mistakes", "mistakes.yaml: file does not exist"),
        ("runs.yaml", "Cursor:", "TensorData:", "schemas TensorData is defined in inputs.yaml and in runs.yaml"),
        (
            "training.yaml",
            FIELD,
            "        rank: {type: string, enum: [a, b], description: x.}\n",
            "LoraConfig/properties/rank: must be a $ref to a named schema",
        ),
    ],
)
def test_broken_contract_leaves_the_old_package(
    file: str, old: str, new: str, words: str, schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A contract with errors: exit 2, the place and the value, and the old package stays."""
    replace(schema / file, old, new)
    old_file = tmp_path / PACKAGE / "models.py"
    old_file.parent.mkdir()
    old_file.write_text("# old")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 2
    output = capsys.readouterr().err
    assert words in output
    assert str(schema) in output
    assert files_of(tmp_path / PACKAGE) == {"models.py": b"# old"}


def test_failing_generator_leaves_the_old_package(
    schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing tool: exit 2 with the text of the tool, and the old package stays."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    (tmp_path / "hidden" / "ruff").mkdir(parents=True)
    (tmp_path / "hidden" / "ruff" / "__init__.py").write_text("")
    (tmp_path / "hidden" / "ruff" / "__main__.py").write_text("raise SystemExit('no ruff')")
    old_file = tmp_path / PACKAGE / "models.py"
    old_file.parent.mkdir()
    old_file.write_text("# old")
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 2
    assert "ruff" in capsys.readouterr().err
    assert files_of(tmp_path / PACKAGE) == {"models.py": b"# old"}


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
