"""Edits of the contract: one edit adds a field, a loss input, a checkpoint kind or a protobuf field."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from support.generated_package import GENERATED, RANK_FIELD, read_package_files, replace, run_python
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.generate.package import PACKAGE

pytest.importorskip("datamodel_code_generator", reason="generation needs Python 3.11")

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


def list_diff_lines(before: bytes, after: bytes) -> list[str]:
    lines = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0)
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_new_field_changes_few_lines_and_works(schema: Path, tmp_path: Path) -> None:
    """A new field in the YAML changes a few lines of three files, and works from its version on."""
    replace(schema / "training.yaml", RANK_FIELD, RANK_FIELD + NEW_FIELD)
    assert main(["generate", "--schema", str(schema), "--out", str(tmp_path)]) == 0
    before, after = read_package_files(GENERATED / PACKAGE), read_package_files(tmp_path / PACKAGE)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"models/training.py", "availability.py", "contract.json"}
    lines = {name: list_diff_lines(before[name], after[name]) for name in changed}
    assert len(lines["models/training.py"]) <= 3
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
        "NumberRangeError gradient_scale: 1e+39 does not fit into float, the type in protobuf",
        "NumberRangeError sequences[0].ranks: [2147483648] does not fit into int32, the type in protobuf",
        "TypeError sequences[0].entropy: 'x' does not fit into float, the type in protobuf",
    ]


def test_optional_field_can_be_absent_or_null(schema: Path, tmp_path: Path) -> None:
    """A nullable field without a default has three states; without null it has two, and null is rejected."""
    own = (
        "        note: {type: [string, 'null'], description: Own.}\n        level: {type: integer, description: Own.}\n"
    )
    replace(schema / "training.yaml", RANK_FIELD, RANK_FIELD + own)
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
