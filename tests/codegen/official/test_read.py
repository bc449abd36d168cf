"""The facts of a release are read from its files alone: wheel, folder, every kind of type, endpoint and message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from support.release import VERSION, sources, write_folder, write_wheel
from tinkerwire_codegen.official.release.archive import Release, open_release
from tinkerwire_codegen.official.release.read import read_facts


def read(files: dict[str, str] | None = None) -> dict[str, Any]:
    return read_facts(Release(VERSION, {k: v for k, v in (files or sources()).items() if k.endswith(".py")}))


def fields(name: str) -> dict[str, Any]:
    found: dict[str, Any] = read()["types"][name]["fields"]
    return found


def test_a_wheel_and_a_folder_give_the_same(tmp_path: Path) -> None:
    """It does not matter how a release comes; its version is in its metadata."""
    wheel = open_release(str(write_wheel(tmp_path / "made-0.7.0.whl", sources())))
    folder = open_release(str(write_folder(tmp_path / "unpacked", sources())))
    assert wheel.version == folder.version == VERSION
    assert wheel.files == folder.files
    assert read_facts(wheel) == read_facts(folder)


def test_without_metadata_the_package_says_its_version(tmp_path: Path) -> None:
    """A folder of sources has no metadata, but a version module."""
    files = {name: text for name, text in sources().items() if "dist-info" not in name}
    assert open_release(str(write_folder(tmp_path / "src", files))).version == VERSION


def test_nothing_of_the_release_is_run(tmp_path: Path) -> None:
    """A release that would end the process on import is read like any other."""
    files = {**sources(), "tinker/__init__.py": "raise SystemExit(3)\n"}
    facts = read_facts(open_release(str(write_wheel(tmp_path / "bad.whl", files))))
    assert "StartRequest" in facts["types"]
    assert "tinker.types.all" not in sys.modules


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no/such.whl", "must be a wheel, a folder or a version"),
        ("empty", "has no package tinker"),
        ("text.whl", "not a wheel"),
    ],
)
def test_unusable_input_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, says: str
) -> None:
    """What cannot be read is named, with what to give in its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.whl").write_text("no zip")
    with pytest.raises(ValueError, match=says):
        open_release(given)


def test_a_broken_file_is_named() -> None:
    """A file that is no Python is said, not left out."""
    with pytest.raises(ValueError, match=r"tinker/_kinds.py: cannot be parsed as Python"):
        read({**sources(), "tinker/_kinds.py": "def"})


def test_kinds_of_types() -> None:
    """Models, typed dicts, enums, literals, unions and aliases are told apart; dataclasses are not of the wire."""
    facts = read()
    kinds = {name: fact["kind"] for name, fact in facts["types"].items()}
    assert kinds == {
        **dict.fromkeys(
            ("ImagePart", "Knobs", "StartRequest", "StartResponse", "StopResponse", "TextPart"), "pydantic"
        ),
        **{"FutureRetrieveResponse": "union", "Part": "union", "JobID": "alias", "Level": "enum", "Mode": "literal"},
        "OldParams": "typed_dict",
    }
    assert list(facts["inmemory_types"]) == ["Fast"]
    assert facts["types"]["Mode"]["values"] == ["fast", "slow"]
    assert facts["types"]["Level"]["values"] == ["low", "high"]
    assert facts["types"]["Part"] | {"module": "", "fields": {}} == {
        "kind": "union",
        "members": ["TextPart", "ImagePart"],
        "discriminator": "type",
        "module": "",
        "fields": {},
    }


def test_strictness_is_inherited() -> None:
    """A model is as strict as what it stands on says."""
    types = read()["types"]
    assert types["StartRequest"]["strict"] is True
    assert types["StartResponse"]["strict"] is False


def test_fields() -> None:
    """Types as text, required or not, defaults computed where they are written as sums, factories or models."""
    assert fields("StartRequest") == {
        "parts": {"type": "list[Part]", "required": True},
        "mode": {"type": "Mode", "required": True},
        "colour": {"type": '"red" | "green"', "required": True},
        "knobs": {"type": "Knobs | null", "required": False, "default": None},
        "level": {"type": "Level", "required": False, "default": "low"},
        "extra": {"type": "map[str, any] | null", "required": False, "default": None},
        "default_knobs": {
            "type": "Knobs",
            "required": False,
            "default": {"heat": 0.5, "steps": 100, "tags": []},
        },
    }
    assert fields("StartResponse")["pair"]["type"] == "tuple[int, float] | null"
    assert fields("StartResponse")["made_at"] == {"type": "datetime", "required": True}
    assert fields("ImagePart")["data"] == {"type": "bytes", "required": True, "wire": "base64 str"}
    assert fields("OldParams") == {
        "name": {"type": "str", "required": True},
        "size": {"type": "int", "required": False},
    }


def test_a_dataclass_in_a_type_is_marked() -> None:
    """Where a Python class stands in the place of a type, its name says so."""
    assert read()["inmemory_types"]["Fast"]["fields"]["more"]["type"] == "map[str, Fast#inmem]"


def test_a_default_that_must_be_run_is_shown_as_source() -> None:
    """No value is made up for a default that only running the code would tell."""
    text = sources()["tinker/types/all.py"].replace("heat: float = 0.5", "heat: float = read_heat()")
    facts = read({**sources(), "tinker/types/all.py": text})
    assert facts["types"]["Knobs"]["fields"]["heat"]["default"] == {"python": "read_heat()"}


def test_endpoints() -> None:
    """Each call of an HTTP method: dumped models, bodies in place, queries with defaults, no answer."""
    endpoints = read()["endpoints"]
    for endpoint in endpoints.values():
        del endpoint["sites"]
    assert endpoints == {
        "GET /api/v1/jobs": {
            "method": "GET",
            "path": "/api/v1/jobs",
            "query": {
                "limit": {"type": "int", "sdk_default": 20},
                "colour": {"type": "str | null", "optional": True},
            },
            "response": "StartResponse",
        },
        "POST /api/v1/jobs/{}/stop": {
            "method": "POST",
            "path": "/api/v1/jobs/{job_id}/stop",
            "request": "inline",
            "body_fields": {"why": "str | null"},
            "request_content_types": ["application/json"],
            "response": "null",
        },
        "POST /api/v1/start": {
            "method": "POST",
            "path": "/api/v1/start",
            "request": "StartRequest",
            "request_dump": {"exclude_unset": True},
            "request_content_types": ["application/json"],
            "response": "StartResponse",
        },
    }


def test_results_of_queued_work() -> None:
    """Which result belongs to which kind of request is read from the calls that wait."""
    assert read()["futures"] == [{"request_type": "Start", "result": "StartResponse"}]


def test_messages() -> None:
    """Protobuf messages come from the serialized descriptor, with numbers and presence."""
    proto = read()["proto"]["tinker_public_pb2"]
    assert proto["messages"] == {
        "Point": {
            "fields": {
                "x": {"number": 1, "type": "int64"},
                "name": {"number": 2, "type": "string", "optional": True},
            }
        }
    }
