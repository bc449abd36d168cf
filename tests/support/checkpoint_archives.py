"""Archives of checkpoints, and a scripted server that has one."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tinkerwire as tw
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._rest.checkpoint_download import CheckpointDownload

PATH = "tinker://m1/weights/a"
ROUTE = "training_runs/m1/checkpoints/weights/a"
ADAPTER = {
    "adapter_config.json": b"{}",
    "adapter_model.safetensors": bytes(range(256)) * 400,
    "checkpoint_complete": b"",
}


def make_tar(files: dict[str, bytes], mode: str = "w", **attributes: Any) -> bytes:
    """Return a tar of files; the attributes are set on every member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def make_zip(files: dict[str, bytes]) -> bytes:
    """Return a zip of files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def store_archive(server: ScriptedServer, answer: Callable[[RecordedRequest], ScriptedResponse]) -> None:
    """Redirect requests for the archive to an address of the server, which gives this answer."""
    location = f"{server.url}/api/v1/stored?sig=secret"
    server.rules[f"{ROUTE}/archive"] = lambda _: ScriptedResponse(b"", status=302, headers={"location": location})
    server.rules["stored"] = answer


def download(rest: tw.RestClient, folder: Path, **options: Any) -> CheckpointDownload:
    """Download the checkpoint and return the result."""
    return rest.download_checkpoint(PATH, folder, **options).result(TEST_TIMEOUT_S)
