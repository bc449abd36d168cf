"""Tests of the pytest plugin ``tinkerwire.conformance``, in pytest runs of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinkerwire.local import Quirks
from tinkerwire.testing import LocalServer

WIRE = "0.25.0"
KEY = "Zx81QjZx81Qj"
TIMEOUT_S = 110


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    """Return a server that reports failed work with status 500."""
    with LocalServer(wire=WIRE, quirks=Quirks.parse("failure=500")) as served:
        yield served


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in another process with the plugin."""
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers -p tinkerwire.conformance\n")
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=TIMEOUT_S)


def test_requirements_are_tests(
    pytester: pytest.Pytester, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are in the names; a failure has the requests and the remedy, but no key; reasons of skips are shown."""
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    options = ("--tinker-url", server.url, "--tinker-wire", WIRE, "--tinker-level", "should")
    selection = ("--tinker-only", "FUT-008", "--tinker-only", "FUT-010", "--tinker-only", "SMP-021")
    pytester.makepyfile("def test_own():\n    pass\n")
    result = run_pytest(pytester, "-v", "-p", "no:xdist", *options, *selection)
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["skipped"]) == (1, 1)
    result.stdout.fnmatch_lines(
        [
            "*test_own PASSED*",
            "conformance::FUT-008 PASSED*",
            "conformance::FUT-010 FAILED*",
            "*failed: FUT-010 must: Work that fails ends in a result*",
            "*  remedy: *",
            "SKIPPED*SMP-021: applies to wire 0.26.2 and later*",
        ]
    )
    assert KEY not in result.stdout.str() + result.stderr.str()


def test_without_a_server_nothing_is_added(pytester: pytest.Pytester) -> None:
    """Authors can keep the plugin in their configuration."""
    pytester.makepyfile("def test_own():\n    pass\n")
    run_pytest(pytester, "-p", "no:xdist").assert_outcomes(passed=1)


def test_selection_by_name(pytester: pytest.Pytester) -> None:
    """-k selects requirements; local is the embedded server."""
    result = run_pytest(pytester, "-p", "no:xdist", "--tinker-url", "local", "-k", "FUT-008")
    assert set(result.parseoutcomes()) == {"passed", "deselected"}


def test_unreachable_server_fails_every_test(pytester: pytest.Pytester) -> None:
    url = "http://127.0.0.1:9"
    result = run_pytest(pytester, "-p", "no:xdist", "--tinker-url", url, "--tinker-only", "FUT-008")
    assert set(result.parseoutcomes()) == {"failed"}
    result.stdout.fnmatch_lines([f"{url} cannot be tested: *"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--tinker-url", "local", "--tinker-only", "NONE"],
            "--tinker-only: no area and no requirement is called none*",
        ),
        (["--tinker-url", "local", "-n", "2"], "*use -n 0, or --dist loadgroup*"),
    ],
)
def test_wrong_options_end_the_run(pytester: pytest.Pytester, arguments: list[str], expected: str) -> None:
    result = run_pytest(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{expected}"])


def test_loadgroup_keeps_the_order(pytester: pytest.Pytester, server: LocalServer) -> None:
    """One worker of xdist runs all requirements."""
    options = ("--tinker-url", server.url, "--tinker-wire", WIRE, "--tinker-only", "FUT-006")
    result = run_pytest(pytester, "-v", "-n", "2", "--dist", "loadgroup", *options)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    workers = {line.split("]")[0] for line in result.stdout.lines if "PASSED" in line}
    assert len(workers) == 1
