"""Broken contracts are refused, with file and line of each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.own_contract import write_own_contract
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.lint import check_contract
from tinkerwire_codegen.contract.marks import MARKS

README = Path(__file__).parents[3] / "schema" / "README.md"
PROTO = """syntax = "proto3";
package library;
// A shelf.
message Shelf {  // since: 1.0
  // Number.
  int32 number = 1;  // since: 1.30
}
"""
SELF = "#/components/schemas/"

CASES: list[tuple[str, str, str, int, str]] = [
    # Files.
    ("books.yaml", "    Book:\n", "    Genre:\n", 28, "the key 'Genre' is in line 22 already"),
    ("books.yaml", "type: integer,", "type: integer, type: string,", 35, "the key 'type' is in line 35 already"),
    ("books.yaml", "        '422'", "        422", 18, "keys must be texts, got 422"),
    ("books.yaml", "paths:", "paths: [", 2, "must be YAML"),
    ("books.yaml", "/books/{title}:", "/books/{title}: &own {a: *own}\n  /b:", 2, "an alias contains itself"),
    ("books.yaml", "A book.", "A b\udcf6ok.", 29, "must be UTF-8, got the byte 0xf6"),
    ("openapi.yaml", "books]", "books, books]", 10, "books is listed twice"),
    ("openapi.yaml", "[shared, books]", "shared", 10, "#/x-families: must be a list of texts, got 'shared'"),
    ("books.yaml", "    Genre:\n", "    Failure:\n", 22, "schemas Failure is defined in shared.yaml and in books.yaml"),
    # Marks.
    ("books.yaml", "x-enum-since", "x-enumsince", 27, "the mark x-enumsince is unknown; did you mean x-enum-since?"),
    ("books.yaml", "x-until", "x-Until", 43, "the mark x-Until is unknown; did you mean x-until?"),
    ("books.yaml", "x-until", "x_until", 43, "the mark x_until is unknown; did you mean x-until?"),
    ("books.yaml", "x-until", "x-color", 43, "the mark x-color is unknown; schema/README.md lists the marks"),
    ("books.yaml", "x-until: '1.30'", "x-until: 1.30", 43, "put a number such as 0.30 in quotes, got 1.3"),
    ("books.yaml", "{poem: '1.30'}", "{poem: 1.30}", 27, "a mapping of values to texts of versions"),
    ("books.yaml", "x-until: '1.30'", "x-until: soon", 43, "expected the text of a version"),
    ("books.yaml", "x-until: '1.30'", "x-history: [{until: 1.30}]", 43, "expected a list of mappings with until"),
    ("books.yaml", "x-until: '1.30'", "x-undeclared: 'yes'", 43, "expected true or false, got 'yes'"),
    ("books.yaml", "x-until: '1.30'", "x-absent: [{since: '1.1'}]", 43, "expected a list of gaps"),
    ("books.yaml", "x-until: '1.30'", "x-essential: pages", 43, "expected a list of texts, got 'pages'"),
    ("books.yaml", "x-until: '1.30'", "x-constants: [A]", 43, "expected a mapping, got ['A']"),
    ("openapi.yaml", "version: '1.30'", "version: 1.30", 4, "#/info/version: must be a version in quotes"),
    ("openapi.yaml", "['1.0', '1.30']", "[1.0, 1.30]", 5, "expected a list of texts of versions"),
    # Order of versions.
    ("books.yaml", "x-until: '1.30'", "x-until: '1.0'", 43, "1.0.0 must be newer than the start, 1.0.0"),
    ("books.yaml", "x-until: '1.30'", "x-since: '1.31'", 43, "1.31.0 must not be newer than info.version, 1.30"),
    ("books.yaml", "x-until: '1.30'", "x-until: '1.31'", 43, "1.31.0 must not be newer than info.version, 1.30"),
    ("books.yaml", "{poem: '1.30'}", "{poem: '2.0'}", 27, "2.0.0 must not be newer than info.version, 1.30"),
    (
        "books.yaml",
        "x-until: '1.30'",
        "x-absent: [{since: '1.2', until: '1.1'}]",
        43,
        "1.1.0 must be newer than the start, 1.2.0",
    ),
    ("books.yaml", "x-until: '1.30'", "x-history: [{until: '0.9'}]", 43, "0.9.0 must be newer than the start"),
    # Descriptions, tags, keywords.
    ("books.yaml", "      description: A book.\n", "", 28, f"{SELF}Book: has no description"),
    ("books.yaml", ", description: Number of pages.", "", 35, f"{SELF}Book/properties/pages: has no description"),
    ("books.yaml", " description: Title.,", "", 10, "/parameters/0: has no description"),
    ("books.yaml", "description: The stored book.", "description: ''", 15, "/responses/200: has no description"),
    ("books.yaml", "      description: Store a book, or replace it.\n", "", 3, "/put: has no description"),
    ("books.yaml", "description: A book.", "description: 7", 29, "/Book/description: expected a text, got 7"),
    ("books.yaml", "tags: [books]", "tags: [boks]", 5, "tag 'boks' is unknown; use one of books"),
    ("books.yaml", "      tags: [books]\n", "", 3, "tags must list one tag"),
    ("books.yaml", "minimum: 1", "minimun: 1", 35, "'minimun' is not a keyword of JSON Schema"),
    # References.
    ("books.yaml", "schemas/Genre'", "schemas/Gender'", 39, "#/components/schemas/Gender does not exist"),
    ("books.yaml", "enum: [novel, poem]", f"$ref: '{SELF}Genre'", 22, "refers to itself: Genre -> Genre"),
    (
        "books.yaml",
        "    Book:\n",
        f"    One: {{x-since: '1.0', description: x., anyOf: [{{$ref: '{SELF}Two'}}]}}\n"
        f"    Two: {{x-since: '1.0', description: x., $ref: '{SELF}One'}}\n    Book:\n",
        28,
        "refers to itself: One -> Two -> One",
    ),
    ("books.yaml", "in: path", "in: query", 3, "parameter 'title' is in the path, but not declared"),
    # Types.
    ("books.yaml", "required: [pages]", "required: pages", 33, "'pages' is not valid JSON Schema"),
    ("books.yaml", "{type: integer, minimum: 1, description: Number of pages.}", "integer", 35, "expected a mapping"),
    ("books.yaml", "enum: [novel, poem]", "anyOf: {}", 26, "expected a list"),
    ("books.yaml", "        - {name: title,", "          {name: title,", 9, "/parameters: expected a list, got"),
    (
        "books.yaml",
        "      responses:\n",
        "      responses: []\n      x:\n",
        14,
        "/responses: expected a mapping, got []",
    ),
    ("shared.yaml", "components:", "paths:\ncomponents:", 1, "#/paths: expected a mapping, got None"),
    ("shared.yaml", "components:", "paths: []\ncomponents:", 1, "#/paths: expected a mapping, got []"),
    ("openapi.yaml", "title: Library", "title: 3", 3, '3 is not of type "string"'),
    ("books.yaml", "        required: true", "        required: 'yes'", 12, '"yes" is not of type "boolean"'),
    # Names and values.
    (
        "books.yaml",
        "put_book",
        "putBook",
        3,
        "single underscores between them, because it names a function; got 'putBook'",
    ),
    ("books.yaml", "put_book", "put__book", 3, "operationId must be words in lower case"),
    ("books.yaml", "put_book", "import", 3, "operationId must be words in lower case"),
    ("books.yaml", "      operationId: put_book\n", "", 3, "because it names a function; got None"),
    ("openapi.yaml", "x-families:", "security: [{key: []}]\nx-families:", 10, "security scheme 'key' does not exist"),
    ("openapi.yaml", "description: Books.}", "description: B.}\n  - {name: books}", 10, "tag 'books' is listed twice"),
    ("books.yaml", "enum: [novel, poem]", "enum: [novel, novel, poem]", 26, 'the value "novel" is listed twice'),
    ("books.yaml", "{poem: '1.30'}", "{poems: '1.30'}", 27, "'poems' is not a value of the enum"),
    ("books.yaml", "default: null", "default: epic", 40, "'epic' is not valid under any of the given schemas"),
    ("books.yaml", "minimum: 1", "enum: [1], default: 2", 35, "must be a $ref to a named schema"),
    ("books.yaml", "type: integer, minimum: 1", "type: string, pattern: '['", 35, "'[' is not valid JSON Schema"),
    (
        "books.yaml",
        "x-until: '1.30'",
        "x-history: [{until: '1.30', schema: {type: any}}]",
        43,
        "'any' is not valid JSON",
    ),
    ("books.yaml", "x-until: '1.30'", "x-history: [{until: '1.30', schema: {description: ''}}]", 43, "no description"),
    ("books.yaml", "        default: {$ref: '#/components/responses/Failed'}\n", "", 14, "has no default response"),
    (
        "books.yaml",
        "      parameters:\n",
        "      parameters:\n        - {name: title, in: path, required: true, description: T., schema: {}}\n",
        11,
        "path parameter 'title' is listed twice; keep one",
    ),
    (
        "books.yaml",
        "          description: The stored book.\n",
        "          description: The stored book.\n          links: {next: {operationId: get_book}}\n",
        17,
        "operationId 'get_book' is not an operation",
    ),
    # The .proto.
    ("library.proto", "since: 1.30", "since: 1.31", 6, "number: 1.31 must not be newer than info.version, 1.30"),
    ("library.proto", "since: 1.30", "until: 1.0", 6, "number: 1.0 must be newer than the start, 1.0.0"),
    ("library.proto", "since: 1.30", "sinse: 1.30", 6, "number: comment must be since: VERSION"),
    ("library.proto", "int32", "int33", 6, '"int33" is not defined'),
    ("library.proto", "number = 1;", "number = 1; ;;}", 7, "Expected top-level statement"),
    ("library.proto", "  // Number.\n", "", 5, "number has no description"),
    ("library.proto", "  // since: 1.0", "", 4, "Shelf has no version"),
]
"""File, text in it, its replacement, and line and text of the error."""


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    folder = write_own_contract(tmp_path / "schema")
    (folder / "tinker_public.proto").write_text(PROTO)
    return folder


def edit(folder: Path, file: str, old: str, new: str) -> Path:
    path = folder / file.replace("library", "tinker_public")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode(errors="surrogateescape"))
    return path


def read_errors(folder: Path) -> list[str]:
    with pytest.raises(ValueError, match="the contract has errors") as caught:
        check_contract(folder)
    return str(caught.value).splitlines()[1:]


def test_sound_contract_is_accepted(contract: Path) -> None:
    """The contract that the other tests break has no errors."""
    assert check_contract(contract)["info"]["title"] == "Library"


@pytest.mark.parametrize(("file", "old", "new", "line", "message"), CASES)
def test_broken_contract_is_refused(contract: Path, file: str, old: str, new: str, line: int, message: str) -> None:
    """The error names file and line, and describes the error."""
    path = edit(contract, file, old, new)
    errors = read_errors(contract)
    assert [error for error in errors if error.startswith(f"{path}:{line}: ") and message in error], errors


def test_families_in_a_cycle_are_refused(contract: Path) -> None:
    """The error names each reference of the cycle, and the line of one of them."""
    path = edit(contract, "shared.yaml", "{type: string,", f"{{$ref: '{SELF}Book',")
    edit(contract, "books.yaml", "type: integer, minimum: 1,", f"$ref: '{SELF}Failure',")
    errors = read_errors(contract)
    assert errors == [
        f"{path}:3: {SELF}Failure: families must not refer to each other: Failure of shared refers to Book of books; "
        "Book of books refers to Failure of shared; move one of these schemas to another family"
    ]


def test_all_errors_are_listed(contract: Path) -> None:
    """Errors of different kinds and files appear together, each once."""
    edit(contract, "books.yaml", "x-enum-since", "x-enumsince")
    edit(contract, "books.yaml", "      description: A book.\n", "")
    edit(contract, "books.yaml", "tags: [books]", "tags: [boks]")
    edit(contract, "books.yaml", "in: path", "in: road")
    edit(contract, "shared.yaml", "      required:", "      required: []\n      required:")
    edit(contract, "openapi.yaml", "books]", "books, films]")
    errors = read_errors(contract)
    for text in ("x-enumsince is unknown", "Book: has no description", "'boks'", "'required' is in line", "films.yaml"):
        assert len([error for error in errors if text in error]) == 1, (text, errors)


@pytest.mark.parametrize("command", ["generate", "check", "export --wire 1.30 --format openapi-json"])
def test_commands_refuse_a_broken_contract(
    contract: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command exits with 2, prints the error, and writes nothing."""
    path = edit(contract, "books.yaml", "x-enum-since", "x-enumsince")
    out = tmp_path / "out"
    assert main([*command.split(), "--schema", str(contract), "--out", str(out)]) == 2
    assert f"{path}:27: " in capsys.readouterr().err
    assert not out.exists()


def test_readme_explains_every_mark() -> None:
    """The tables of the marks have all marks that a contract may contain."""
    text = README.read_text(encoding="utf-8")
    assert [mark for mark in MARKS if f"`{mark}`" not in text] == []
