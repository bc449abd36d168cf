"""Tests of ``tinkerwire auth`` as a process with a home folder and a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.clients import KEY
from support.embedded import embedded_http_server
from support.scripted import ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(120)
OTHER_KEY = "tml-another-key"
KEY_DESCRIPTION = {
    "key_id": 7,
    "name": "mine\x1b[2J",
    "note": "",
    "details": {"org_details": {"name": "o"}, "user_details": {"email": "e@example.org"}},
}


class Home:
    """Home folder in which the command runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / ".tinker" / "credentials.json"
        self.environment: dict[str, str] = {}

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Return exit code, standard output and standard error, and check that neither output shows a key."""
        process = subprocess.run(
            [sys.executable, "-m", "tinkerwire", "auth", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self.folder), **self.environment},
            timeout=100,
        )
        for output in (process.stdout, process.stderr):
            assert KEY not in output
            assert OTHER_KEY not in output
            assert "\x1b" not in output
        return process.returncode, process.stdout, process.stderr

    def read_file(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.file.read_text())
        return content


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_login_use_list_and_logout(home: Home, server: ScriptedServer) -> None:
    """Login sends one request with the key itself; list shows its fingerprint and logout removes it."""
    home.environment["TINKER_BASE_URL"] = server.url
    server.rules["auth/apikey/me"] = lambda request: ScriptedResponse(
        {**KEY_DESCRIPTION, "key_id": 7 if request.headers["x-api-key"] == KEY else 8}
    )
    code, output, err = home.run("login", "--stdin", stdin=f" {KEY}\n")
    assert (code, err) == (0, "")
    assert "Signed in as e@example.org (o)" in output
    assert [(request.method, request.name, request.headers["x-api-key"]) for request in server.requests] == [
        ("GET", "auth/apikey/me", KEY)
    ]
    code, output, _ = home.run("login", "--stdin", stdin=OTHER_KEY)
    assert code == 0
    assert "`tinkerwire auth use 7` restores it" in output
    code, output, _ = home.run("use", "7")
    assert code == 0
    assert home.read_file()["default"] == "7"
    code, output, _ = home.run("list")
    rows = [line.split() for line in output.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["*", "7"], ["8", "mine?[2J"]]
    assert len({row[-1] for row in rows[1:]}) == 2
    code, output, _ = home.run("logout")
    assert code == 0
    assert "No default key is set" in output
    assert list(home.read_file()["keys"]) == ["8"]
    code, _, err = home.run("logout")
    assert code == 1
    assert "has no default key; give an id or a name: 8" in err
    assert home.run("logout", "8")[0] == 0
    assert "has no keys" in home.run("list")[1]


@pytest.mark.parametrize("arguments", [["login", "--stdin"], ["logout"], ["use", "7"]])
def test_commands_that_change_the_file_name_the_missing_extra(
    home: Home, server: ScriptedServer, arguments: list[str]
) -> None:
    """Without the package for locks nothing is sent or changed; the list needs no lock."""
    home.environment["TINKER_BASE_URL"] = server.url
    # A module of this name that cannot be imported hides the installed one.
    (home.folder / "filelock.py").write_text("raise ImportError\n")
    home.environment["PYTHONPATH"] = str(home.folder)
    code, output, err = home.run(*arguments, stdin=KEY)
    assert (code, output) == (1, "")
    assert err.endswith("install the extra: pip install 'tinkerwire[cli]'\n")
    assert not server.requests
    assert not home.file.exists()
    assert home.run("list")[0] == 0


def test_embedded_server_accepts_only_its_key(home: Home) -> None:
    """From wire version 0.26.2 on, login stores the right key and rejects another one."""
    with embedded_http_server("--wire", "0.38.0", "--api-key", KEY) as url:
        code, _, err = home.run("login", "--stdin", "--base-url", url, stdin=OTHER_KEY)
        assert code == 1
        assert "was tested and not stored" in err
        assert "401" in err
        assert not home.file.exists()
        assert home.run("login", "--stdin", "--base-url", url, stdin=KEY)[0] == 0
    assert [record["key"] for record in home.read_file()["keys"].values()] == [KEY]


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (ScriptedResponse({"detail": f"who is {KEY}?"}, status=403), "HTTP 403"),
        (ScriptedResponse({"key": KEY}), "does not fit the contract"),
        (ScriptedResponse(KEY.encode()), "does not fit the contract"),
    ],
)
def test_error_hides_a_key_that_the_response_repeats(
    home: Home, server: ScriptedServer, response: ScriptedResponse, text: str
) -> None:
    """The error hides the key, and login stores nothing."""
    server.rules["auth/apikey/me"] = lambda _: response
    code, _, err = home.run("login", "--stdin", "--base-url", server.url, stdin=KEY)
    assert code == 1
    assert text in err
    assert not home.file.exists()


@pytest.mark.parametrize("arguments", [[KEY], ["--key", KEY], [f"--api-key={KEY}"], ["--stdin", KEY, "x"]])
def test_login_rejects_a_key_on_the_command_line(home: Home, arguments: list[str]) -> None:
    """The error hides the key, and login sends no request."""
    code, _, err = home.run("login", *arguments, stdin=KEY)
    assert code == 1
    assert "the API key must not be an argument" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [KEY],
        ["--api-key", KEY],
        ["list", KEY],
        ["login", f"-k{KEY}"],
        ["login", f"--stdin={KEY}"],
        ["logout", "--key", KEY],
        ["use", KEY, KEY],
    ],
)
def test_usage_error_hides_values(home: Home, arguments: list[str]) -> None:
    """The exit code is 2, and the error names the command."""
    code, output, err = home.run(*arguments)
    assert (code, output) == (2, "")
    command = "tinkerwire auth" if arguments[0] in (KEY, "--api-key") else f"tinkerwire auth {arguments[0]}"
    assert err.startswith(f"{command}: error: ")
    assert "invalid arguments; their values are hidden" in err


def test_usage_error_names_a_missing_argument(home: Home) -> None:
    """An error without a value of the user keeps its text."""
    code, _, err = home.run("use")
    assert code == 2
    assert "argument KEY is missing" in err


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell closes standard input")
def test_login_fails_if_standard_input_is_closed(home: Home) -> None:
    """A service may start without standard input."""
    process = subprocess.run(
        f'"{sys.executable}" -m tinkerwire auth login --stdin <&-',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(home.folder)},
        timeout=100,
    )
    assert process.returncode == 1
    assert process.stderr == (
        "tinkerwire auth login: standard input is closed; open it, because the command reads the key from it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "text"),
    [
        (["login"], KEY, "the prompt needs a terminal; `tinkerwire auth login --stdin` reads"),
        (["login", "--stdin"], "\n", "the API key must not be empty"),
        (["login", "--stdin"], "", "the API key must not be empty"),
        (["login", "--stdin"], f"{KEY} x", "must be printable ASCII without blanks"),
        (["login", "--stdin", "--base-url", "local"], KEY, "the embedded server, needs no key"),
        (["login", "--stdin", "--base-url", "http://192.0.2.1"], KEY, "over plain http"),
        (["use", KEY], "", "no key with this id or name; the file has no keys"),
    ],
)
def test_invalid_login_fails_before_a_request(home: Home, arguments: list[str], stdin: str, text: str) -> None:
    """The exit code is 1, and the error names a remedy."""
    code, output, err = home.run(*arguments, stdin=stdin)
    assert (code, output) == (1, "")
    assert text in err


def test_login_names_overriding_variables(home: Home, server: ScriptedServer) -> None:
    """Login stores the entered key, and warns that the environment overrides it."""
    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse(KEY_DESCRIPTION)
    home.environment["TINKER_API_KEY"] = OTHER_KEY
    code, output, _ = home.run("login", "--stdin", "--base-url", server.url, stdin=KEY)
    assert code == 0
    assert "TINKER_API_KEY is set and overrides the default key" in output
    assert home.read_file()["keys"]["7"]["key"] == KEY


@pytest.mark.parametrize(("status", "code"), [(204, 0), (403, 1)])
def test_logout_deletes_a_generated_key(home: Home, server: ScriptedServer, status: int, code: int) -> None:
    """Logout removes the key from the file even if the server rejects the deletion, and reports the error."""
    home.file.parent.mkdir()
    home.file.write_text(json.dumps({"default": "a", "keys": {"a": {"type": "generated", "key": KEY, "name": "n"}}}))
    home.file.chmod(0o600)
    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse({"detail": "no"}, status=status)
    exit_code, _, err = home.run("logout", "--base-url", server.url)
    assert exit_code == code
    assert ("the server still has the key" in err) == bool(code)
    assert [(request.method, request.headers["x-api-key"]) for request in server.requests] == [("DELETE", KEY)]
    assert home.read_file()["keys"] == {}


def has_terminals() -> bool:
    """Return whether this machine provides terminals; a container may not."""
    try:
        for end in os.openpty():
            os.close(end)
    except (AttributeError, OSError):
        return False
    return True


@pytest.mark.skipif(not has_terminals(), reason="this machine provides no terminals")
def test_prompt_does_not_echo_the_key(home: Home, server: ScriptedServer) -> None:
    """A pseudo terminal, which shows any echo, shows the prompt and the result only."""
    import pty  # noqa: PLC0415

    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse(KEY_DESCRIPTION)
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "tinkerwire", "auth", "login", "--base-url", server.url]
        os.execve(sys.executable, command, {**os.environ, "HOME": str(home.folder)})
    output = b""
    while b"API key: " not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, f"{KEY}\n".encode())
    try:
        while part := os.read(terminal, 1000):
            output += part
    except OSError:  # Linux raises it for a closed terminal.
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"Signed in as" in output
    assert KEY.encode() not in output
    assert home.read_file()["keys"]["7"]["key"] == KEY
