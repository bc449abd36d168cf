"""Tests of downloads of checkpoints into folders: resumption, verification and formats."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import tinkerwire as tw
from support.checkpoint_archives import ADAPTER, PATH, ROUTE, download, make_tar, make_zip, store_archive
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._rest import file_download

pytestmark = pytest.mark.timeout(120)


def serve_ranges(content: bytes, etag: str = '"e"') -> Callable[[RecordedRequest], ScriptedResponse]:
    """Return the answer of a store with ranges."""

    def answer(request: RecordedRequest) -> ScriptedResponse:
        match = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        if match is None or request.headers.get("if-range") != etag:
            return ScriptedResponse(content, headers={"etag": etag})
        start = int(match[1])
        headers = {"etag": etag, "content-range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        return ScriptedResponse(content[start:], status=206, headers=headers)

    return answer


def leave_part(folder: Path, content: bytes, etag: str) -> None:
    """Leave the files of an interrupted download."""
    staging = folder.with_name(f".{folder.name}.part")
    staging.mkdir()
    (staging / "checkpoint").write_text(PATH)
    (staging / "archive.part").write_bytes(content)
    (staging / "archive.part.json").write_text(json.dumps({"validator": etag, "size": None, "digests": {}}))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_archive_is_extracted_into_a_new_folder(
    mode: str, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    """The progress adds up to the size of the archive, the key is not sent to the store, and nothing else is left."""
    archive = make_tar({**ADAPTER, "./folder/x": b"1"}, mode)
    store_archive(server, lambda _: ScriptedResponse(archive))
    pieces: list[int] = []
    result = download(rest, tmp_path / "out", on_progress=pieces.append)
    assert result.files == (*sorted(ADAPTER), "folder/x")
    assert {name: (result.directory / name).read_bytes() for name in ADAPTER} == ADAPTER
    assert result.size_bytes == sum(map(len, ADAPTER.values())) + 1
    assert sum(pieces) == len(archive)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "x-api-key" not in server.named("stored")[0].headers


def test_zip_is_extracted(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    store_archive(server, lambda _: ScriptedResponse(make_zip(ADAPTER)))
    assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))


@pytest.mark.parametrize("etag", ['"e"', '"other"'])
def test_interrupted_download_continues(etag: str, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    """The next download requests the rest with If-Range; if the content has changed, it starts anew."""
    archive = make_tar(ADAPTER)
    leave_part(tmp_path / "out", archive[:7] if etag == '"e"' else b"another", etag)
    store_archive(server, serve_ranges(archive))
    pieces: list[int] = []
    assert download(rest, tmp_path / "out", on_progress=pieces.append).files == tuple(sorted(ADAPTER))
    (request,) = server.named("stored")
    assert (request.headers["range"], request.headers["if-range"]) == ("bytes=7-", etag)
    assert sum(pieces) == len(archive)


def test_broken_connection_continues_in_the_same_download(
    server: ScriptedServer, rest: tw.RestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response that ends early, and a 503, are followed by requests for the rest."""
    monkeypatch.setattr(file_download, "FIRST_PAUSE_S", 0.01)
    archive = make_tar(ADAPTER)
    ranges = serve_ranges(archive)
    leave_part(tmp_path / "out", archive[:7], '"e"')
    requests: list[str] = []

    def answer(request: RecordedRequest) -> ScriptedResponse:
        requests.append(request.headers.get("range", ""))
        if len(requests) == 1:
            headers = {"etag": '"e"', "content-range": f"bytes 7-106/{len(archive)}"}
            return ScriptedResponse(archive[7:107], status=206, headers=headers)
        return ScriptedResponse(b"", status=503) if len(requests) == 2 else ranges(request)

    store_archive(server, answer)
    assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))
    assert requests == ["bytes=7-", "bytes=107-", "bytes=107-"]


def test_expired_url_is_replaced(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    """A 403 of the store makes the client request a new URL."""
    answers = [ScriptedResponse(b"expired", status=403), ScriptedResponse(make_tar(ADAPTER))]
    store_archive(server, lambda _: answers.pop(0))
    download(rest, tmp_path / "out")
    assert len(server.named(f"{ROUTE}/archive")) == 2


@pytest.mark.parametrize("header", ["repr-digest", "x-goog-hash", "x-amz-checksum-sha256"])
@pytest.mark.parametrize("is_right", [True, False])
def test_hash_of_the_server_is_verified(
    header: str, is_right: bool, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    """A wrong hash is an error, and the next download starts anew."""
    archive = make_tar(ADAPTER)
    algorithm = "md5" if header == "x-goog-hash" else "sha256"
    digest = base64.b64encode(hashlib.new(algorithm, archive if is_right else b"").digest()).decode()
    form = {"repr-digest": "sha-256=:{}:", "x-goog-hash": "crc32c=AAAAAA==,md5={}", "x-amz-checksum-sha256": "{}"}
    store_archive(server, lambda _: ScriptedResponse(archive, headers={header: form[header].format(digest)}))
    if is_right:
        assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))
        return
    with pytest.raises(tw.TinkerError, match=f"has the {algorithm} hash .*, expected .*; repeat the download"):
        download(rest, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    store_archive(server, lambda _: ScriptedResponse(archive))
    assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))


def test_existing_folder_stays_unless_overwritten(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    store_archive(server, lambda _: ScriptedResponse(make_tar(ADAPTER)))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with pytest.raises(FileExistsError, match="choose another folder, or overwrite"):
        download(rest, tmp_path / "out")
    assert not server.requests
    download(rest, tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out" / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_simultaneous_downloads_exclude_each_other(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    """The second download fails at once, changes nothing, and works after the first one."""
    second: list[object] = []
    is_first = threading.Event()

    def answer(_: RecordedRequest) -> ScriptedResponse:
        if not is_first.is_set():
            is_first.set()
            for start in (
                lambda: rest.download_checkpoint(PATH, tmp_path / "out"),
                lambda: rest.download_checkpoint("tinker://m1/weights/b", tmp_path / "out"),
            ):
                second.append(start().exception(TEST_TIMEOUT_S))
        return ScriptedResponse(make_tar(ADAPTER))

    store_archive(server, answer)
    assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))
    assert [(type(error), "another download to" in str(error)) for error in second] == [(tw.TinkerError, True)] * 2
    assert download(rest, tmp_path / "out", overwrite=True).files == tuple(sorted(ADAPTER))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_full_disk_keeps_the_archive(
    server: ScriptedServer, rest: tw.RestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the disk while the archive is extracted does not cost the download."""
    archive = make_tar(ADAPTER)
    received: list[int] = []

    def answer(request: RecordedRequest) -> ScriptedResponse:
        if request.headers.get("range") == f"bytes={len(archive)}-":
            return ScriptedResponse(b"", status=416, headers={"content-range": f"bytes */{len(archive)}"})
        received.append(len(archive))
        return serve_ranges(archive)(request)

    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store_archive(server, answer)
    with monkeypatch.context() as patch:
        patch.setattr("tinkerwire._rest.extraction.shutil.copyfileobj", fill)
        with pytest.raises(OSError, match=r"No space left on device: .*\.out\.part"):
            download(rest, tmp_path / "out")
    assert not list(tmp_path.rglob("*.safetensors"))
    assert download(rest, tmp_path / "out").files == tuple(sorted(ADAPTER))
    assert received == [len(archive)]


@pytest.mark.parametrize("is_complete", [True, False])
def test_interrupted_replacement_is_completed_or_undone(
    is_complete: bool, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    """A process that ended between the two renames of a replacement does not cost the old folder."""
    old = tmp_path / ".out.old"
    old.mkdir()
    (old / "old").write_text("old")
    if is_complete:
        (tmp_path / "out").mkdir()
    store_archive(server, lambda _: ScriptedResponse(make_tar(ADAPTER)))
    with pytest.raises(FileExistsError):
        download(rest, tmp_path / "out")
    if not is_complete:
        assert (tmp_path / "out" / "old").read_text() == "old"
    download(rest, tmp_path / "out", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_file_or_link_is_not_replaced(kind: str, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nothing")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="exists"):
            download(rest, target, overwrite=overwrite)
    assert not server.requests
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("file_format", "kept"),
    [
        ("peft", ("adapter_config.json", "adapter_model.safetensors")),
        ("safetensors", ("adapter_model.safetensors",)),
        (None, tuple(sorted(ADAPTER))),
    ],
)
def test_format_keeps_its_files(
    file_format: str | None, kept: tuple[str, ...], server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    store_archive(server, lambda _: ScriptedResponse(make_tar(ADAPTER)))
    assert download(rest, tmp_path / "out", file_format=file_format).files == kept


def test_missing_format_is_an_error_with_the_files(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    store_archive(server, lambda _: ScriptedResponse(make_tar({"a.npz": b""})))
    with pytest.raises(tw.TinkerError, match=r"is not in the format peft: expected adapter_config.json .*, got a.npz"):
        download(rest, tmp_path / "out", file_format="peft")
    with pytest.raises(ValueError, match="file_format: must be one of 'safetensors', 'peft', got 'gguf'"):
        download(rest, tmp_path / "out", file_format="gguf")


def test_error_that_repeats_keeps_its_class(
    server: ScriptedServer, rest: tw.RestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A status is raised as its error, and silence as a timeout."""
    monkeypatch.setattr(file_download, "FIRST_PAUSE_S", 0.01)
    store_archive(server, lambda _: ScriptedResponse(b"no", status=503))
    with pytest.raises(tw.InternalServerError, match="HTTP 503"):
        download(rest, tmp_path / "out")
    assert len(server.named("stored")) == file_download.ATTEMPTS
    monkeypatch.setattr(file_download, "DOWNLOAD_SILENCE_S", 1.0)
    monkeypatch.setattr(file_download, "ATTEMPTS", 1)
    gate = Gate()
    store_archive(server, lambda _: ScriptedResponse(b"late", gate=gate))
    try:
        with pytest.raises(tw.APITimeoutError, match="no data within 1 s"):
            download(rest, tmp_path / "out")
    finally:
        gate.release()


def test_error_of_the_progress_function_is_raised(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    """It ends the download, and is not an error of the connection, which would be followed by further attempts."""

    def fail(_: int) -> None:
        raise ValueError("my own")

    store_archive(server, lambda _: ScriptedResponse(make_tar(ADAPTER)))
    with pytest.raises(ValueError, match="my own"):
        download(rest, tmp_path / "out", on_progress=fail)
    assert len(server.named("stored")) == 1


@pytest.mark.parametrize("content", [b"x", b""])
@pytest.mark.parametrize("content_range", ["bytes 3-3/9", ""])
def test_range_that_was_not_requested_is_rejected(
    content_range: str, content: bytes, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    leave_part(tmp_path / "out", b"another", '"e"')
    headers = {"etag": '"e"', "content-range": content_range}
    store_archive(server, lambda _: ScriptedResponse(content, status=206, headers=headers))
    with pytest.raises(tw.TinkerError, match="the server sent another range than byte 7-"):
        download(rest, tmp_path / "out")


def test_error_does_not_show_the_url(server: ScriptedServer, rest: tw.RestClient, tmp_path: Path) -> None:
    store_archive(server, lambda _: ScriptedResponse(b"no", status=404))
    with pytest.raises(tw.NotFoundError, match="HTTP 404") as raised:
        download(rest, tmp_path / "out")
    assert "secret" not in str(raised.value)
