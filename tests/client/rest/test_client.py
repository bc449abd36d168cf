"""RestClient: what each method asks for, what comes back, and its twins."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.embedded import embedded_http_server
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire import types

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
SAMPLER_PATH = "tinker://m1/sampler_weights/b"
CURSOR = {"offset": 0, "limit": 20, "total_count": 1}
RUN = {
    "training_run_id": "m1",
    "base_model": "base",
    "model_owner": "me",
    "is_lora": True,
    "lora_rank": 8,
    "last_request_time": "2026-01-01T00:00:00Z",
}
CHECKPOINT = {
    "checkpoint_id": "weights/a",
    "checkpoint_type": "training",
    "time": "2026-01-01T00:00:00+00:00",
    "tinker_path": PATH,
}
AT = "training_runs/m1/checkpoints/weights/a"
CHECKPOINTS = {"checkpoints": [CHECKPOINT], "cursor": CURSOR}
Ask = Callable[[tw.RestClient], Any]
METHODS: dict[str, tuple[Ask, str, str, dict[str, str], Any, Any]] = {
    "capabilities": (
        lambda r: r.get_server_capabilities(),
        "GET",
        "get_server_capabilities",
        {},
        None,
        {"supported_models": [{"model_name": "b"}]},
    ),
    "run": (lambda r: r.get_training_run("m1"), "GET", "training_runs/m1", {}, None, RUN),
    "run of others": (
        lambda r: r.get_training_run("m1", "accessible"),
        "GET",
        "training_runs/m1",
        {"access_scope": "accessible"},
        None,
        RUN,
    ),
    "run by path": (
        lambda r: r.get_training_run_by_tinker_path(SAMPLER_PATH),
        "GET",
        "training_runs/m1",
        {},
        None,
        RUN,
    ),
    "weights info": (
        lambda r: r.get_weights_info_by_tinker_path(PATH),
        "POST",
        "weights_info",
        {},
        {"tinker_path": PATH},
        {"base_model": "b", "is_lora": True, "lora_rank": 4},
    ),
    "runs": (
        lambda r: r.list_training_runs(),
        "GET",
        "training_runs",
        {"limit": "20", "offset": "0"},
        None,
        {"training_runs": [RUN], "cursor": CURSOR},
    ),
    "a page of runs": (
        lambda r: r.list_training_runs(5, 10, "accessible"),
        "GET",
        "training_runs",
        {"limit": "5", "offset": "10", "access_scope": "accessible"},
        None,
        {"training_runs": [], "cursor": CURSOR},
    ),
    "checkpoints": (
        lambda r: r.list_checkpoints("m1"),
        "GET",
        "training_runs/m1/checkpoints",
        {},
        None,
        {"checkpoints": [CHECKPOINT]},
    ),
    "all checkpoints": (
        lambda r: r.list_user_checkpoints(7, 3),
        "GET",
        "checkpoints",
        {"limit": "7", "offset": "3"},
        None,
        CHECKPOINTS,
    ),
    "delete": (lambda r: r.delete_checkpoint("m1", "weights/a"), "DELETE", AT, {}, None, {}),
    "delete by path": (lambda r: r.delete_checkpoint_from_tinker_path(PATH), "DELETE", AT, {}, None, {}),
    "publish": (lambda r: r.publish_checkpoint_from_tinker_path(PATH), "POST", f"{AT}/publish", {}, None, {}),
    "unpublish": (lambda r: r.unpublish_checkpoint_from_tinker_path(PATH), "DELETE", f"{AT}/publish", {}, None, {}),
    "ttl": (
        lambda r: r.set_checkpoint_ttl_from_tinker_path(PATH, 60),
        "PUT",
        f"{AT}/ttl",
        {},
        {"ttl_seconds": 60},
        {},
    ),
    "no ttl": (
        lambda r: r.set_checkpoint_ttl_from_tinker_path(PATH, None),
        "PUT",
        f"{AT}/ttl",
        {},
        {"ttl_seconds": None},
        {},
    ),
    "session": (
        lambda r: r.get_session("s1"),
        "GET",
        "sessions/s1",
        {},
        None,
        {"training_run_ids": ["m1"], "sampler_ids": []},
    ),
    "sessions": (
        lambda r: r.list_sessions(2, 4),
        "GET",
        "sessions",
        {"limit": "2", "offset": "4"},
        None,
        {"sessions": ["s1"]},
    ),
    "sampler": (
        lambda r: r.get_sampler("s1:sample:0"),
        "GET",
        "samplers/s1:sample:0",
        {},
        None,
        {"sampler_id": "s1:sample:0", "base_model": "b"},
    ),
}


@pytest.fixture
def rest(client: tw.ServiceClient) -> tw.RestClient:
    return client.create_rest_client()


@pytest.mark.parametrize(("ask", "method", "path", "query", "body", "answer"), METHODS.values(), ids=METHODS)
def test_what_is_asked_for(
    server: ScriptedServer,
    rest: tw.RestClient,
    ask: Ask,
    method: str,
    path: str,
    query: dict[str, str],
    body: Any,
    answer: Any,
) -> None:
    """Method, path, query and body of each call are those of the wire; its answer comes as the model, or as None."""
    server.rules[path] = lambda _: ScriptedResponse(answer)
    found = ask(rest).result(PATIENCE_S)
    (asked,) = server.asked
    assert (asked.method, asked.name, asked.query, asked.body) == (method, path, query, body)
    assert (found is None) == (answer == {})


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedResponse(b"", status=204),
        ScriptedResponse(b"null"),
        ScriptedResponse({"any": "thing"}),
        ScriptedResponse(b""),
    ],
    ids=str,
)
def test_calls_without_a_result_take_any_success(
    server: ScriptedServer, rest: tw.RestClient, answer: ScriptedResponse
) -> None:
    """Delete, publish and time to live do not care what a successful answer holds."""
    server.rules[AT] = server.rules[f"{AT}/publish"] = server.rules[f"{AT}/ttl"] = lambda _: answer
    for future in (
        rest.delete_checkpoint_from_tinker_path(PATH),
        rest.publish_checkpoint_from_tinker_path(PATH),
        rest.set_checkpoint_ttl_from_tinker_path(PATH, 1),
    ):
        assert future.result(PATIENCE_S) is None


@pytest.mark.parametrize("status", [404, 405])
def test_what_a_server_lacks(server: ScriptedServer, rest: tw.RestClient, status: int) -> None:
    """An endpoint that a server does not have is an error with its address, after one request."""
    server.rules["checkpoints"] = lambda _: ScriptedResponse({"detail": "Not Found"}, status=status)
    with pytest.raises(tw.APIStatusError, match=f"/api/v1/checkpoints: HTTP {status}: .*Not Found"):
        rest.list_user_checkpoints().result(PATIENCE_S)
    assert len(server.asked) == 1


NEWER: dict[str, tuple[Ask, str, str, dict[str, str], Any, Any]] = {
    "runs of a project": (
        lambda r: r.list_training_runs(project_id="p"),
        "GET",
        "training_runs",
        {"limit": "20", "offset": "0", "project_id": "p"},
        None,
        {"training_runs": [], "cursor": CURSOR},
    ),
    "external weights": (
        lambda r: r.get_external_weights_urls("tinker://m1/external_weights/a"),
        "GET",
        "training_runs/m1/checkpoints/external_weights/a/external_weights_urls",
        {},
        None,
        {"urls": {"a.age": "https://x"}, "expires": "2026-01-01T00:00:00Z"},
    ),
    "project of a session": (
        lambda r: r.assign_session_project("s1", "p"),
        "PUT",
        "sessions/s1/project",
        {},
        {"project_id": "p"},
        {},
    ),
    "search": (
        lambda r: r.search_sessions(types.SessionSearchRequest(display_name="d", limit=7)),
        "POST",
        "sessions/search",
        {},
        {"user_metadata": {}, "owner": {"type": "own"}, "limit": 7, "display_name": "d"},
        {"sessions": []},
    ),
}


@pytest.mark.parametrize(("ask", "method", "path", "query", "body", "answer"), NEWER.values(), ids=NEWER)
def test_what_the_newest_wire_is_asked_for(
    server: ScriptedServer, ask: Ask, method: str, path: str, query: dict[str, str], body: Any, answer: Any
) -> None:
    """The same for what wire 0.16.1 does not have; there it is refused with the version that has it."""
    server.rules[path] = lambda _: ScriptedResponse(answer)
    with open_client(server.url, wire_version="0.38.0") as client:
        found = ask(client.create_rest_client()).result(PATIENCE_S)
    (asked,) = server.asked
    sent = {key: value for key, value in asked.body.items() if value is not None} if asked.body else asked.body
    assert (asked.method, asked.name, asked.query, sent) == (method, path, query, body)
    assert (found is None) == (answer == {})
    with open_client(server.url) as old, pytest.raises(tw.DialectError, match=r"0\.16\.1"):
        ask(old.create_rest_client()).result(PATIENCE_S)
    assert len(server.asked) == 1


def test_other_weights_have_no_external_addresses(server: ScriptedServer, rest: tw.RestClient) -> None:
    """Only paths of save_weights_external are asked about."""
    with pytest.raises(ValueError, match="holds training weights"):
        rest.get_external_weights_urls(PATH)
    with pytest.raises(TypeError, match="expected a SessionSearchRequest, got dict"):
        rest.search_sessions({"limit": 3})  # type: ignore[arg-type]
    assert not server.asked


def test_an_archive_by_redirect(server: ScriptedServer, rest: tw.RestClient) -> None:
    """302 is the success: the address is its Location, which is not fetched; Expires says until when."""
    headers = {"location": "https://store.example/a.tar?sig=1", "expires": "Wed, 21 Oct 2026 07:28:00 GMT"}
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(b"", status=302, headers=headers)
    found = rest.get_checkpoint_archive_url("m1", "weights/a").result(PATIENCE_S)
    assert found.url == "https://store.example/a.tar?sig=1"
    assert found.expires == datetime(2026, 10, 21, 7, 28, tzinfo=timezone.utc)
    assert len(server.asked) == 1


@pytest.mark.parametrize("expires", [{}, {"expires": "soon"}, {"expires": "0"}], ids=str)
def test_an_archive_that_does_not_say_until_when(
    server: ScriptedServer, rest: tw.RestClient, expires: dict[str, str]
) -> None:
    """Without a date that can be read, an address lasts 15 minutes."""
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(
        b"", status=302, headers={"location": "https://x", **expires}
    )
    before = datetime.now(timezone.utc)
    found = rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(PATIENCE_S)
    assert before + timedelta(minutes=15) <= found.expires <= datetime.now(timezone.utc) + timedelta(minutes=15)


def test_an_archive_by_answer(server: ScriptedServer, rest: tw.RestClient) -> None:
    """A 200 with address and date is a success as well."""
    body = {"url": "https://store.example/a.tar", "expires": "2026-10-21T07:28:00Z"}
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(body)
    found = rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(PATIENCE_S)
    assert (found.url, found.expires.hour) == ("https://store.example/a.tar", 7)


def test_an_archive_that_is_not_there(server: ScriptedServer, rest: tw.RestClient) -> None:
    """A redirect to nowhere and an error are errors; a 5xx is tried again."""
    answers = [
        ScriptedResponse(b"", status=302),
        ScriptedResponse({"detail": "none"}, status=404),
        ScriptedResponse(status=500),
        ScriptedResponse(status=302, headers={"location": "https://x"}),
    ]
    server.rules[f"{AT}/archive"] = in_order(*answers)
    with pytest.raises(tw.APIResponseValidationError, match="Location"):
        rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(PATIENCE_S)
    with pytest.raises(tw.NotFoundError, match="none"):
        rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(PATIENCE_S)
    assert rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(PATIENCE_S).url == "https://x"


def test_an_archive_is_downloaded_without_the_key(server: ScriptedServer, rest: tw.RestClient) -> None:
    """The content comes as bytes, from wherever the address leads; the API key stays with the server."""
    content = bytes(range(256)) * 5000
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(
        b"", status=302, headers={"location": f"{server.url}/api/v1/stored?sig=secret"}
    )
    server.rules["stored"] = lambda _: ScriptedResponse(content)
    assert rest.download_checkpoint_archive_from_tinker_path(PATH).result(PATIENCE_S) == content
    assert rest.download_checkpoint_archive("m1", "weights/a").result(PATIENCE_S) == content
    stored = server.named("stored")
    assert [asked.query for asked in stored] == [{"sig": "secret"}] * 2
    assert not [name for asked in stored for name in asked.headers if name.lower() in ("x-api-key", "authorization")]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ScriptedResponse({"detail": "expired"}, status=403), tw.PermissionDeniedError),
        (ScriptedResponse(status=500), tw.InternalServerError),
        (ScriptedResponse(drop=True), tw.APIConnectionError),
    ],
    ids=["refused", "broken", "dropped"],
)
def test_a_download_that_fails(
    server: ScriptedServer, rest: tw.RestClient, answer: ScriptedResponse, error: type[Exception]
) -> None:
    """It ends with an error of this client, which does not show the address."""
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(
        b"", status=302, headers={"location": f"{server.url}/api/v1/stored?sig=secret"}
    )
    server.rules["stored"] = lambda _: answer
    with pytest.raises(error, match="the download of the archive") as caught:
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(PATIENCE_S)
    assert "secret" not in str(caught.value)


def test_an_archive_of_another_scheme_is_not_downloaded(server: ScriptedServer, rest: tw.RestClient) -> None:
    """A server cannot make the client read a file of its own machine."""
    server.rules[f"{AT}/archive"] = lambda _: ScriptedResponse(
        b"", status=302, headers={"location": "file:///etc/passwd"}
    )
    with pytest.raises(tw.TinkerError, match="a file URL, which cannot be downloaded"):
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(PATIENCE_S)


def test_an_archive_of_the_embedded_server_is_downloaded() -> None:
    """It is the file of the checkpoint, in this process and over HTTP."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        path = training.save_state("a").result(PATIENCE_S).path
        content = client.create_rest_client().download_checkpoint_archive_from_tinker_path(path).result(PATIENCE_S)
        assert content.startswith(b"PK")
    with embedded_http_server() as url, open_client(url) as client:
        path = (
            client.create_lora_training_client("tinkerwire/byte-nano", rank=2).save_state("a").result(PATIENCE_S).path
        )
        content = client.create_rest_client().download_checkpoint_archive_from_tinker_path(path).result(PATIENCE_S)
        assert content.startswith(b"PK")


def test_an_archive_of_a_server_that_has_none_any_more() -> None:
    """What is found out of a server may leave that open; its answer then says it, as the version would have."""
    with embedded_http_server("--wire", "0.38.0") as url, open_client(url) as service:
        assert service.dialect.may_have_operation("get_checkpoint_archive_url")
        asked = service.create_rest_client().get_checkpoint_archive_url("m1", "weights/a")
        with pytest.raises(tw.DialectError, match=r"get_checkpoint_archive_url.*405.*from 0\.1\.0 to before 0\.36\.0"):
            asked.result(PATIENCE_S)


# weights_info leaves the reading of paths to the server.
BY_PATH = {name for name in dir(tw.RestClient) if name.endswith("_tinker_path")} - {"get_weights_info_by_tinker_path"}


@pytest.mark.parametrize("name", sorted(BY_PATH))
@pytest.mark.parametrize("path", ["", " ", "tinker://m1", "m1", "tinker://", "/"])
def test_what_is_no_path(server: ScriptedServer, rest: tw.RestClient, name: str, path: str) -> None:
    """Methods by ids refuse a path that does not have them, before anything is sent."""
    with pytest.raises(ValueError, match=r"^tinker_path: "):
        getattr(rest, name)(path, *([1] if "ttl" in name else []))
    assert not server.asked


@pytest.mark.parametrize(
    ("run", "checkpoint"), [("", "weights/a"), ("..", "weights/a"), ("m", "weights/../.."), ("m", "")]
)
def test_ids_that_would_be_another_address(
    server: ScriptedServer, rest: tw.RestClient, run: str, checkpoint: str
) -> None:
    """An id that would change the path of the request is refused before sending."""
    with pytest.raises(ValueError, match="cannot be part of a path"):
        rest.delete_checkpoint(run, checkpoint).result(PATIENCE_S)
    assert not server.asked


ASK_NOTHING = ("get_telemetry", "close")
"""Methods that need no answer of the server, and so have no twin."""
PLAIN = [
    name for name in dir(tw.RestClient) if not name.startswith("_") and not name.endswith(("_async", *ASK_NOTHING))
]


@pytest.mark.parametrize("name", PLAIN)
def test_every_method_has_a_twin(name: str) -> None:
    """Each method has an _async twin of the same parameters, whose result is what the future would give."""
    plain, twin = getattr(tw.RestClient, name), getattr(tw.RestClient, f"{name}_async")
    assert inspect.iscoroutinefunction(twin)
    ours, theirs = inspect.signature(plain), inspect.signature(twin)
    assert ours.parameters == theirs.parameters
    assert ours.return_annotation == f"APIFuture[{theirs.return_annotation}]"


def test_the_twins_pass_their_arguments_on(monkeypatch: pytest.MonkeyPatch, rest: tw.RestClient) -> None:
    """A twin gives every argument to its method, in its place."""

    async def run(name: str) -> None:
        parameters = inspect.signature(getattr(rest, name)).parameters.values()
        named = {each.name: each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
        given = tuple(each.name for each in parameters if each.name not in named)
        got: list[tuple[Any, ...]] = []

        async def answer() -> str:
            return name

        def method(*arguments: Any, **more: Any) -> Any:
            got.append((*arguments, more))
            return answer()

        monkeypatch.setattr(rest, name, method)
        found = await getattr(rest, f"{name}_async")(*given, **named)
        assert got == [(*given, named)]
        assert found in (name, None)

    for name in PLAIN:
        asyncio.run(run(name))


def test_wires_without_a_call(server: ScriptedServer) -> None:
    """A call that the wire version in use does not have is refused with the version that brought it."""
    with tw.ServiceClient(base_url=server.url, wire_version="0.4.1") as client:
        with pytest.raises(tw.DialectError, match=r"get_sampler.*0\.4\.1"):
            client.create_rest_client().get_sampler("s").result(PATIENCE_S)
        client.create_rest_client().list_training_runs().result(PATIENCE_S)
        with pytest.raises(tw.DialectError, match="access_scope"):
            client.create_rest_client().list_training_runs(access_scope="accessible").result(PATIENCE_S)
    assert [asked.name for asked in server.asked] == ["training_runs"]
