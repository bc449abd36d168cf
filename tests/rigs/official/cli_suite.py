"""Every command of the official command line, and of ours, as a process against `tinkerwire serve` of its version.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/cli_suite.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.rigs.official.venv import ensure_official_python

import tinkerwire as tw
from support.embedded import embedded_http_server

pytestmark = pytest.mark.timeout(1800)
KEY = "tml-official-cli"
NANO = "tinkerwire/byte-nano"
VERSIONS = ("0.38.0", "0.30.4", "0.25.0", "0.18.2", "0.16.1")
TOKEN_VERSIONS = ("0.38.0",)
"""Versions whose server issues tokens, which identify the user."""
BROKEN_DELETIONS = ("0.18.2", "0.16.1")
"""Versions whose `delete` fails for paths: their command named list hides the function of Python."""
START, END = "2026-07-13T00:00:00Z", "2026-07-13T01:00:00Z"


@attrs.frozen
class Outcome:
    """Result of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The output as JSON, with times in one form."""
        return normalize(json.loads(self.stdout))


@attrs.frozen
class Setup:
    """A server with two runs, one for each command line, and the programs."""

    version: str
    url: str
    folder: Path
    paths: dict[str, dict[str, str]]
    """By command line: the paths of a training, a second training and a sampler checkpoint."""
    commands: dict[str, list[str]]

    def run(self, name: str, *arguments: str, stdin: str = "") -> Outcome:
        """Run a command of `tinker` or `tinkerwire`."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, "HOME": str(folder), "TINKER_API_KEY": KEY, "TINKER_BASE_URL": self.url}
        environment |= {"TINKER_TELEMETRY": "0", "NO_COLOR": "1", "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}
        if name == "tinkerwire" and "whoami" not in arguments:
            # A client with a set version does not ask for the flags of the server, which announce tokens.
            environment["TINKER_WIRE_VERSION"] = self.version
        process = subprocess.run(
            [*self.commands[name], *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            timeout=300,
            check=False,
        )
        # The official program sometimes aborts at the end of its interpreter, after the whole output.
        has_aborted = process.returncode == -signal.SIGABRT and bool(process.stdout)
        return Outcome(0 if has_aborted else process.returncode, process.stdout, process.stderr)

    def both(self, make: Callable[[dict[str, str]], tuple[str, ...]], *, stdin: str = "") -> tuple[Outcome, Outcome]:
        """Run a command of both, each on its own paths, and compare the exit codes."""
        official = self.run("tinker", *make(self.paths["tinker"]), stdin=stdin)
        ours = self.run("tinkerwire", *make(self.paths["tinkerwire"]), stdin=stdin)
        assert bool(official.code) == bool(ours.code), (official, ours)
        return official, ours

    def has(self, *command: str) -> bool:
        """Return whether the official command line has a command."""
        return self.run("tinker", *command, "--help").code == 0


def normalize(value: Any) -> Any:
    """Return a value of JSON with times in one form."""
    if isinstance(value, dict):
        return {name: normalize(item) for name, item in value.items()}
    if isinstance(value, list):
        return [normalize(item) for item in value]
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return value
    return value


def assert_covers(ours: Any, official: Any, place: str = "") -> None:
    """Assert that our JSON has every field of the official JSON, with its value."""
    if isinstance(official, dict):
        for name, value in official.items():
            assert name in ours, f"{place}.{name} is missing"
            assert_covers(ours[name], value, f"{place}.{name}")
    elif isinstance(official, list):
        assert len(ours) == len(official), place
        for number, (mine, other) in enumerate(zip(ours, official, strict=True)):
            assert_covers(mine, other, f"{place}[{number}]")
    else:
        assert ours == official, place


def save_checkpoints(service: tw.ServiceClient) -> dict[str, str]:
    """Make a run with three checkpoints, and return their paths and its id."""
    training = service.create_lora_training_client(NANO, rank=4)
    first = training.save_state("first").result(60).path
    second = training.save_state("second").result(60).path
    sampler = training.save_weights_for_sampler("sampler").result(60).path
    assert sampler is not None
    run_id = first.removeprefix("tinker://").partition("/")[0]
    return {"first": first, "second": second, "sampler": sampler, "run": run_id, "session": service.session_id}


@pytest.fixture(scope="module", params=VERSIONS)
def setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    version = request.param
    python = ensure_official_python(version)
    flags = ("--flag", "pjwt_auth_enabled=true") if version in TOKEN_VERSIONS else ()
    with embedded_http_server("--wire", version, "--api-key", KEY, *flags) as url:
        with tw.ServiceClient(base_url=url, api_key=KEY, wire_version=version) as service:
            paths = {name: save_checkpoints(service) for name in ("tinker", "tinkerwire")}
        commands = {
            "tinker": [str(python), "-m", "tinker.cli"],
            "tinkerwire": [sys.executable, "-m", "tinkerwire"],
        }
        yield Setup(version, url, tmp_path_factory.mktemp("homes"), paths, commands)


def test_version(setup: Setup) -> None:
    official, ours = setup.both(lambda _: ("version",))
    assert official.stdout == f"tinker {setup.version}\n"
    assert ours.stdout == f"tinkerwire {tw.__version__}\n"


@pytest.mark.parametrize(
    "command",
    [("run", "list"), ("run", "list", "--limit", "1"), ("checkpoint", "list"), ("checkpoint", "list", "--limit", "0")],
    ids=" ".join,
)
def test_listings_have_the_same_json(setup: Setup, command: tuple[str, ...]) -> None:
    official, ours = setup.both(lambda _: ("-f", "json", *command))
    assert official.code == 0
    assert_covers(ours.json, official.json)
    table, our_table = setup.both(lambda _: command)
    assert table.code == 0
    assert our_table.stdout.count("\n") > 1


def test_details_have_the_same_json(setup: Setup) -> None:
    """Both ask for the same run and checkpoint, so that all values are equal."""
    path = setup.paths["tinker"]
    for command in (
        ("run", "info", path["run"]),
        ("checkpoint", "info", path["first"]),
        ("checkpoint", "list", "--run-id", path["run"]),
    ):
        official, ours = setup.both(lambda _, command=command: ("--format", "json", *command))
        assert official.code == 0, official
        assert_covers(ours.json, official.json)
        assert setup.both(lambda _, command=command: command)[0].code == 0


def test_models_have_the_same_json(setup: Setup) -> None:
    if not setup.has("model", "list"):
        pytest.skip(f"the command line of {setup.version} has no command model")
    official, ours = setup.both(lambda _: ("-f", "json", "model", "list"))
    assert official.code == 0
    assert_covers(ours.json, official.json)
    assert setup.both(lambda _: ("model", "list", "NANO"))[0].code == 0
    assert setup.both(lambda _: ("model", "list", "no-such-model"))[0].code == 1


def test_changes_have_the_same_effect(setup: Setup) -> None:
    for command, field, expected in (
        (("publish",), "public", True),
        (("unpublish",), "public", False),
        (("set-ttl", "--ttl", "7200"), "expires_at", float),
        (("set-ttl", "--remove"), "expires_at", None),
    ):
        official, _ = setup.both(
            lambda paths, command=command: ("checkpoint", command[0], paths["first"], *command[1:])
        )
        assert official.code == 0, official
        for program in ("tinker", "tinkerwire"):
            value = setup.run("tinkerwire", "checkpoint", "info", setup.paths[program]["first"], "--json").json[field]
            assert isinstance(value, float) if expected is float else value == expected


def test_downloads_have_the_same_files(setup: Setup) -> None:
    """Both unpack into a folder of the same name; --force replaces it, and without --force it stays."""

    def read_folder(name: str) -> dict[str, bytes]:
        folder = (
            setup.folder / name / "out" / setup.paths["tinker"]["first"].removeprefix("tinker://").replace("/", "_")
        )
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    path = setup.paths["tinker"]["first"]
    official, _ = setup.both(lambda _: ("checkpoint", "download", path, "--output", "out"))
    assert official.code == 0, official
    assert read_folder("tinker").keys() == read_folder("tinkerwire").keys()
    assert all(read_folder("tinker")[name] == content for name, content in read_folder("tinkerwire").items())
    assert setup.both(lambda _: ("checkpoint", "download", path, "-o", "out"))[0].code == 1
    forced, ours = setup.both(lambda _: ("-f", "json", "checkpoint", "download", path, "-o", "out", "--force"))
    assert forced.code == 0, forced
    assert ours.json["destination"] == forced.json["destination"]


def test_external_weights_are_downloaded(setup: Setup) -> None:
    """The official command line downloads external weights from 0.36.0 on."""
    if setup.version != "0.38.0":
        pytest.skip(f"the command line of {setup.version} downloads archives")
    with tw.ServiceClient(base_url=setup.url, api_key=KEY, wire_version=setup.version) as service:
        training = service.create_lora_training_client(NANO, rank=4)
        path = training.save_weights_external("ext").result(60).path
    official, _ = setup.both(lambda _: ("checkpoint", "download", path))
    assert official.code == 0, official
    name = path.removeprefix("tinker://").replace("/", "_")
    contents = [
        {file.name: file.read_bytes() for file in (setup.folder / program / name).iterdir()}
        for program in ("tinker", "tinkerwire")
    ]
    assert contents[0] == contents[1] != {}


@pytest.mark.parametrize(
    "command",
    [
        ("auth", "status"),
        ("auth", "whoami"),
        ("session", "export-trace", "SESSION", "--url-only"),
        ("billing", "usage", START, END),
        ("billing", "checkpoint-storage"),
    ],
    ids=" ".join,
)
def test_other_commands_have_the_same_exit_code(setup: Setup, command: tuple[str, ...]) -> None:
    """The embedded server identifies the user if it issues tokens; it keeps no traces."""
    if not setup.has(*command[:2]):
        pytest.skip(f"the command line of {setup.version} has no command {' '.join(command[:2])}")
    official, _ = setup.both(lambda paths: tuple(paths["session"] if part == "SESSION" else part for part in command))
    is_success = command[0] != "session" and (command[1] != "whoami" or setup.version in TOKEN_VERSIONS)
    assert (official.code == 0) == is_success, official


def test_failures_have_the_same_exit_code(setup: Setup) -> None:
    for command in (
        ("run", "info", "none"),
        ("checkpoint", "info", "tinker://none/weights/x"),
        ("checkpoint", "info", "x"),
        ("checkpoint", "publish", "tinker://none/weights/x"),
        ("checkpoint", "download", "tinker://none/weights/x"),
        ("checkpoint", "push-hf", "tinker://none/weights/x"),
        ("checkpoint", "nonsense"),
        ("run", "list", "--columns", "nonsense"),
        ("checkpoint", "delete"),
        ("checkpoint", "set-ttl", "tinker://none/weights/x"),
    ):
        official, ours = setup.both(lambda _, command=command: command)
        assert official.code != 0, (command, official)
        assert ours.stderr.count("\n") == 1, ours


def test_deletions_have_the_same_effect(setup: Setup) -> None:
    """By path, by conditions, and not at all without a yes; runs last, because it deletes what the others show."""
    by_run = ("checkpoint", "delete", "--run-id")

    def count(name: str) -> int:
        listing = setup.run("tinkerwire", "checkpoint", "list", "--run-id", setup.paths[name]["run"], "--json")
        return len(listing.json["checkpoints"])

    before = count("tinker")
    assert before == count("tinkerwire") == 3
    for arguments, stdin, left in (
        (("--type", "weights", "--before", "2020-01-01", "-y"), "", 3),
        (("--type", "sampler_weights", "--after", "2020-01-01T00:00:00Z", "--yes"), "", 2),
    ):
        setup.both(lambda paths, arguments=arguments: (*by_run, paths["run"], *arguments), stdin=stdin)
        assert count("tinker") == count("tinkerwire") == left
    setup.run("tinker", *by_run, setup.paths["tinker"]["run"], stdin="n\n")
    setup.run("tinkerwire", *by_run, setup.paths["tinkerwire"]["run"], stdin="n\n")
    assert count("tinker") == count("tinkerwire") == 2
    if setup.version in BROKEN_DELETIONS:
        confirmed, _ = setup.both(lambda paths: (*by_run, paths["run"]), stdin="y\n")
        assert confirmed.code == 0
        assert count("tinker") == count("tinkerwire") == 0
        return
    official, ours = setup.both(lambda paths: ("-f", "json", "checkpoint", "delete", paths["second"], "-y"))
    assert official.code == 0
    assert_covers(ours.json, official.json)
    confirmed, _ = setup.both(lambda paths: ("checkpoint", "delete", paths["first"]), stdin="y\n")
    assert confirmed.code == 0
    assert count("tinker") == count("tinkerwire") == 0
