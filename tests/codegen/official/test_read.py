"""The facts of a release are read from its files alone: wheel, folder, every kind of type, endpoint and message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from support.release import VERSION, sources, write_folder, write_wheel
from support.release_edits import JOBS
from tinkerwire_codegen.official.release.archive import Release, open_release
from tinkerwire_codegen.official.release.read import read_facts


def read_release(files: dict[str, str] | None = None) -> dict[str, Any]:
    return read_facts(Release(VERSION, {k: v for k, v in (files or sources()).items() if k.endswith(".py")}))


def read_fields(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = read_release()["types"][name]["fields"]
    return facts


def test_wheel_and_folder_give_the_same_facts(tmp_path: Path) -> None:
    """A wheel and a folder give the same facts; the version is in the metadata."""
    wheel = open_release(str(write_wheel(tmp_path / "made-0.7.0.whl", sources())))
    folder = open_release(str(write_folder(tmp_path / "unpacked", sources())))
    assert wheel.version == folder.version == VERSION
    assert wheel.files == folder.files
    assert read_facts(wheel) == read_facts(folder)


def test_version_comes_from_the_package_without_metadata(tmp_path: Path) -> None:
    """A folder of sources has no metadata, but a version module."""
    files = {name: text for name, text in sources().items() if "dist-info" not in name}
    assert open_release(str(write_folder(tmp_path / "src", files))).version == VERSION


def test_release_is_not_run(tmp_path: Path) -> None:
    """A release that would end the process on import is read like any other."""
    files = {**sources(), "tinker/__init__.py": "raise SystemExit(3)\n"}
    facts = read_facts(open_release(str(write_wheel(tmp_path / "bad.whl", files))))
    assert "StartRequest" in facts["types"]
    assert "tinker.types.all" not in sys.modules


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("no/such.whl", "must be a wheel, a folder or a version"),
        ("empty", "has no package tinker"),
        ("text.whl", "must be a wheel"),
    ],
)
def test_unusable_input_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, message: str
) -> None:
    """The error names the input and the valid kinds of input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.whl").write_text("no zip")
    with pytest.raises(ValueError, match=message):
        open_release(argument)


def test_broken_file_is_not_understood() -> None:
    """A file that is not Python is reported with its line; it is not skipped, and the others are read."""
    facts = read_release({**sources(), "tinker/_kinds.py": "x = 1\ndef"})
    assert [(p["file"], p["line"]) for p in facts["not_understood"]] == [("tinker/_kinds.py", 2)]
    assert "StartRequest" in facts["types"]


def test_types_are_classified() -> None:
    """Models, typed dicts, enums, literals, unions and aliases are distinguished; dataclasses are not on the wire."""
    facts = read_release()
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
    """A model inherits the strictness of its base."""
    types = read_release()["types"]
    assert types["StartRequest"]["strict"] is True
    assert types["StartResponse"]["strict"] is False


def test_fields_have_types_and_defaults() -> None:
    """Types are text; defaults are evaluated from sums, factories and models."""
    assert read_fields("StartRequest") == {
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
    assert read_fields("StartResponse")["pair"]["type"] == "tuple[int, float] | null"
    assert read_fields("StartResponse")["made_at"] == {"type": "datetime", "required": True}
    assert read_fields("ImagePart")["data"] == {"type": "bytes", "required": True, "wire": "base64 str"}
    assert read_fields("OldParams") == {
        "name": {"type": "str", "required": True},
        "size": {"type": "int", "required": False},
    }


def test_dataclass_in_a_type_is_marked() -> None:
    """A Python class used as a type has the suffix #inmem."""
    assert read_release()["inmemory_types"]["Fast"]["fields"]["more"]["type"] == "map[str, Fast#inmem]"


def test_dynamic_default_is_kept_as_source() -> None:
    """A default that only running the code would give is kept as source text."""
    text = sources()["tinker/types/all.py"].replace("heat: float = 0.5", "heat: float = read_heat()")
    facts = read_release({**sources(), "tinker/types/all.py": text})
    assert facts["types"]["Knobs"]["fields"]["heat"]["default"] == {"python": "read_heat()"}


def test_endpoints_are_read_from_calls() -> None:
    """Each call of an HTTP method: dumped models, inline bodies, queries with defaults, no response body."""
    endpoints = read_release()["endpoints"]
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


RECORD = """from dataclasses import asdict, dataclass

@dataclass
class Page:
    limit: int
    start: object = 0

@dataclass
class Route:
    path: str = "/api/v1/other"

class Place:
    path = "/api/v1/other"

SHARED = Route()
SHARED.path = "/api/v1/jobs"

def move(route):
    route.path = "/api/v1/jobs"
"""


def read_jobs(*lines: str, path: str = '"/api/v1/jobs"') -> dict[str, Any]:
    files = sources()
    params = '            params: dict[str, object] = {"limit": limit}\n'
    jobs = files[JOBS].replace(params, "".join(f"            {line}\n" for line in lines) or params)
    files[JOBS] = jobs.replace('client.get("/api/v1/jobs"', f"client.get({path}") + RECORD
    return read_release(files)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["page = Page(limit)", 'page.start = "a"'], "str"),
        (["page = Page(limit, 1)", "page.start += 0.5"], "float"),
        (["page = Page(limit)", 'setattr(page, "start", "a")'], "str"),
        (["page = Page(limit)", "page.start: str = str(limit)"], "str"),
        (["page = Page(limit)", "other = page", 'other.start, _ = "a", 1'], "any"),
        (["page = Page(limit)", "if limit:", '    page.start = "a"'], "any"),
        (["page = Page(limit)", "setattr(page, colour, 'a')"], "any"),
    ],
)
@pytest.mark.parametrize("params", ['{"limit": page.limit, "start": page.start}', "asdict(page)"])
def test_field_that_is_set_after_the_creation_is_followed(lines: list[str], kind: str, params: str) -> None:
    """A field of a record has the value that the code last gives it, not the one of the call that creates it."""
    facts = read_jobs(*lines, f"params = {params}")
    query = facts["endpoints"]["GET /api/v1/jobs"]["query"]
    assert query.get("start", {"type": "any"})["type"] == kind
    if "start" not in query:
        assert facts["not_understood"]


@pytest.mark.parametrize(
    "lines",
    [
        ["route = Route()", "move(route)"],
        ["route = SHARED"],
        ["routes = [Route()]", 'routes[0].path = "/api/v1/jobs"', "route = routes[0]"],
        ["route = Place()", 'route.path = "/api/v1/jobs"'],
    ],
)
def test_field_that_changes_elsewhere_is_not_understood(lines: list[str]) -> None:
    """A field whose change cannot be followed is not read as what the creation gives it."""
    facts = read_jobs('params = {"limit": limit}', *lines, path="route.path")
    assert facts["not_understood"]
    assert "GET /api/v1/other" not in facts["endpoints"]


def test_results_of_queued_work_are_read() -> None:
    """The calls that wait give the result type of each kind of request."""
    assert read_release()["futures"] == [{"request_type": "Start", "result": "StartResponse"}]


def test_protobuf_messages_are_read() -> None:
    """Protobuf messages come from the serialized descriptor, with numbers and presence."""
    proto = read_release()["proto"]["tinker_public_pb2"]
    assert proto["messages"] == {
        "Point": {
            "fields": {
                "x": {"number": 1, "type": "int64"},
                "name": {"number": 2, "type": "string", "optional": True},
            }
        }
    }
