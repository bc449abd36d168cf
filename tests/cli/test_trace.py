"""Tests of ``tinkerwire trace``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tinkerwire as tw
from cli.test_management import read_json
from tinkerwire._cli.entry import main
from tinkerwire._trace.report import format_table, read_trace


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a trace of two calls."""
    trace = tmp_path / "run.trace"
    with tw.ServiceClient(base_url="local", trace=trace) as service:
        service.get_server_capabilities()
        service.get_server_capabilities()
    return str(trace)


def test_trace_prints_a_table(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", path]) == 0
    assert capsys.readouterr().out.rstrip("\n") == format_table(read_trace(Path(path))).rstrip("\n")


def test_trace_prints_json_and_writes_files(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, perfetto = tmp_path / "run.html", tmp_path / "run.json"
    assert main(["trace", path, "--html", str(page), "--perfetto", str(perfetto)]) == 0
    assert capsys.readouterr().out == ""
    assert read_json("trace", path)["operations"] == 2
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(perfetto.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["missing"], "missing: No such file or directory; check the path, and that its folder exists"),
        (["folder"], "folder: Is a directory; give the path of a file"),
        (["run.trace", "--run", "7"], "run.trace: run must be 1 to 1, got 7"),
        (
            ["run.trace", "--html", "missing/run.html"],
            "missing/run.html: No such file or directory; check the path, and that its folder exists",
        ),
        (
            ["run.trace", "--perfetto", "run.trace"],
            "run.trace: this is a trace, and would be overwritten; give another path",
        ),
    ],
)
@pytest.mark.usefixtures("path")
def test_failure_is_one_line_with_the_way_out(
    arguments: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert main(["trace", *arguments]) == 1
    assert capsys.readouterr().err == f"tinkerwire trace: {expected}\n"
    assert len(read_trace("run.trace").operations) == 2
