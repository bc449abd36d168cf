"""The generated descriptors: deterministic bytes, a separate pool, and no import of protobuf before the first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_tools", reason="the extra codegen is not installed")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tinkerwire_codegen.contract.protobuf import FILE, compile_descriptors, load_proto
from tinkerwire_codegen.generate.protobuf import generate_protobuf
from tinkerwire_generated import protobuf
from tinkerwire_generated.protobuf import MESSAGE_FIELD_VERSIONS, MESSAGE_FIELDS, MESSAGE_VERSIONS, message_class

SCHEMA = Path(__file__).parents[3] / "schema"


def test_descriptors_are_deterministic_and_committed() -> None:
    """Two generations and the committed file are equal to the byte."""
    generated = generate_protobuf(SCHEMA)
    assert generated == generate_protobuf(SCHEMA)
    assert generated[1] == Path(protobuf.__file__).with_name("protobuf.binpb").read_bytes()


def test_comments_do_not_change_the_bytes(tmp_path: Path) -> None:
    """A reworded description changes nothing; a renumbered field does."""
    text = (SCHEMA / FILE).read_text()
    (tmp_path / FILE).write_text(text.replace("// The model.", "// Some model."))
    assert generate_protobuf(tmp_path) == generate_protobuf(SCHEMA)
    (tmp_path / FILE).write_text(text.replace("string model_id = 1;", "string model_id = 9;"))
    assert generate_protobuf(tmp_path)[1] != generate_protobuf(SCHEMA)[1]


def test_message_classes_match_the_contract() -> None:
    """Every message has a class with the fields, numbers and presence that protoc reads."""
    compiled = descriptor_pb2.FileDescriptorSet.FromString(compile_descriptors(SCHEMA / FILE)).file[0]
    for expected in compiled.message_type:
        generated = descriptor_pb2.DescriptorProto()
        message_class(expected.name).DESCRIPTOR.CopyToProto(generated)
        for part in (expected, *expected.nested_type, generated, *generated.nested_type):
            for field in part.field:
                field.ClearField("json_name")
        assert generated == expected
    with pytest.raises(KeyError):
        message_class("Nothing")


def test_version_tables_match_the_contract() -> None:
    """The tables list all messages, and the fields that differ from their message."""
    declarations = {
        declaration.name: declaration
        for declaration in load_proto(SCHEMA).declarations
        if declaration.kind == "message"
    }
    assert {
        name: (declaration.availability.since, declaration.availability.until)
        for name, declaration in declarations.items()
    } == MESSAGE_VERSIONS
    assert MESSAGE_FIELD_VERSIONS["ForwardBackwardRequest"] == {
        "forward_only": ("0.22.7", None),
        "loss_fn_config_v2": ("0.26.2", None),
    }
    assert all(
        fields.keys() <= {field.name for field in declarations[name].fields}
        for name, fields in MESSAGE_FIELD_VERSIONS.items()
    )


def test_field_table_matches_the_contract() -> None:
    """The table has the type, label and oneof of every field, in order."""
    assert MESSAGE_FIELDS.keys() == MESSAGE_VERSIONS.keys()
    assert MESSAGE_FIELDS["Tensor"] == {
        "dense": ("bytes", "", "encoding"),
        "sparse_csr": ("SparseCsr", "", "encoding"),
        "dtype": ("DType", "", ""),
        "shape": ("int64", "repeated", ""),
    }
    assert MESSAGE_FIELDS["ForwardBackwardOutput"]["metrics"] == ("double", "map", "")
    assert MESSAGE_FIELDS["SampledSequence"]["logprobs"] == ("bytes", "optional", "")
    for name, fields in MESSAGE_FIELDS.items():
        assert list(fields) == [field.name for field in message_class(name).DESCRIPTOR.fields]


def test_other_packages_with_the_same_messages_do_not_clash() -> None:
    """The default pool may hold another release's messages under the same file and message names."""
    other_file = descriptor_pb2.FileDescriptorProto(name=FILE, package=protobuf.PACKAGE, syntax="proto3")
    other_file.message_type.add(name="Tensor").field.add(name="else", number=1, type=9, label=1)
    pools = [descriptor_pool.Default(), descriptor_pool.DescriptorPool()]
    other_classes = []
    for number, pool in enumerate(pools, start=1):
        other_file.message_type[0].field[0].number = number
        pool.AddSerializedFile(other_file.SerializeToString())
        other_classes.append(message_factory.GetMessageClass(pool.FindMessageTypeByName("tinker_public.Tensor")))
    assert [other_class(**{"else": "x"}).SerializeToString() for other_class in other_classes] == [
        b"\x0a\x01x",
        b"\x12\x01x",
    ]
    assert message_class("Tensor")(dense=b"x").SerializeToString() == b"\x0a\x01x"
    assert message_class("Tensor") is message_class("Tensor") is not other_classes[0]


def test_protobuf_loads_at_first_use() -> None:
    """Importing the generated package and the client's protobuf modules does not; threads get the same classes."""
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
import tinkerwire_generated.protobuf, tinkerwire._wire.protobuf, tinkerwire._server.http.protobuf
assert "google.protobuf" not in sys.modules, "too early"
with ThreadPoolExecutor(8) as pool:
    assert len(set(pool.map(tinkerwire_generated.protobuf.message_class, ["Tensor"] * 64))) == 1
assert "google.protobuf" in sys.modules
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
