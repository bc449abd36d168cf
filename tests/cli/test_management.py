"""Tests of the commands that manage models, runs, sessions and checkpoints, against a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import tinkerwire as tw
from support.clients import KEY
from support.embedded import embedded_http_server
from support.scripted import ScriptedResponse, ScriptedServer
from tinkerwire._cli import framework
from tinkerwire._cli.app import root, run
from tinkerwire._cli.output import Table

pytestmark = pytest.mark.timeout(300)
NANO = "tinkerwire/byte-nano"
OUTPUTS: dict[str, Any] = json.loads((Path(framework.__file__).with_name("outputs.json")).read_text())


class Service:
    """A server with one run, which has a training and a sampler checkpoint."""

    def __init__(self, url: str) -> None:
        self.url = url
        with tw.ServiceClient(base_url=url, api_key=KEY) as client:
            training = client.create_lora_training_client(NANO, rank=4)
            self.training_path = training.save_state("a").result(60).path
            self.sampler_path = training.save_weights_for_sampler("b").result(60).path
            assert self.sampler_path is not None
        self.run_id = self.training_path.removeprefix("tinker://").partition("/")[0]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with embedded_http_server() as url:
        yield Service(url)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def call(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(root, arguments, input=stdin, prog_name="tinkerwire")


def read_json(command: str, *arguments: str) -> Any:
    """Run a command with --json, and validate the output against the documented schema."""
    result = call(*command.split(), *arguments, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    jsonschema.validate(value, {**OUTPUTS["commands"][command], "$defs": OUTPUTS["$defs"]})
    return value


def test_every_command_with_results_has_a_schema() -> None:
    """`outputs.json` describes every command that accepts --json."""
    from cli.test_help import list_commands  # noqa: PLC0415

    with_results = {
        path.removeprefix("tinkerwire ")
        for path, command in list_commands()
        if isinstance(command, framework.Command) and any(option.name == "json" for option in command.params)
    }
    assert with_results == set(OUTPUTS["commands"])
    for schema in OUTPUTS["commands"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_json_of_each_listing_fits_its_schema(service: Service) -> None:
    url = ("--base-url", service.url)
    assert NANO in [model["model_name"] for model in read_json("model list", *url)["models"]]
    assert [entry["training_run_id"] for entry in read_json("run list", *url)["runs"]] == [service.run_id]
    assert read_json("run info", service.run_id, *url)["lora_rank"] == 4
    listed = read_json("checkpoint list", *url)
    assert {entry["tinker_path"] for entry in listed["checkpoints"]} == {service.training_path, service.sampler_path}
    assert read_json("checkpoint list", "--run-id", service.run_id, *url)["run_id"] == service.run_id
    assert read_json("checkpoint info", service.training_path, *url)["lora_rank"] == 4
    assert read_json("auth status", *url)["is_accessible"]
    assert read_json("version")["version"] == tw.__version__


def test_official_place_of_the_format_and_ours_give_the_same(service: Service) -> None:
    url = ("--base-url", service.url)
    texts = {
        call(*arguments).stdout
        for arguments in (
            ("-f", "json", *url, "run", "list"),
            ("--json", *url, "run", "list"),
            ("run", "list", "--json", *url),
        )
    }
    assert len(texts) == 1
    json.loads(texts.pop())


def test_tables_show_ids_and_paths(service: Service) -> None:
    """A row of a piped table is one line, with whole values and without colors."""
    url = ("--base-url", service.url)
    lines = call("checkpoint", "list", *url).stdout.splitlines()
    assert sum(service.training_path in line for line in lines) == 1
    assert call("run", "list", "--columns", "id,checkpoint", *url).stdout.splitlines()[2].split("  ")[0] == "RUN ID"
    assert "\x1b" not in call("run", "list", *url).stdout
    assert "LoRA" in call("run", "info", service.run_id, *url).stdout
    assert NANO in call("model", "list", "NANO", *url).stdout


@pytest.mark.parametrize("limit", ["0", "1", "2", "5"])
def test_limit_fetches_as_many_pages_as_necessary(
    limit: str, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with short pages still gives all entries."""
    monkeypatch.setattr("tinkerwire._cli.run.RUNS_PER_PAGE", 2)
    runs = [{"training_run_id": str(number), "is_lora": False} for number in range(5)]

    def list_runs(request: Any) -> ScriptedResponse:
        offset, size = int(request.query["offset"]), int(request.query["limit"])
        cursor = {"offset": offset, "limit": size, "total_count": 5}
        return ScriptedResponse({"training_runs": runs[offset : offset + size], "cursor": cursor})

    server.rules["training_runs"] = list_runs
    shown = read_json("run list", "--limit", limit, "--base-url", server.url)["runs"]
    assert [entry["training_run_id"] for entry in shown] == [str(number) for number in range(int(limit) or 5)]


def test_publish_ttl_and_unpublish(service: Service) -> None:
    url = ("--base-url", service.url)
    path = service.training_path
    read_json("checkpoint publish", path, *url)
    assert read_json("checkpoint info", path, *url)["public"]
    read_json("checkpoint unpublish", path, *url)
    assert not read_json("checkpoint info", path, *url)["public"]
    read_json("checkpoint set-ttl", path, "--ttl", "7200", *url)
    assert read_json("checkpoint info", path, *url)["expires_at"]
    read_json("checkpoint set-ttl", path, "--remove", *url)
    assert read_json("checkpoint info", path, *url)["expires_at"] is None


def test_download_extracts_the_archive(service: Service, tmp_path: Path) -> None:
    """The folder has the name that the official command line gives it."""
    arguments = (service.training_path, "--output", str(tmp_path / "models"), "--base-url", service.url)
    folder = tmp_path / "models" / f"{service.run_id}_weights_a"
    assert read_json("checkpoint download", *arguments)["files"] == ["a.npz", "checkpoint_complete"]
    assert sorted(path.name for path in folder.iterdir()) == ["a.npz", "checkpoint_complete"]
    (folder / "mine").write_text("kept")
    assert run(["checkpoint", "download", *arguments]) == 1
    assert (folder / "mine").exists()
    read_json("checkpoint download", *arguments, "--force")
    assert not (folder / "mine").exists()


def test_delete_asks_and_obeys(tmp_path: Path) -> None:
    """Nothing is deleted in a dry run, without a yes, or at the end of the input."""
    with embedded_http_server() as url:
        service = Service(url)
        by_run = ("checkpoint", "delete", "--run-id", service.run_id, "--base-url", url)

        def count() -> int:
            return len(read_json("checkpoint list", "--base-url", url)["checkpoints"])

        assert service.training_path in call(*by_run, "--dry-run").stdout
        assert count() == 2
        assert call(*by_run, stdin="n\n").exit_code == 1
        assert call(*by_run, stdin="").exit_code == 1
        wrong = call("checkpoint", "delete", service.training_path, "nonsense", "--base-url", url, stdin="y\n")
        assert (wrong.exit_code, "Delete" in wrong.output) == (1, False)
        assert count() == 2
        for condition in (
            ("--before", "2020-01-01"),
            ("--after", "2100-01-01T00:00:00Z"),
            ("--type", "external_weights"),
        ):
            assert call(*by_run, *condition, "-y").stdout == "No checkpoints match.\n"
        assert count() == 2
        result = call(*by_run, "--type", "sampler_weights", "--after", "2020-01-01", stdin="y\n")
        assert result.stdout == "Deleted 1 of 1 checkpoint.\n"
        assert read_json("checkpoint delete", service.training_path, "-y", "--base-url", url)["deleted_count"] == 1
        assert count() == 0
        failed = call("checkpoint", "delete", service.training_path, "-y", "--json", "--base-url", url)
        assert failed.exit_code == 1
        assert json.loads(failed.stdout)["failed"][0]["tinker_path"] == service.training_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["checkpoint", "delete"],
        ["checkpoint", "delete", "tinker://r/weights/a", "--run-id", "r"],
        ["checkpoint", "delete", "tinker://r/weights/a", "--type", "weights"],
        ["checkpoint", "delete", "--run-id", "r", "--before", "yesterday"],
        ["checkpoint", "set-ttl", "tinker://r/weights/a"],
        ["checkpoint", "set-ttl", "tinker://r/weights/a", "--ttl", "1", "--remove"],
        ["run", "list", "--columns", "id,color"],
        ["run", "info"],
        ["sample", "hi", "-m", "m", "--max-tokens", "-1"],
        ["chat", "-m", "m", "--top-p", "2"],
        ["checkpoint", "download", "tinker://r/weights/a", "--format", "gguf"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_before_a_request(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--base-url", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "info", "none"], "unknown training run"),
        (["run", "info", KEY], "HTTP 404"),
        (["checkpoint", "info", "nonsense"], "must name a run and a checkpoint"),
        (["checkpoint", "info", f"tinker://{KEY}/weights/x"], "HTTP 404"),
        (["checkpoint", "publish", "tinker://none/weights/x"], "unknown training run"),
        (["model", "list", "no-such-model"], "omit SUBSTRING"),
        (["auth", "whoami"], "only a token identifies its user"),
        (["billing", "usage", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], "get_billing_usage"),
        (["session", "export-trace", "s"], "export_session_trace"),
        (["run", "list", "--limit", "-1"], "--limit must be at least 0, got -1"),
    ],
    ids=str,
)
def test_failure_is_one_line_that_names_the_command(
    arguments: list[str], text: str, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and no key in the error."""
    assert run([*arguments, "--base-url", service.url, "--json"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tinkerwire {arguments[0]} {arguments[1]}: ")
    assert text in error
    assert KEY not in error
    assert error.count("\n") == 1


def test_table_that_is_wider_than_the_terminal_becomes_blocks() -> None:
    """No value is cut, and no line but that of a long value is wider than the terminal."""
    table = Table(("Name", "Path"), [("a", "x" * 50), ("b", "y" * 50)])
    assert table.render(60).splitlines()[0] == "NAME  PATH"
    assert table.render(40).splitlines() == [
        "Name: a",
        f"Path: {'x' * 50}",
        "",
        "Name: b",
        f"Path: {'y' * 50}",
    ]
    assert table.render(None) == table.render(60)


def test_control_characters_of_the_server_do_not_reach_the_terminal(server: ScriptedServer) -> None:
    entry = {"training_run_id": "a\x1b[2J", "base_model": "m\nx", "is_lora": False}
    server.rules["training_runs"] = lambda _: ScriptedResponse({"training_runs": [entry], "cursor": None})
    for arguments in (["run", "list"], ["run", "list", "--json"]):
        output = call(*arguments, "--base-url", server.url).stdout
        assert "\x1b" not in output
        assert "m\nx" not in output


def test_closed_pipe_is_quiet(service: Service) -> None:
    """A reader such as head may end before the writer."""
    command = [sys.executable, "-m", "tinkerwire", "--base-url", service.url, "run", "list", "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        process = subprocess.run(
            command, stdout=pipe, stderr=subprocess.PIPE, env={**os.environ, "TINKER_API_KEY": KEY}, check=False
        )
    assert (process.returncode, process.stderr) == (1, b"")


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_stream_is_no_traceback(closing: str, service: Service) -> None:
    """A shell can close a stream, which Python then does not have."""
    program = f'"{sys.executable}" -m tinkerwire --base-url {service.url}'
    for arguments in ("run list", f"checkpoint delete --dry-run {service.training_path}"):
        process = subprocess.run(
            f"{program} {arguments} {closing}", shell=True, capture_output=True, text=True, check=False
        )
        assert (process.returncode, process.stderr.count("Traceback")) == (0, 0), process.stderr
    process = subprocess.run(
        f"{program} checkpoint delete {service.training_path} <&- {closing}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, "Traceback" in process.stderr) == (1, False)
