"""Tests of sample, chat, doctor, config and schema, and of Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_management import call, read_json
from support.clients import KEY
from support.scripted import ScriptedResponse, ScriptedServer
from tinkerwire._cli.app import run
from tinkerwire._cli.chat import render_messages

pytestmark = pytest.mark.timeout(120)
NANO = "tinkerwire/byte-nano"
SAMPLE = ("--base-url", "local", "--model", NANO, "--max-tokens", "4", "--seed", "1")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TINKERWIRE_LOCAL_FOLDER", str(tmp_path / "local"))
    monkeypatch.delenv("TINKER_API_KEY", raising=False)


def test_prompt_is_an_argument_a_file_or_standard_input(tmp_path: Path) -> None:
    """The same prompt with the same seed gives the same sample."""
    (tmp_path / "prompt").write_text("hello")
    outputs = {
        call("sample", "hello", *SAMPLE).stdout,
        call("sample", "--file", str(tmp_path / "prompt"), *SAMPLE).stdout,
        call("sample", *SAMPLE, stdin="hello").stdout,
        call("sample", "-", *SAMPLE, stdin="hello").stdout,
    }
    assert len(outputs) == 1
    assert outputs != {""}


def test_samples_differ_and_are_repeatable() -> None:
    first, second = (read_json("sample", "hello", "-n", "2", *SAMPLE)["samples"] for _ in range(2))
    assert first == second
    assert first[0] != first[1]
    assert all(sample["tokens"] <= 4 for sample in first)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["sample", "x", "--file", "/dev/null", *SAMPLE], 2, "give either PROMPT or --file"),
        (["sample", *SAMPLE], 1, "the prompt from standard input is empty"),
        (["sample", "x", "--base-url", "local", "--model", "nope"], 1, "unknown base model 'nope'"),
        (["sample", "x", *SAMPLE, "--temperature", "-1"], 2, "temperature"),
        (["sample", "x", "--base-url", "local"], 2, "--model is missing"),
    ],
    ids=str,
)
def test_wrong_sample_is_one_line(
    arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        assert run(arguments) == code
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_chat_answers_each_line_and_keeps_the_conversation() -> None:
    """The second answer depends on the first message, unless the conversation was reset."""
    answers = [
        [json.loads(line)["content"] for line in call("chat", *SAMPLE, "--json", stdin=text).stdout.splitlines()]
        for text in ("a\nb\n", "c\nb\n", "a\n/reset\nb\n", "b\n/exit\nc\n")
    ]
    assert [len(answer) for answer in answers] == [2, 2, 2, 1]
    assert answers[2][1] == answers[3][0]


def test_chat_uses_the_template_of_the_tokenizer() -> None:
    class Tokenizer:
        chat_template = "x"

        def apply_chat_template(self, messages: object, **options: object) -> list[int]:
            assert options == {"add_generation_prompt": True, "tokenize": True}
            return [1, 2, 3]

    assert render_messages(Tokenizer(), [{"role": "user", "content": "a"}]) == ([1, 2, 3], None)


def check_names(*arguments: str) -> dict[str, str]:
    result = call("doctor", "--json", *arguments)
    value = json.loads(result.stdout)
    assert (result.exit_code == 0) == value["is_ok"]
    for check in value["checks"]:
        assert check["status"] == "ok" or check["remedy"] or "; " in check["detail"], check
    return {check["name"]: check["status"] for check in value["checks"]}


def test_doctor_finds_nothing_on_the_embedded_server() -> None:
    assert set(check_names("--base-url", "local").values()) == {"ok"}
    read_json("doctor", "--base-url", "local")


def test_doctor_checks_a_server(server: ScriptedServer) -> None:
    names = check_names("--base-url", server.url)
    assert {"address", "name lookup", "proxy", "connection", "key", "request", "dialect", "clock", "latency"} <= set(
        names
    )


@pytest.mark.parametrize(
    ("url", "failed"),
    [
        ("ftp://x", "address"),
        ("http://127.0.0.1:9", "connection"),
        ("http://name.invalid", "name lookup"),
    ],
)
def test_doctor_names_the_failing_step(url: str, failed: str) -> None:
    """Later steps, which would fail too, are left out."""
    names = check_names("--base-url", url)
    assert names[failed] == "failed"
    assert "request" not in names


def test_doctor_reports_a_rejected_key(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"detail": f"bad {KEY}"}, status=401)
    result = call("doctor", "--base-url", server.url)
    assert result.exit_code == 1
    assert "check TINKER_API_KEY" in result.stdout
    assert KEY not in result.output


@pytest.mark.parametrize(
    ("name", "value", "failed"),
    [
        ("TINKER_WIRE_VERSION", "banana", "settings"),
        ("TINKERWIRE_HEADERS", "no colon", "settings"),
        ("TINKER_API_KEY", "a key with blanks", "key"),
    ],
)
def test_doctor_reports_an_invalid_setting(
    name: str, value: str, failed: str, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps before it are reported too."""
    monkeypatch.setenv(name, value)
    names = check_names("--base-url", server.url)
    assert (names["connection"], names[failed]) == ("ok", "failed")


def test_doctor_proposes_http_for_a_port_without_tls(server: ScriptedServer) -> None:
    result = call("doctor", "--base-url", server.url.replace("http://", "https://"))
    assert result.exit_code == 1
    assert "write http:// if the server has no TLS" in result.stdout


def test_config_shows_sources_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("TINKERWIRE_HEADERS", "x-secret: very-secret")
    monkeypatch.setenv("TINKER_BASE_URL", "http://127.0.0.1:1")
    value = read_json("config")
    assert (value["base_url"], value["base_url_source"]) == ("http://127.0.0.1:1", "TINKER_BASE_URL")
    assert value["key_source"] == "TINKER_API_KEY"
    output = call("config").output
    assert "TINKERWIRE_HEADERS" in output
    assert KEY not in output
    assert "very-secret" not in output


def test_config_lists_the_documented_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is that of the reference, without what users do not set; proxies count in lower case, too."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "environment.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "http://me:hidden@127.0.0.1:1")
    variables = {entry["name"]: entry for entry in read_json("config")["variables"]}
    assert variables.keys() == documented - {"TINKERWIRE_REPLAY_CLAIMS"}
    assert (variables["HTTPS_PROXY"]["is_set"], variables["HTTPS_PROXY"]["value"]) == (True, None)


@pytest.mark.parametrize("command", ["config", "doctor"])
@pytest.mark.parametrize("url", ["https://me:hunter22@name.invalid/x", "https://hunter22@h", "https://h?key=hunter22"])
def test_password_in_an_address_is_not_shown(command: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the option nor the variable shows it, also if the option overrides the variable."""
    assert "hunter22" not in call(command, "--json", "--base-url", url).output
    monkeypatch.setenv("TINKER_BASE_URL", url)
    for arguments in ([], ["--json"], ["--base-url", "local"], ["--base-url", "local", "--json"]):
        assert "hunter22" not in call(command, *arguments).output


def test_schema_runs_the_generator(capfd: pytest.CaptureFixture[str]) -> None:
    """Exit codes are those of the generator, and options reach it."""
    assert run(["schema", "diff", "--help"]) == 0
    assert "--fail-on" in capfd.readouterr().out
    assert run(["schema", "diff", "only-one"]) == 2


def test_schema_without_the_generator_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "libcst.py").write_text("raise ModuleNotFoundError('libcst', name='libcst')\n")
    process = subprocess.run(
        [sys.executable, "-m", "tinkerwire", "schema", "lint"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert process.returncode == 1
    assert process.stderr.endswith("install them: pip install 'tinkerwire[codegen]'\n")
    assert process.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is a signal of POSIX")
def test_ctrl_c_ends_with_130_and_one_line(server: ScriptedServer) -> None:
    """A request under way does not delay the end, and shows no traceback."""
    reached, released = os.pipe(), os.pipe()

    def wait(_: object) -> ScriptedResponse:
        os.write(reached[1], b"x")
        os.read(released[0], 1)
        return ScriptedResponse({"training_runs": [], "cursor": None})

    server.rules["training_runs"] = wait
    process = subprocess.Popen(
        [sys.executable, "-m", "tinkerwire", "run", "list", "--base-url", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        os.read(reached[0], 1)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    finally:
        os.write(released[1], b"x")
        process.kill()
        for end in (*reached, *released):
            os.close(end)
    assert (process.returncode, output) == (130, "")
    assert error.strip() == "tinkerwire: interrupted"
