"""Tests of ``tinkerwire conformance``, against embedded servers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.support.raw_server import close_after, raw_server

from tinkerwire._cli.entry import main
from tinkerwire.local import Quirks
from tinkerwire.testing import LocalServer

SCHEMA = json.loads((files("tinkerwire._conformance.report") / "report.schema.json").read_text())
WIRE = "0.25.0"
OPAQUE_KEY = "Zx81QjZx81Qj"
ONE = ("--only", "FUT-008")
"""A requirement whose test is one request."""
TIMEOUT_S = 100


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    """Return a server that meets the requirements."""
    with LocalServer(wire=WIRE) as served:
        yield served


@pytest.fixture(scope="module")
def broken() -> Iterator[LocalServer]:
    """Return a server that reports failed work with status 500."""
    with LocalServer(wire=WIRE, quirks=Quirks.parse("failure=500")) as served:
        yield served


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command and return its exit code, standard output and standard error."""
    code = main(["conformance", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_conforming_server_has_code_0(server: LocalServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, server.url, "--wire", WIRE, *ONE)
    assert code == 0, out + err
    assert re.fullmatch(rf"wire {WIRE}: all \d+ musts hold; (\d+) of \1 musts and shoulds passed", out.splitlines()[-1])


def test_failure_has_code_1_and_all_that_its_author_needs(
    broken: LocalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of a failure has expectation, response, requests without a key, remedy and who breaks."""
    code, out, _ = run(capsys, broken.url, "--wire", WIRE, "--only", "FUT-010", "--api-key", OPAQUE_KEY)
    assert code == 1
    assert "FUT-010 must failed: " in out
    for name in ("expected", "received", "request", "poll", "remedy", "breaks"):
        assert f"\n  {name.ljust(10)}" in out
    assert out.count('-H "x-api-key: $TINKER_API_KEY"') == 2
    assert f"{broken.url}/api/v1/forward_backward" in out
    assert "\x1b" not in out
    assert OPAQUE_KEY not in out


def test_local_starts_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "local", "--wire", "0.9.0", *ONE)
    assert code == 0, out + err
    assert "wire 0.9.0, model tinkerwire/byte-nano" in err


def test_files_have_the_same_outcomes(
    broken: LocalServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON, JUnit, page and badge show the failure, and none of them the key."""
    monkeypatch.setenv("TINKER_API_KEY", OPAQUE_KEY)
    paths = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "html", "badge")}
    options = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    code, _, _ = run(capsys, broken.url, "--wire", WIRE, "--only", "FUT-010", *options)
    assert code == 1
    assert [name for name, path in paths.items() if OPAQUE_KEY in path.read_text()] == []
    report = json.loads(paths["json"].read_text())
    jsonschema.validate(report, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert report["unmet"] == ["FUT-010"]
    (failure,) = [
        case for case in ElementTree.parse(paths["junit"]).iter("testcase") if case.find("failure") is not None
    ]
    assert failure.get("name", "").startswith("FUT-010 ")
    assert 'id="FUT-010"' in paths["html"].read_text()
    assert ElementTree.fromstring(paths["badge"].read_text()).tag.endswith("svg")


@pytest.mark.parametrize("arguments", [["--json", "-"], []])
def test_json_goes_to_standard_output(
    server: LocalServer, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json -` and the shared option before the command print the same document."""
    before = [] if arguments else ["-f", "json"]
    assert main([*before, "conformance", server.url, "--wire", WIRE, *ONE, *arguments]) == 0
    captured = capsys.readouterr()
    jsonschema.validate(json.loads(captured.out), SCHEMA)
    assert captured.err == ""


def test_baseline_shows_what_changed(
    server: LocalServer, broken: LocalServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    assert run(capsys, server.url, "--wire", WIRE, "--only", "FUT-010", "--json", str(old))[0] == 0
    code, out, _ = run(capsys, broken.url, "--wire", WIRE, "--only", "FUT-010", "--baseline", str(old))
    assert code == 1
    assert "0 better, 1 worse, 0 new, 0 gone" in out
    assert "  worse  FUT-010: passed -> failed" in out


def test_unreachable_server_has_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "http://127.0.0.1:9", "--wire", WIRE, *ONE)
    assert (code, out) == (3, "")
    assert "http://127.0.0.1:9" in err
    assert err.count("\n") == 1


def test_error_has_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    """The error shows the response, but not the key that the response repeats."""
    body = f'{{"detail": "bad key {OPAQUE_KEY}"}}'
    head = f"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with raw_server(close_after(f"{head}Connection: close\r\n\r\n{body}".encode())) as server:
        code, out, err = run(capsys, server.url, *ONE, "--api-key", OPAQUE_KEY)
    assert (code, out) == (3, "")
    assert "bad key ***" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "argument URL is missing"),
        (["ftp://host"], "not an http(s) URL"),
        (["http://user:password@host"], "base_url must have scheme, host, port and path only"),
        (["local:folder"], "not the address of a server"),
        (["local", "--only", "NONE-1"], "argument --only: no area and no requirement is called none-1"),
        (["local", "--only", OPAQUE_KEY], "argument --only: a value is neither an area nor an id"),
        (["local", "--wire", "9.9.9"], "argument --wire: wire version must be"),
        (["local", "--level", "all"], "argument --level"),
        (["http://127.0.0.1:9", "--api-key", f"{OPAQUE_KEY}\n"], "api_key must be printable ASCII"),
        (["local", "--max-minutes", "0"], "argument --max-minutes"),
        (["local", "--baseline", "missing.json"], "argument --baseline: missing.json: No such file"),
        (["local", "--baseline", "empty.json"], "argument --baseline: empty.json is not a report"),
        (["local", "--json", "a", "--html", "a"], "need a file each"),
    ],
)
def test_wrong_usage_has_code_2(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text("{}")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert expected in err
    assert OPAQUE_KEY not in err and "password" not in err
    assert err.count("\n") == 1


def test_file_that_cannot_be_written_fails_before_the_run(
    server: LocalServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, server.url, *ONE, "--html", str(tmp_path / "missing" / "report.html"))
    assert (code, out) == (1, "")
    assert err.endswith("missing does not exist; create it\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_file_that_fails_does_not_keep_back_the_others(
    server: LocalServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.html"
    code, out, err = run(capsys, server.url, "--wire", WIRE, *ONE, "--json", "/dev/full", "--html", str(path))
    assert code == 1
    assert out.splitlines()[-1].startswith(f"wire {WIRE}: all ")
    assert err.endswith("--json: /dev/full cannot be written: No space left on device\n")
    assert path.stat().st_size > 0


def test_list_needs_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` obeys the selection, also that of the wire version."""
    code, out, _ = run(capsys, "--list", "--only", "futures", "--level", "must", "--wire", "0.9.0")
    assert code == 0
    rows = out.splitlines()[1:]
    assert rows[0].startswith("FUT-001  must")
    assert all(row.startswith("FUT-") and "  must  " in row for row in rows)
    assert not any(row.startswith("FUT-012") for row in rows)


def test_terminal_shows_progress_and_time_left(
    server: LocalServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line has the share, the id and the time left; it is removed before the report."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code, _, err = run(capsys, server.url, "--wire", WIRE, "--only", "FUT-006")
    assert code == 0
    lines = err.split("\r")
    assert any(line.startswith("  0% SES-001") for line in lines)
    assert re.search(r" [1-9]\d% FUT-\d{3}, about \d+ (s|:\d\d min) left", err)
    assert all(len(line) < 60 for line in lines[1:-1])
    assert lines[-2].strip() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_interrupted_run_reports_and_cleans_up(tmp_path: Path) -> None:
    """Ctrl-C ends the tests; the report has what was tested, and the models of the run are unloaded."""
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "tinkerwire", "conformance"]
    with (
        LocalServer(wire=WIRE) as served,
        subprocess.Popen(
            [*command, served.url, "--wire", WIRE, "--json", str(path)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TINKER_BASE_URL": "http://127.0.0.1:1"},
        ) as process,
    ):
        models = served.embedded._state.models._models
        deadline = time.monotonic() + TIMEOUT_S
        while not models and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert not models
        assert served.embedded.checkpoint_count == 0
    assert process.returncode == 130, err
    assert out.splitlines()[-1].endswith("; the run was interrupted")
    report: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(report, SCHEMA)
    assert report["is_interrupted"]
    assert report["counts"]["not run"] > 0
