"""Behaviour of a release that OpenAPI has no place for is recorded by version and compared; what is unread is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.release import VERSION, sources, write_contract, write_wheel
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.official.absorb import release as release_module
from tinkerwire_codegen.official.absorb.release import write_release
from tinkerwire_codegen.official.drift.behaviour import (
    FILE,
    compare_behaviour,
    read_record,
    record_behaviour,
)
from tinkerwire_codegen.official.drift.detection import find_drift
from tinkerwire_codegen.official.release.archive import Release
from tinkerwire_codegen.official.release.parsing import UnparsableSource, parse_source
from tinkerwire_codegen.official.release.read import read_facts

TYPES, JOBS = "tinker/types/all.py", "tinker/resources/jobs.py"


def read_release(*edits: tuple[str, str, str]) -> dict[str, Any]:
    files = sources()
    for file, old, new in edits:
        assert old in files[file]
        files[file] = files[file].replace(old, new, 1)
    return read_facts(Release(VERSION, {name: text for name, text in files.items() if name.endswith(".py")}))


def list_changes(*edits: tuple[str, str, str]) -> list[tuple[str, str, Any, Any]]:
    differences = compare_behaviour(read_release()["behaviour"], read_release(*edits)["behaviour"])
    return [(difference.kind, difference.where, difference.ours, difference.theirs) for difference in differences]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ((TYPES, "heat: float = 0.5", "heat: float = Field(0.5, ge=0)"), ("constraint", "Knobs.heat", None, {"ge": 0})),
        ((TYPES, "text: str", "text: str = Field(exclude=True)"), ("excluded field", "TextPart.text", None, True)),
        (
            (JOBS, 'options={"params": params}', 'options={"params": params, "timeout": 5}'),
            ("timeout", "GET /api/v1/jobs", None, ["5"]),
        ),
        (
            (JOBS, 'options={"params": params}', 'options={"params": params, "headers": {"X-A": "1"}}'),
            ("request header", "x-a", None, ["1"]),
        ),
        (
            (JOBS, "exclude_unset=True, mode", "mode"),
            ("dump", "POST /api/v1/start", {"exclude_unset": True, "mode": "json"}, {"mode": "json"}),
        ),
        ((TYPES, "part: Part", "part: str"), ("dataclass field", "Fast.part", "Part", "str")),
    ],
)
def test_change_of_behaviour_is_found(edit: tuple[str, str, str], expected: tuple[Any, ...]) -> None:
    """Each change of behaviour is one difference with its place."""
    assert list_changes(edit) == [expected]


def test_names_in_a_serializer_do_not_count() -> None:
    """A serializer with other names is the same serializer; one with other code is another."""
    names = (TYPES, "def write(self, value: bytes) -> str:", "def dump(self, value):")
    code = (TYPES, "b64encode(value)", "b64encode(value + value)")
    assert list_changes(names) == []
    assert [change[:2] for change in list_changes(code)] == [("serializer", "ImagePart.data")]


def test_helper_of_a_serializer_does_not_count() -> None:
    """A serializer whose code moves into a helper is the same serializer; other code of the helper is another."""
    helper = (TYPES, "class ImagePart", "def _encode(data):\n    return {}\n\n\nclass ImagePart")
    call = (TYPES, "return base64.b64encode(value).decode()", "return _encode(value)")
    same, other = "base64.b64encode(data).decode()", "base64.b32encode(data).decode()"
    assert list_changes(call, (*helper[:2], helper[2].format(same))) == []
    changed = {change[:2] for change in list_changes(call, (*helper[:2], helper[2].format(other)))}
    assert changed == {("serializer", "ImagePart.data"), ("encoding", "ImagePart.data")}


LIMITS = """from pydantic import Field

LEAST = 3
AT_LEAST = {"ge": LEAST}


def limited(least=LEAST, **more):
    return Field(ge=least, **more)


def bounded():
    return Field(ge=LEAST)


def from_environment():
    return Field(ge=int(os.environ["LEAST"]))
"""


def read_limited(value: str) -> dict[str, Any]:
    files = {**sources(), "tinker/_limits.py": LIMITS}
    lines = f"    steps: int = {value}\n"
    files[TYPES] = "from .. import _limits\n" + files[TYPES].replace("    steps: int = 10 * 10\n", lines)
    files[TYPES] = files[TYPES].replace("from __future__ import annotations\n", "")
    return read_facts(Release(VERSION, files))


@pytest.mark.parametrize(
    "value", ["_limits.bounded()", "_limits.limited()", "_limits.limited(_limits.LEAST)", "Field(**_limits.AT_LEAST)"]
)
def test_limit_by_a_constant_of_another_module_is_evaluated(value: str) -> None:
    """The names in a function or mapping that makes a field belong to its own module."""
    facts = read_limited(value)
    assert facts["not_understood"] == []
    assert facts["behaviour"]["constraint"]["Knobs.steps"] == {"ge": 3}


def test_unread_limit_of_a_function_is_reported_in_its_file() -> None:
    """The place of a part that is not understood is that of its source, not of the call that uses it."""
    (problem,) = read_limited("_limits.from_environment()")["not_understood"]
    assert (problem["file"], problem["line"]) == ("tinker/_limits.py", 16)


def test_record_keeps_the_history(tmp_path: Path) -> None:
    """Each version has the behaviour that was recorded for it or for the one before."""
    record_behaviour(tmp_path, "0.7.0", {"timeout": {"GET /a": ["5"]}})
    record_behaviour(tmp_path, "0.8.0", {"timeout": {"GET /a": ["9"], "GET /b": ["1"]}})
    record_behaviour(tmp_path, "0.9.0", {})
    assert read_record(tmp_path, "0.7.5") == {"timeout": {"GET /a": ["5"]}}
    assert read_record(tmp_path, "0.8.0") == {"timeout": {"GET /a": ["9"], "GET /b": ["1"]}}
    assert read_record(tmp_path, "0.9.0") == {"timeout": {}}
    assert json.loads((tmp_path / FILE).read_text())["timeout"]["GET /b"] == {"0.8.0": ["1"], "0.9.0": None}


TIMEOUT = (JOBS, 'options={"params": params}', 'options={"params": params, "timeout": 5}')
LIMIT = (TYPES, "heat: float = 0.5", "heat: float = Field(0.5, ge=0, le=9)")
UNREAD = {
    "timeout": (JOBS, '"timeout": 5', '"timeout": float(os.environ["SECONDS"])'),
    "path": (JOBS, '"/api/v1/start", body', 'os.environ["PATH"], body'),
    "option of a dump": (JOBS, "exclude_unset=True", "exclude_unset=outside.read()"),
    "limit": (TYPES, "ge=0", "ge=outside.read()"),
    "default of a dataclass": (TYPES, "part: Part", "part: Part = outside.read()"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_part_that_is_not_understood_keeps_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A part that cannot be read is listed as not understood; it is neither reported as changed nor recorded."""
    schema = write_contract(tmp_path / "schema")
    record_behaviour(schema, VERSION, read_release(TIMEOUT, LIMIT)["behaviour"])
    before = (schema / FILE).read_text()
    files = sources()
    for file, old, new in (TIMEOUT, LIMIT, UNREAD[name]):
        assert old in files[file]
        files[file] = files[file].replace(old, new, 1)
    release = Release("0.8.0", files)
    facts = read_facts(release)
    assert len(facts["not_understood"]) == 1
    assert find_drift(schema, facts, "0.8.0") == []
    # The contract of this test has no descriptions.
    monkeypatch.setattr(release_module, "generate", lambda *_: None)
    monkeypatch.setattr(release_module, "check_contract", lambda *_: None)
    write_release(schema, tmp_path / "generated", None, release, facts, "0.8.0")
    assert (schema / FILE).read_text() == before


def test_upstream_compares_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reports changes of recorded behaviour, and notes that a contract has no record."""
    write_contract(tmp_path / "schema")
    files = {**sources(), "tinker/_constants.py": "DEFAULT_TIMEOUT = 60\n"}
    command = ["upstream", str(write_wheel(tmp_path / "made.whl", files)), "--schema", str(tmp_path / "schema")]
    assert main(command) == 0
    assert "are not compared" in capsys.readouterr().err
    record_behaviour(tmp_path / "schema", VERSION, read_release()["behaviour"])
    assert main(command) == 1
    assert "added: timeout of all requests added" in capsys.readouterr().out


def test_release_with_an_unread_file_is_not_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The contract stays as it is, because what the file defines would seem to be removed."""
    schema = write_contract(tmp_path / "schema")
    before = {file.name: file.read_bytes() for file in schema.iterdir()}
    files = sources()
    wheel = write_wheel(tmp_path / "made.whl", {**files, TYPES: files[TYPES] + "def\n"})
    assert main(["upstream", str(wheel), "--schema", str(schema), "--wire", "0.8.0", "--write"]) == 2
    assert f"cannot read {TYPES}" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in schema.iterdir()} == before


@pytest.mark.parametrize("output_format", ["text", "json", "markdown"])
def test_upstream_exits_with_3_for_what_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    """The report names file and line of a part that is not understood."""
    write_contract(tmp_path / "schema")
    files = {**sources(), "tinker/more.py": "x = 1\ndef\n"}
    wheel = write_wheel(tmp_path / "made.whl", files)
    command = ["upstream", str(wheel), "--schema", str(tmp_path / "schema"), "--format", output_format]
    assert main(command) == 3
    output = capsys.readouterr().out
    assert "tinker/more.py" in output
    assert "2" in output


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"x = 1\x00", b"(" * 9000, b"class A(A):\n    x: A\n", b"A = B\nB = A\n", b"# coding: nothing\n"],
)
def test_any_file_is_read_without_a_traceback(tmp_path: Path, content: bytes) -> None:
    """A file of the types with unusual content ends in a report, not in an error."""
    write_contract(tmp_path / "schema")
    folder = tmp_path / "release"
    for name, text in sources().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tinker/types/odd.py").write_bytes(content)
    assert main(["upstream", str(folder), "--schema", str(tmp_path / "schema")]) in (0, 1, 3)


@pytest.mark.parametrize(
    "source",
    [
        "type A = int\n",
        "type A[T] = list[T]\n",
        "class A[T](B): pass\n",
        "def f[T: int](x: T) -> T: ...\n",
        "x = f'{'a'}/{f'{1}'}'\n",
        "try: pass\nexcept A, B: pass\n",
        "x = t'{a}'\n",
    ],
)
def test_newer_syntax_is_parsed_by_each_python(source: str) -> None:
    """Syntax that is newer than the running Python is parsed, and line numbers stay."""
    tree = parse_source(f"{source}end = 1\n", "a.py")
    assert tree.body[-1].lineno == source.count("\n") + 1


def test_text_that_is_not_python_is_unparsable() -> None:
    """The error has the line."""
    with pytest.raises(UnparsableSource) as error:
        parse_source("x = 1\nprint 'x'\n", "a.py")
    assert error.value.line == 2
