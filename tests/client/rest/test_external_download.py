"""Tests of downloads of external weights, file by file, and of exports of other weights."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(120)


def test_external_weights_are_downloaded_file_by_file(server: ScriptedServer, tmp_path: Path) -> None:
    """Names with folders are kept, and the URLs are signed once."""
    path = "tinker://m1/external_weights/a"
    files = {"adapter_model.safetensors": b"abc", "sub/x.json": b"{}"}
    urls = {name: f"{server.url}/api/v1/stored{number}" for number, name in enumerate(files)}
    body = {"urls": urls, "expires": "2099-01-01T00:00:00Z"}
    server.rules["training_runs/m1/checkpoints/external_weights/a/external_weights_urls"] = lambda _: ScriptedResponse(
        body
    )
    for number, content in enumerate(files.values()):
        server.rules[f"stored{number}"] = lambda _, content=content: ScriptedResponse(content)
    with open_client(server.url, wire_version="0.38.0") as client:
        rest = client.create_rest_client()
        result = rest.download_checkpoint(path, tmp_path / "out").result(TEST_TIMEOUT_S)
        body["urls"] = {"../x": f"{server.url}/api/v1/stored0"}
        with pytest.raises(tw.TinkerError, match="unsafe file name"):
            rest.download_checkpoint(path, tmp_path / "out2").result(TEST_TIMEOUT_S)
    assert {name: (result.directory / name).read_bytes() for name in result.files} == files


@pytest.mark.parametrize("is_set", [True, False], ids=["version set", "version discovered"])
@pytest.mark.parametrize(
    ("wire", "files"), [("0.16.1", ("a.npz", "checkpoint_complete")), ("0.38.0", ("download.npz",))]
)
def test_training_weights_of_the_embedded_server_are_downloaded(
    wire: str, files: tuple[str, ...], is_set: bool, tmp_path: Path
) -> None:
    """From wire 0.36.0 on, a temporary export is downloaded and deleted."""
    with (
        embedded_http_server("--wire", wire) as url,
        tw.ServiceClient(base_url=url, api_key="tml-x", wire_version=wire if is_set else None) as service,
    ):
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        result = service.download_checkpoint(path, tmp_path / "out").result(TEST_TIMEOUT_S)
        assert result.files == files
        kinds = [
            checkpoint.checkpoint_type
            for checkpoint in service.create_rest_client().list_user_checkpoints().result(TEST_TIMEOUT_S).checkpoints
        ]
        assert kinds == ["training"]


def test_external_download_continues_with_the_missing_files(server: ScriptedServer, tmp_path: Path) -> None:
    """A complete file is revalidated, and replaced if it has changed; files of another checkpoint are discarded."""
    files = {"a": b"1" * 1000, "b": b"2" * 1000}
    contents = dict(files)

    def answer(name: str) -> Callable[[RecordedRequest], ScriptedResponse]:
        def respond(request: RecordedRequest) -> ScriptedResponse:
            if name not in contents:
                return ScriptedResponse(b"", status=404)
            content, etag = contents[name], f'"{hashlib.md5(contents[name]).hexdigest()}"'
            if request.headers.get("range") == f"bytes={len(content)}-" and request.headers["if-range"] == etag:
                return ScriptedResponse(b"", status=416)
            return ScriptedResponse(content, headers={"etag": etag})

        return respond

    for run_id in ("m1", "m2"):
        body = {
            "urls": {name: f"{server.url}/api/v1/stored-{name}" for name in files},
            "expires": "2099-01-01T00:00:00Z",
        }
        route = f"training_runs/{run_id}/checkpoints/external_weights/a/external_weights_urls"
        server.rules[route] = lambda _, body=body: ScriptedResponse(body)
    for name in files:
        server.rules[f"stored-{name}"] = answer(name)
    with open_client(server.url, wire_version="0.38.0") as client:
        rest = client.create_rest_client()
        for run_id, changed, ranges in (("m1", b"1" * 1000, 1), ("m1", b"3" * 1000, 1), ("m2", b"4" * 1000, 0)):
            del contents["b"]
            with pytest.raises(tw.NotFoundError):
                rest.download_checkpoint("tinker://m1/external_weights/a", tmp_path / "out").result(TEST_TIMEOUT_S)
            contents.update(a=changed, b=files["b"])
            server.requests.clear()
            path = f"tinker://{run_id}/external_weights/a"
            result = rest.download_checkpoint(path, tmp_path / "out", overwrite=True).result(TEST_TIMEOUT_S)
            assert {name: (result.directory / name).read_bytes() for name in result.files} == contents
            assert sum("range" in request.headers for request in server.named("stored-a")) == ranges
            shutil.rmtree(tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


def test_external_download_drops_files_that_the_checkpoint_no_longer_has(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """A checkpoint that was saved again between two attempts gets none of the old files."""
    names = ["a", "b"]
    server.rules["training_runs/m1/checkpoints/external_weights/a/external_weights_urls"] = lambda _: ScriptedResponse(
        {"urls": {name: f"{server.url}/api/v1/stored-{name}" for name in names}, "expires": "2099-01-01T00:00:00Z"}
    )
    server.rules["stored-a"] = lambda _: ScriptedResponse(b"1", headers={"etag": '"a"'})
    server.rules["stored-b"] = lambda _: ScriptedResponse(b"", status=404)
    with open_client(server.url, wire_version="0.38.0") as client:
        rest = client.create_rest_client()
        with pytest.raises(tw.NotFoundError):
            rest.download_checkpoint("tinker://m1/external_weights/a", tmp_path / "out").result(TEST_TIMEOUT_S)
        names.remove("a")
        server.rules["stored-b"] = lambda _: ScriptedResponse(b"2")
        result = rest.download_checkpoint("tinker://m1/external_weights/a", tmp_path / "out").result(TEST_TIMEOUT_S)
    assert result.files == ("b",)
    assert [path.name for path in result.directory.iterdir()] == ["b"]
