"""``tinkerwire auth`` as people and scripts use it: a process, a home folder, a server."""

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
OTHER = "tml-another-key"
MINE = {
    "key_id": 7,
    "name": "mine\x1b[2J",
    "note": "",
    "details": {"org_details": {"name": "o"}, "user_details": {"email": "e@example.org"}},
}


class Home:
    """A home folder, and the command run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / ".tinker" / "credentials.json"
        self.environment: dict[str, str] = {}

    def run(self, *words: str, typed: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error; none of them ever shows a key."""
        ran = subprocess.run(
            [sys.executable, "-m", "tinkerwire", "auth", *words],
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self.folder), **self.environment},
            timeout=100,
        )
        for shown in (ran.stdout, ran.stderr):
            assert KEY not in shown
            assert OTHER not in shown
            assert "\x1b" not in shown
        return ran.returncode, ran.stdout, ran.stderr

    def content(self) -> Any:
        return json.loads(self.file.read_text())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_login_use_list_and_logout(home: Home, server: ScriptedServer) -> None:
    """Login sends one request with the key itself; list shows its fingerprint and logout removes it."""
    home.environment["TINKER_BASE_URL"] = server.url
    server.rules["auth/apikey/me"] = lambda asked: ScriptedResponse(
        {**MINE, "key_id": 7 if asked.headers["x-api-key"] == KEY else 8}
    )
    code, out, err = home.run("login", "--stdin", typed=f" {KEY}\n")
    assert (code, err) == (0, "")
    assert "Signed in as e@example.org (o)" in out
    assert [(a.method, a.name, a.headers["x-api-key"]) for a in server.asked] == [("GET", "auth/apikey/me", KEY)]
    code, out, _ = home.run("login", "--stdin", typed=OTHER)
    assert code == 0
    assert "`tinkerwire auth use 7` restores it" in out
    code, out, _ = home.run("use", "7")
    assert code == 0
    assert home.content()["default"] == "7"
    code, out, _ = home.run("list")
    rows = [line.split() for line in out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["*", "7"], ["8", "mine?[2J"]]
    assert len({row[-1] for row in rows[1:]}) == 2
    code, out, _ = home.run("logout")
    assert code == 0
    assert "No default key is set" in out
    assert list(home.content()["keys"]) == ["8"]
    code, _, err = home.run("logout")
    assert code == 1
    assert "has no default key; name one: 8" in err
    assert home.run("logout", "8")[0] == 0
    assert "has no keys" in home.run("list")[1]


def test_embedded_server_accepts_only_its_key(home: Home) -> None:
    """From wire 0.26.2, login stores the right key and rejects another one."""
    with embedded_http_server("--wire", "0.38.0", "--api-key", KEY) as url:
        code, _, err = home.run("login", "--stdin", "--base-url", url, typed=OTHER)
        assert code == 1
        assert "was tested and not stored" in err
        assert "401" in err
        assert not home.file.exists()
        assert home.run("login", "--stdin", "--base-url", url, typed=KEY)[0] == 0
    assert [each["key"] for each in home.content()["keys"].values()] == [KEY]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ScriptedResponse({"detail": f"who is {KEY}?"}, status=403), "HTTP 403"),
        (ScriptedResponse({"key": KEY}), "does not fit the contract"),
        (ScriptedResponse(KEY.encode()), "does not fit the contract"),
    ],
)
def test_error_hides_a_key_of_the_response(
    home: Home, server: ScriptedServer, answer: ScriptedResponse, text: str
) -> None:
    """The error hides the key, and login stores nothing."""
    server.rules["auth/apikey/me"] = lambda _: answer
    code, _, err = home.run("login", "--stdin", "--base-url", server.url, typed=KEY)
    assert code == 1
    assert text in err
    assert not home.file.exists()


@pytest.mark.parametrize("words", [[KEY], ["--key", KEY], [f"--api-key={KEY}"], ["--stdin", KEY, "x"]])
def test_login_rejects_a_key_on_the_command_line(home: Home, words: list[str]) -> None:
    """The error hides the key, and login sends no request."""
    code, _, err = home.run("login", *words, typed=KEY)
    assert code == 1
    assert "do not pass the key on the command line" in err


@pytest.mark.parametrize(
    "words",
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
def test_usage_error_hides_values(home: Home, words: list[str]) -> None:
    """The exit code is 2, and the error names the command."""
    code, out, err = home.run(*words)
    assert (code, out) == (2, "")
    command = "tinkerwire auth" if words[0] in (KEY, "--api-key") else f"tinkerwire auth {words[0]}"
    assert err.startswith(f"{command}: error: ")
    assert "invalid arguments; their values are hidden" in err


def test_usage_error_names_a_missing_argument(home: Home) -> None:
    """That error contains no value of the user."""
    code, _, err = home.run("use")
    assert code == 2
    assert "the following arguments are required: key" in err


@pytest.mark.skipif(os.name != "posix", reason="the shell closes it")
def test_login_fails_if_standard_input_is_closed(home: Home) -> None:
    """A service may start without standard input."""
    ran = subprocess.run(
        f'"{sys.executable}" -m tinkerwire auth login --stdin <&-',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(home.folder)},
        timeout=100,
    )
    assert ran.returncode == 1
    assert ran.stderr == (
        "tinkerwire auth: standard input is closed; open it, because the command reads the key from it\n"
    )


@pytest.mark.parametrize(
    ("words", "typed", "text"),
    [
        (["login"], KEY, "the prompt needs a terminal; `tinkerwire auth login --stdin` reads"),
        (["login", "--stdin"], "\n", "the API key must not be empty"),
        (["login", "--stdin"], "", "the API key must not be empty"),
        (["login", "--stdin"], f"{KEY} x", "holds blanks"),
        (["login", "--stdin", "--base-url", "local"], KEY, "the embedded server, needs no key"),
        (["login", "--stdin", "--base-url", "http://192.0.2.1"], KEY, "over plain http"),
        (["use", KEY], "", "no key of that id or name; the file has no keys"),
    ],
)
def test_invalid_login_fails_before_a_request(home: Home, words: list[str], typed: str, text: str) -> None:
    """The exit code is 1, and the error names a remedy."""
    code, out, err = home.run(*words, typed=typed)
    assert (code, out) == (1, "")
    assert text in err


def test_login_names_overriding_variables(home: Home, server: ScriptedServer) -> None:
    """Login stores the entered key, and warns that the environment overrides it."""
    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse(MINE)
    home.environment["TINKER_API_KEY"] = OTHER
    code, out, _ = home.run("login", "--stdin", "--base-url", server.url, typed=KEY)
    assert code == 0
    assert "TINKER_API_KEY is set and overrides the default key" in out
    assert home.content()["keys"]["7"]["key"] == KEY


@pytest.mark.parametrize(("status", "code"), [(204, 0), (403, 1)])
def test_logout_deletes_a_generated_key(home: Home, server: ScriptedServer, status: int, code: int) -> None:
    """Logout removes the key from the file even if the server rejects the deletion, and reports the error."""
    home.file.parent.mkdir()
    home.file.write_text(json.dumps({"default": "a", "keys": {"a": {"type": "generated", "key": KEY, "name": "n"}}}))
    home.file.chmod(0o600)
    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse({"detail": "no"}, status=status)
    found, _, err = home.run("logout", "--base-url", server.url)
    assert found == code
    assert ("the server still has the key" in err) == bool(code)
    assert [(asked.method, asked.headers["x-api-key"]) for asked in server.asked] == [("DELETE", KEY)]
    assert home.content()["keys"] == {}


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
    """A real terminal shows any echo."""
    import pty  # noqa: PLC0415

    server.rules["auth/apikey/me"] = lambda _: ScriptedResponse(MINE)
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "tinkerwire", "auth", "login", "--base-url", server.url]
        os.execve(sys.executable, command, {**os.environ, "HOME": str(home.folder)})
    shown = b""
    while b"API key: " not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, f"{KEY}\n".encode())
    try:
        while part := os.read(terminal, 1000):
            shown += part
    except OSError:  # Linux reports a closed terminal so
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"Signed in as" in shown
    assert KEY.encode() not in shown
    assert home.content()["keys"]["7"]["key"] == KEY
