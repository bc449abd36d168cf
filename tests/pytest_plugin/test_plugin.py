"""Tests of the pytest plugin, in pytest runs of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
TIMEOUT_S = 110


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in another process, with the plugin as pytest itself finds it."""
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
    return pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider", *arguments, timeout=TIMEOUT_S)


def test_example_of_the_guide_passes(pytester: pytest.Pytester) -> None:
    """The training loop of docs/testing.md and its tests run unchanged."""
    pytester.makepyfile(finetune=BLOCKS[0], test_finetune=BLOCKS[1])
    run_pytest(pytester).assert_outcomes(passed=BLOCKS[1].count("\ndef test_"))


def test_fixtures_keep_their_promises(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are new and seeded, the environment is that of the test only, and marks of any level apply."""
    monkeypatch.setenv("TINKER_API_KEY", "tml-real-key")
    monkeypatch.setenv("TINKER_WIRE_VERSION", "0.9.0")
    monkeypatch.delenv("TINKER_BASE_URL", raising=False)
    pytester.makepyfile(
        """
        import os
        import pytest
        import tinkerwire as tinker

        pytestmark = pytest.mark.tinker(seed=5, wire="0.25.0")
        SAMPLES = []
        FOLDERS = []

        def sample(service):
            sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
            params = tinker.SamplingParams(max_tokens=8)
            future = sampling.sample(tinker.ModelInput.from_ints([1, 2]), num_samples=1, sampling_params=params)
            return list(future.result().sequences[0].tokens)

        @pytest.mark.parametrize("number", range(2))
        def test_equal_seeds(tinker_server, tinker_service, number):
            FOLDERS.append(tinker_server.embedded.folder)
            SAMPLES.append(sample(tinker_service))

        @pytest.mark.tinker(seed=6)
        def test_closest_mark_wins(tinker_server, tinker_service):
            SAMPLES.append(sample(tinker_service))
            assert SAMPLES[0] == SAMPLES[1] != SAMPLES[2]
            assert tinker_server.embedded.wire_version == "0.25.0"

        def test_folders_are_removed():
            assert len(set(FOLDERS)) == 2 and not any(folder.exists() for folder in FOLDERS)

        def test_over_http(tinker_server):
            assert os.environ["TINKER_BASE_URL"] == tinker_server.url
            with tinker.ServiceClient() as service:
                assert len(sample(service)) == 8
                assert tinker_server.url in repr(service) and "tml-" not in repr(tinker_server)

        def test_environment_is_restored():
            assert os.environ["TINKER_API_KEY"] == "tml-real-key"
            assert os.environ["TINKER_WIRE_VERSION"] == "0.9.0"
            assert "TINKER_BASE_URL" not in os.environ

        def test_same_server(tinker_server, tinker_service, tinker_faults):
            assert tinker_faults is tinker_server.fault_injection
            tinker_faults.fail_next(503, count=2, only="create_sampling_session")
            assert len(sample(tinker_service)) == 8
            assert tinker_faults.counts["503"] == 2
        """
    )
    run_pytest(pytester).assert_outcomes(passed=7)


WRONG_MARKS = {
    '"0.18.2"': "expected wire=, quirks=, models= and seed=, got '0.18.2'",
    'version="0.18.2"': "expected wire=, quirks=, models= and seed=, got version",
    'wire="9.9.9"': "9.9.9",
    'quirks=["typo"]': "unknown option 'typo'",
    'models={"a": "b"}': "unknown model 'b'",
}
"""Arguments of the mark, each with a part of the error."""


def test_wrong_mark_is_an_error_that_names_it(pytester: pytest.Pytester) -> None:
    """A mark with an unknown or invalid argument fails the set-up of its test."""
    tests = [
        f"@pytest.mark.tinker({mark})\ndef test_{number}(tinker_server): pass\n"
        for number, mark in enumerate(WRONG_MARKS)
    ]
    pytester.makepyfile("\n".join(["import pytest", *tests]))
    result = run_pytest(pytester)
    result.assert_outcomes(errors=len(WRONG_MARKS))
    errors = [line for line in result.outlines if line.startswith("E  ")]
    assert all(any(error in line for line in errors) for error in WRONG_MARKS.values()), errors


def test_tests_without_fixtures_do_not_import_tinkerwire(pytester: pytest.Pytester) -> None:
    """The plugin imports neither tinkerwire nor numpy until a test asks for a fixture."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            assert "tinkerwire_pytest" in sys.modules
            assert not {"tinkerwire", "tinkerwire_base", "numpy", "aiohttp"} & sys.modules.keys()
        """
    )
    run_pytest(pytester, "-p", "no:hypothesispytest", "-p", "no:anyio").assert_outcomes(passed=1)


def test_plugin_imports_only_pytest() -> None:
    """Importing the plugin loads nothing but what pytest has loaded."""
    program = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport tinkerwire_pytest\nprint(*set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert run.stdout.strip() == "tinkerwire_pytest"
