"""A contract of one's own, without protobuf and with other names: every command works on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.generated_package import run_python
from support.own_contract import write_own_contract
from tinkerwire_codegen.cli import main

pytest.importorskip("datamodel_code_generator", reason="generation needs Python 3.11")


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_own_contract(tmp_path_factory.mktemp("own") / "schema")


def test_package_works_and_is_current(contract: Path) -> None:
    """The generated models and endpoints work, and the check succeeds."""
    assert main(["generate", "--schema", str(contract)]) == 0
    assert main(["check", "--schema", str(contract)]) == 0
    program = """
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.api.books import put_book
from tinkerwire_generated.availability import NEWEST, VALUE_VERSIONS
from tinkerwire_generated.models import Book
request = put_book("Emma", body=Book(pages=3, genre="poem")).encode(Converter())
print(request.method, request.path, request.content.decode())
print(NEWEST, VALUE_VERSIONS)
"""
    request, versions = run_python(program, contract.parent / "generated").splitlines()
    assert re.fullmatch(r'PUT /books/Emma \{"pages":3,"genre":"poem".*', request)
    assert versions == "1.30 {'Book': {'genre': {'poem': ('1.30', None)}}}"


@pytest.mark.parametrize("format_name", ["openapi-yaml", "openapi-json", "openapi-3.0", "json-schema"])
def test_documents_of_a_version_are_exported(
    contract: Path, format_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document of the older version has what that version has."""
    assert main(["export", "--schema", str(contract), "--wire", "1.0", "--format", format_name]) == 0
    text = capsys.readouterr().out
    assert "shelf" in text
    assert "poem" not in text


def test_missing_messages_are_reported(contract: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A contract without a .proto has no messages to export."""
    assert main(["export", "--schema", str(contract), "--wire", "1.0", "--format", "proto"]) == 2
    assert capsys.readouterr().err.endswith("has no protobuf messages; choose another format\n")


def test_versions_are_compared(contract: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The comparison of two versions finds the new and the removed field."""
    assert main(["diff", "--schema", str(contract), "@1.0", "@1.30", "--fail-on", "breaking"]) == 1
    text = capsys.readouterr().out
    assert "Book.shelf" in text
    assert "Book.genre" in text


def test_facts_are_compared(contract: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each difference is listed, also one that our own contract intends."""
    union = {"kind": "union", "members": [], "discriminator": None}
    facts = {"version": "1.30", "types": {"SearchOwner": union}, "endpoints": {}, "futures": []}
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(facts))
    assert main(["facts", "--schema", str(contract), str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "endpoint of endpoints: contract 'PUT /books/{}', facts None" in lines
    assert "type of types: contract None, facts 'SearchOwner'" in lines


def test_release_is_compared(contract: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The drift of a release without any types is the removal of all types."""
    package = tmp_path / "release" / "tinker"
    (package / "types").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "types" / "__init__.py").write_text("")
    assert main(["upstream", "--schema", str(contract), "--wire", "1.30", str(package.parent)]) == 1
    assert "type Book removed from types" in capsys.readouterr().out
