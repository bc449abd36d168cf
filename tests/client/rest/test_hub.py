"""Uploads of checkpoints to the Hugging Face Hub, with a module that records the calls of its API."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.checkpoint_archives import ADAPTER, PATH, make_tar, store_archive
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)


class Hub:
    """The Hub as the upload finds it."""

    def __init__(self) -> None:
        self.card: str | None = None
        self.login_error: Exception | None = None
        self.upload_error: Exception | None = None
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.files: dict[str, bytes] = {}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    """Replace huggingface_hub."""
    state = Hub()

    class HfApi:
        def whoami(self) -> None:
            if state.login_error:
                raise state.login_error

        def create_repo(self, **options: Any) -> Any:
            state.calls.append(("create_repo", options))
            return types.SimpleNamespace(repo_id=f"me/{options['repo_id']}")

        def create_branch(self, **options: Any) -> None:
            state.calls.append(("create_branch", options))

        def hf_hub_download(self, **options: Any) -> str:
            if state.card is None:
                raise FileNotFoundError(options["filename"])
            (tmp_path / "card").write_text(state.card)
            return str(tmp_path / "card")

        def upload_folder(self, folder_path: str, **options: Any) -> None:
            if state.upload_error:
                raise state.upload_error
            state.calls.append(("upload_folder", options))
            state.files = {path.name: path.read_bytes() for path in Path(folder_path).iterdir()}

    module = types.ModuleType("huggingface_hub")
    module.HfApi = HfApi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return state


def push(server: ScriptedServer, files: dict[str, bytes], *arguments: Any, **options: Any) -> str:
    server.rules["weights_info"] = lambda _: ScriptedResponse(
        {"base_model": "org/Model-1", "is_lora": True, "lora_rank": 4}
    )
    store_archive(server, lambda _: ScriptedResponse(make_tar(files)))
    with open_client(server.url) as client:
        return client.push_to_hub(PATH, *arguments, **options).result(TEST_TIMEOUT_S)


def test_adapter_is_uploaded_with_base_model_and_card(server: ScriptedServer, hub: Hub) -> None:
    """The repository is private, has a name from the run, and a branch from the checkpoint."""
    assert push(server, ADAPTER) == "me/tinker-Model-1-m1"
    names = [name for name, _ in hub.calls]
    assert names == ["create_repo", "create_branch", "upload_folder"]
    assert hub.calls[0][1] == {"repo_id": "tinker-Model-1-m1", "private": True, "exist_ok": True}
    assert hub.calls[1][1]["branch"] == "weights-a"
    assert hub.calls[2][1]["ignore_patterns"] == ["checkpoint_complete"]
    assert json.loads(hub.files["adapter_config.json"]) == {"base_model_name_or_path": "org/Model-1"}
    assert PATH in hub.files["README.md"].decode()


def test_options_reach_the_hub(server: ScriptedServer, hub: Hub) -> None:
    push(
        server,
        ADAPTER,
        "mine",
        private=False,
        commit_message="m",
        create_pr=True,
        allow_patterns=["*.json"],
        add_model_card=False,
    )
    assert [name for name, _ in hub.calls] == ["create_repo", "upload_folder"]
    assert hub.calls[0][1]["private"] is False
    upload = hub.calls[1][1]
    assert (upload["revision"], upload["create_pr"], upload["allow_patterns"]) == (None, True, ["*.json"])
    assert "README.md" not in hub.files


def test_rejected_upload_is_an_error_with_the_way_out(server: ScriptedServer, hub: Hub) -> None:
    """A missing login, another checkpoint in the repository, and weights without an adapter upload nothing."""
    with pytest.raises(tw.TinkerError, match=r"is not an adapter of PEFT: .* got a.npz"):
        push(server, {"a.npz": b""})
    hub.card = "tinker_path: tinker://m1/weights/other"
    with pytest.raises(tw.TinkerError, match="has another checkpoint, tinker://m1/weights/other"):
        push(server, ADAPTER)
    hub.card = f"tinker_path: {PATH}"
    hub.upload_error = OSError("HTTP 403")
    with pytest.raises(tw.TinkerError, match=r"the Hugging Face Hub rejects the upload to me/.*: HTTP 403"):
        push(server, ADAPTER)
    hub.login_error = OSError("no token")
    with pytest.raises(tw.TinkerError, match="run: hf auth login"):
        push(server, ADAPTER)
    assert hub.files == {}


def test_missing_package_names_the_extra(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"install the extra: pip install 'tinkerwire\[hub\]'"):
        push(server, ADAPTER)
    assert not server.requests
