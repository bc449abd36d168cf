"""Archives of checkpoints: their URLs, and their download."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.embedded import embedded_http_server
from support.raw_server import raw_server, send_parts
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._rest import archives
from tinkerwire._transport.download import download
from tinkerwire_base.call import ResponseLimits

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
ROUTE = "training_runs/m1/checkpoints/weights/a"


def store_archive(
    server: ScriptedServer, answer: Callable[[RecordedRequest], ScriptedResponse], query: str = ""
) -> None:
    """Redirect requests for the archive to an address of the server, which gives this answer."""
    location = f"{server.url}/api/v1/stored{query}"
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(b"", status=302, headers={"location": location})
    server.rules["stored"] = answer


def test_archive_url_is_read_from_a_redirect(server: ScriptedServer, rest: tw.RestClient) -> None:
    """The URL is the Location of a 302, which the client does not fetch; Expires gives the expiry time."""
    headers = {"location": "https://store.example/a.tar?sig=1", "expires": "Wed, 21 Oct 2026 07:28:00 GMT"}
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(b"", status=302, headers=headers)
    archive = rest.get_checkpoint_archive_url("m1", "weights/a").result(TEST_TIMEOUT_S)
    assert archive.url == "https://store.example/a.tar?sig=1"
    assert archive.expires == datetime(2026, 10, 21, 7, 28, tzinfo=timezone.utc)
    assert len(server.requests) == 1


@pytest.mark.parametrize("headers", [{}, {"expires": "soon"}, {"expires": "0"}], ids=str)
def test_archive_url_without_expiry_lasts_15_minutes(
    server: ScriptedServer, rest: tw.RestClient, headers: dict[str, str]
) -> None:
    """Without a valid date in Expires, the URL expires after 15 minutes."""
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(
        b"", status=302, headers={"location": "https://x", **headers}
    )
    before = datetime.now(timezone.utc)
    archive = rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    assert before + timedelta(minutes=15) <= archive.expires <= datetime.now(timezone.utc) + timedelta(minutes=15)


def test_archive_url_is_read_from_a_body(server: ScriptedServer, rest: tw.RestClient) -> None:
    """The client also reads URL and expiry time from the body of a 200."""
    body = {"url": "https://store.example/a.tar", "expires": "2026-10-21T07:28:00Z"}
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(body)
    archive = rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    assert (archive.url, archive.expires.hour) == ("https://store.example/a.tar", 7)


def test_missing_archive_is_an_error(server: ScriptedServer, rest: tw.RestClient) -> None:
    """A redirect without a Location and a 404 raise errors; the client retries after a 5xx."""
    responses = [
        ScriptedResponse(b"", status=302),
        ScriptedResponse({"detail": "no archive"}, status=404),
        ScriptedResponse(status=500),
        ScriptedResponse(status=302, headers={"location": "https://x"}),
    ]
    server.rules[f"{ROUTE}/archive"] = in_order(*responses)
    with pytest.raises(tw.APIResponseValidationError, match="Location"):
        rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    with pytest.raises(tw.NotFoundError, match="no archive"):
        rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    assert rest.get_checkpoint_archive_url_from_tinker_path(PATH).result(TEST_TIMEOUT_S).url == "https://x"


def test_archive_is_downloaded_without_the_key(server: ScriptedServer, rest: tw.RestClient) -> None:
    """The client downloads the bytes of the archive from its URL, and does not send the API key there."""
    content = bytes(range(256)) * 5000
    store_archive(server, lambda _: ScriptedResponse(content), query="?sig=secret")
    assert rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S) == content
    assert rest.download_checkpoint_archive("m1", "weights/a").result(TEST_TIMEOUT_S) == content
    stored = server.named("stored")
    assert [request.query for request in stored] == [{"sig": "secret"}] * 2
    assert not [
        name for request in stored for name in request.headers if name.lower() in ("x-api-key", "authorization")
    ]


def test_download_follows_redirects(server: ScriptedServer, rest: tw.RestClient) -> None:
    """A relative redirect is followed, and the archive arrives as it is stored, even if its encoding is compressed."""
    content = gzip.compress(b"a tar")
    store_archive(
        server, lambda _: ScriptedResponse(b"", status=307, headers={"location": "moved?sig=c d"}), query="?sig=a%2Fb"
    )
    server.rules["moved"] = lambda _: ScriptedResponse(content, headers={"content-encoding": "gzip"})
    assert rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S) == content
    assert [request.query for request in server.named("stored")] == [{"sig": "a/b"}]
    assert [request.query for request in server.named("moved")] == [{"sig": "c d"}]


@pytest.mark.parametrize(
    ("end_of_url", "target"),
    [("", b"/"), ("?sig=a%2Fb", b"/?sig=a%2Fb"), ("//a//b?sig=c d#e", b"//a//b?sig=c%20d"), ("/a;b?c?d", b"/a;b?c?d")],
)
def test_download_sends_path_and_query_of_the_url(end_of_url: str, target: bytes) -> None:
    """Slashes stay as they are, and a URL without a path has the path ``/``."""
    with raw_server(send_parts(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")) as server:
        assert asyncio.run(download(server.url + end_of_url, ResponseLimits(), TEST_TIMEOUT_S)).content == b"ok"
    assert server.requests[0][0].split()[1] == target


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("stored", "more than 10 times"),
        ("file:///etc/passwd", "redirected to file"),
        ("ftp://x/y", "to ftp"),
        ("http://x:99999", "to http; expected a valid"),
        ("http://[x", "failed: ValueError"),
    ],
)
def test_invalid_redirect_of_a_download_is_rejected(
    server: ScriptedServer, rest: tw.RestClient, location: str, message: str
) -> None:
    """A loop, and a redirect to another scheme or to an invalid URL, end in an error."""
    store_archive(server, lambda _: ScriptedResponse(b"", status=302, headers={"location": location}))
    with pytest.raises(tw.TinkerError, match=message):
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize(("limit", "status"), [("MAX_DOWNLOAD_BYTES", 200), ("MAX_ERROR_BYTES", 403)])
def test_oversized_archive_is_not_downloaded(
    server: ScriptedServer, rest: tw.RestClient, monkeypatch: pytest.MonkeyPatch, limit: str, status: int
) -> None:
    """The error names the way to download it to a file; the body of an error has a limit, too."""
    monkeypatch.setattr(archives, limit, 1000)
    store_archive(server, lambda _: ScriptedResponse(bytes(1001), status=status))
    with pytest.raises(tw.TinkerError, match=r"more than 1000 bytes.*get_checkpoint_archive_url"):
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S)


def test_slow_download_has_no_limit_of_its_whole_time(
    server: ScriptedServer, rest: tw.RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is for silence: a download that takes longer than it succeeds while data arrive."""
    monkeypatch.setattr(archives, "DOWNLOAD_SILENCE_S", 1.0)
    store_archive(server, lambda _: ScriptedResponse(bytes(30), trickle_s=0.05))
    assert rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S) == bytes(30)
    gate = Gate()
    server.rules["stored"] = lambda _: ScriptedResponse(bytes(30), gate=gate)
    try:
        with pytest.raises(tw.APITimeoutError, match="no data within 1 s"):
            rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    finally:
        gate.release()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (ScriptedResponse({"detail": "expired"}, status=403), tw.PermissionDeniedError),
        (ScriptedResponse(status=500), tw.InternalServerError),
        (ScriptedResponse(drop=True), tw.APIConnectionError),
    ],
    ids=["403", "500", "dropped"],
)
def test_failed_download_does_not_show_the_url(
    server: ScriptedServer, rest: tw.RestClient, response: ScriptedResponse, error: type[Exception]
) -> None:
    """A failed download raises an error of this client that does not show the URL."""
    store_archive(server, lambda _: response, query="?sig=secret")
    with pytest.raises(error, match="the download of the archive") as caught:
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("file:///etc/passwd", "file"),
        ("/stored", "a relative URL"),
        ("http://[", "an invalid URL of http"),
        ("https://x:y/", "an invalid URL of https"),
    ],
)
def test_archive_without_an_http_url_is_not_downloaded(
    server: ScriptedServer, rest: tw.RestClient, location: str, kind: str
) -> None:
    """A server cannot make the client read a file of the user's machine; an invalid URL is an error of the client."""
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(b"", status=302, headers={"location": location})
    with pytest.raises(tw.TinkerError, match=f"must be http or https, got {kind}$"):
        rest.download_checkpoint_archive_from_tinker_path(PATH).result(TEST_TIMEOUT_S)


def test_archive_of_the_embedded_server_is_downloaded() -> None:
    """The client downloads the file of a checkpoint in this process and over HTTP."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        content = client.create_rest_client().download_checkpoint_archive_from_tinker_path(path).result(TEST_TIMEOUT_S)
        assert content.startswith(b"PK")
    with embedded_http_server() as url, open_client(url) as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        content = client.create_rest_client().download_checkpoint_archive_from_tinker_path(path).result(TEST_TIMEOUT_S)
        assert tarfile.open(fileobj=io.BytesIO(content)).getnames() == ["a.npz", "checkpoint_complete"]  # noqa: SIM115


def test_archive_endpoint_of_a_newer_server_is_missing() -> None:
    """If discovery leaves open whether the endpoint exists, the response of the server raises DialectError."""
    with embedded_http_server("--wire", "0.38.0") as url, open_client(url) as service:
        assert service.dialect.may_have_operation("get_checkpoint_archive_url")
        archive = service.create_rest_client().get_checkpoint_archive_url("m1", "weights/a")
        with pytest.raises(tw.DialectError, match=r"get_checkpoint_archive_url.*405.*from 0\.1\.0 to before 0\.36\.0"):
            archive.result(TEST_TIMEOUT_S)
