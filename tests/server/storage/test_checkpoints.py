"""Tests of checkpoints: atomic saves, listings, changes, deletion, and restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from support.server_fixtures import Caller, Clock, ServerFactory
from tinkerwire._server.storage import atomic_files, checkpoints

NEWEST = "0.38.0"


def test_loaded_training_equals_uninterrupted_training(call: Caller) -> None:
    """With the optimizer the next step is the same to the bit; without the optimizer it differs."""
    session_id = call.create_session()
    model_id = call.create_model(session_id, 0)
    call.train_step(model_id)
    path = call.run("save_weights", {"model_id": model_id, "path": "middle"})["path"]
    call.train_step(model_id)
    losses = {}
    for number, optimizer in enumerate((True, False), start=1):
        loaded_id = call.create_model(session_id, number, seed=99)
        assert call.run("load_weights", {"model_id": loaded_id, "path": path, "optimizer": optimizer})["path"] == path
        call.train_step(loaded_id)
        losses[optimizer] = call.loss(loaded_id)
    assert losses[True] == call.loss(model_id) != losses[False]


def test_restarted_server_lists_and_loads_checkpoints(serve: ServerFactory, tmp_path: Path) -> None:
    """Runs and checkpoints outlive the server; saved weights can be trained and sampled."""
    first = serve(folder=tmp_path)
    model_id = first.create_model()
    first.train_step(model_id)
    path = first.run("save_weights", {"model_id": model_id, "path": "a", "ttl_seconds": 1000})["path"]
    sampler = first.run("save_weights_for_sampler", {"model_id": model_id, "path": "b"})["path"]
    listing = first("GET", "checkpoints").body
    loss = first.loss(model_id)
    first.server.close()
    second = serve(folder=tmp_path)
    assert second("GET", "checkpoints").body == listing
    run = second("GET", f"training_runs/{model_id}").body
    assert (run["lora_rank"], run["last_checkpoint"]["tinker_path"]) == (4, path)
    assert run["last_sampler_checkpoint"]["tinker_path"] == sampler
    session_id = second.create_session()
    loaded_id = second.create_model(session_id, seed=7)
    second.run("load_weights", {"model_id": loaded_id, "path": path, "optimizer": True})
    assert second.loss(loaded_id) == loss
    body = {"session_id": session_id, "sampling_session_seq_id": 0, "model_path": sampler}
    assert second.post("create_sampling_session", body).status == 200


def test_existing_checkpoint_name_is_not_overwritten(call: Caller) -> None:
    """A second save under a name fails as a user error, and the first checkpoint is still loaded."""
    model_id = call.create_model()
    before = call.loss(model_id)
    body = {"model_id": model_id, "path": "a"}
    path = call.run("save_weights", body)["path"]
    call.train_step(model_id)
    failed = call.run("save_weights", body)
    assert (failed["category"], "already exists" in failed["error"]) == ("user", True)
    call.run("load_weights", {"model_id": model_id, "path": path, "optimizer": False})
    assert call.loss(model_id) == before


def test_checkpoints_without_a_name_are_numbered(call: Caller) -> None:
    """The name is the next free number of the kind."""
    model_id = call.create_model()
    paths = [call.run("save_weights", {"model_id": model_id})["path"] for _ in range(2)]
    paths.append(call.run("save_weights_for_sampler", {"model_id": model_id})["path"])
    run = f"tinker://{model_id}"
    assert paths == [f"{run}/weights/0001", f"{run}/weights/0002", f"{run}/sampler_weights/0001"]


@pytest.mark.parametrize(
    "name", ["", "..", "../../x", "a/b", ".hidden", "a\\b", "a\0", "é", "x" * 129, "a b", "-x", "a" + 127 * ":"]
)
def test_invalid_checkpoint_name_is_rejected(call: Caller, name: str, tmp_path: Path) -> None:
    """The error comes at once and contains the rule; a name cannot leave its folder."""
    reply = call.post("save_weights", {"model_id": call.create_model(), "path": name})
    assert (reply.status, reply.body["detail"][0]["loc"]) == (422, ["body", "path"])
    assert "1 to 128" in reply.body["detail"][0]["msg"]
    assert list(tmp_path.rglob("*.npz")) == []


@pytest.mark.parametrize("name", ["step=10", "epoch:1", "v1.0+x@y", "_", "x" * 128, "a" + 66 * ":", "CON"])
def test_usual_checkpoint_names_are_accepted(call: Caller, name: str) -> None:
    """Names that users write are returned unchanged."""
    model_id = call.create_model()
    assert call.run("save_weights", {"model_id": model_id, "path": name})["path"].endswith(f"/weights/{name}")
    [checkpoint] = call("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"]
    assert checkpoint["checkpoint_id"] == f"weights/{name}"


def test_mismatching_checkpoint_is_not_loaded(call: Caller) -> None:
    """The error names the wrong rank, parts, path or kind, and the model stays unchanged."""
    session_id = call.create_session()
    source, smaller = call.create_model(session_id, 0), call.create_model(session_id, 1, rank=2)
    path = call.run("save_weights", {"model_id": source, "path": "a"})["path"]
    sampler = call.run("save_weights_for_sampler", {"model_id": source, "path": "a"})["path"]
    partial = call.create_model(session_id, 2, train_mlp=False)
    for target, setting in ((smaller, "rank"), (partial, "train_mlp")):
        failed = call.run("load_weights", {"model_id": target, "path": path, "optimizer": False})
        assert (failed["category"], setting in failed["error"]) == ("user", True)
    missing = call.run("load_weights", {"model_id": source, "path": path + "x", "optimizer": False})
    assert missing["category"] == "user"
    rejection = call.post("load_weights", {"model_id": source, "path": sampler, "optimizer": False})
    assert rejection.status == 422


def test_truncated_checkpoint_fails_the_load_only(call: Caller, tmp_path: Path) -> None:
    """The error names the checkpoint, and the server keeps running."""
    model_id = call.create_model()
    path = call.run("save_weights", {"model_id": model_id, "path": "a"})["path"]
    [file] = tmp_path.rglob("a.npz")
    file.write_bytes(file.read_bytes()[:1000])
    failed = call.run("load_weights", {"model_id": model_id, "path": path, "optimizer": False})
    assert (failed["category"], path in failed["error"]) == ("user", True)


def test_publish_ttl_and_delete_change_the_listing(call: Caller) -> None:
    """Each operation on a missing checkpoint is 404."""
    model_id = call.create_model()
    call.run("save_weights", {"model_id": model_id, "path": "a"})
    address = f"training_runs/{model_id}/checkpoints"

    def list_checkpoints() -> Any:
        return call("GET", address).body["checkpoints"]

    assert call("POST", f"{address}/weights/a/publish").status == 204
    assert list_checkpoints()[0]["public"] is True
    assert call("DELETE", f"{address}/weights/a/publish").status == 204
    assert list_checkpoints()[0]["public"] is False
    assert call("PUT", f"{address}/weights/a/ttl", {"ttl_seconds": 60}).status == 204
    assert list_checkpoints()[0]["expires_at"] is not None
    assert call("PUT", f"{address}/weights/a/ttl", {"ttl_seconds": None}).status == 204
    assert list_checkpoints()[0].get("expires_at") is None
    assert call("PUT", f"{address}/weights/a/ttl", {"ttl_seconds": 0}).status == 422
    assert call("DELETE", f"{address}/weights/a", key="k").status == 204
    assert call("DELETE", f"{address}/weights/a", key="k").status == 204, "a resend"
    assert call("DELETE", f"{address}/weights/a").status == 404
    for checkpoint_id in ("weights/none", "nothing", "weights/../x"):
        assert call("DELETE", f"{address}/{checkpoint_id}").status == 404
    assert call("DELETE", "training_runs/none/checkpoints/weights/a").status == 404
    assert list_checkpoints() == []


def test_expired_checkpoint_is_removed(serve: ServerFactory, clock: Clock, tmp_path: Path) -> None:
    """After its time to live it is neither listed nor loaded, and its files are deleted."""
    call = serve(clock=clock, folder=tmp_path)
    model_id = call.create_model()
    path = call.run("save_weights", {"model_id": model_id, "path": "a", "ttl_seconds": 60})["path"]
    clock.now += 59
    assert call.post("weights_info", {"tinker_path": path}).body["lora_rank"] == 4
    clock.now += 2
    assert call.post("weights_info", {"tinker_path": path}).status == 404
    assert call("GET", "checkpoints").body["cursor"]["total_count"] == 0
    assert list(tmp_path.rglob("a.*")) == []


def test_archive_is_a_redirect(call: Caller) -> None:
    """The status is 302 with Location and Expires; in process the location is the file."""
    model_id = call.create_model()
    call.run("save_weights", {"model_id": model_id, "path": "a"})
    reply = call("GET", f"training_runs/{model_id}/checkpoints/weights/a/archive")
    assert reply.status == 302
    parsedate_to_datetime(reply.headers["expires"])
    with np.load(unquote(urlsplit(reply.headers["location"]).path)) as arrays:
        assert len(arrays.files) > 10


def test_listings_have_pages(call: Caller) -> None:
    """The newest come first; a cursor leads to the next page."""
    session_id = call.create_session()
    runs = [call.create_model(session_id, number) for number in range(3)]
    body = call("GET", "training_runs", query=[("limit", "1"), ("offset", "1")]).body
    assert body["cursor"] == {"limit": 1, "offset": 1, "total_count": 3}
    assert [run["training_run_id"] for run in body["training_runs"]] == [runs[1]]
    assert call("GET", "training_runs", query=[("offset", "9")]).body["training_runs"] == []
    assert call("GET", "training_runs/none").status == 404


def test_metadata_values_become_strings(call: Caller) -> None:
    """The operation create_model accepts any values; the response has strings."""
    body = {
        "session_id": call.create_session(),
        "model_seq_id": 0,
        "base_model": "tinkerwire/byte-nano",
        "user_metadata": {"name": "a", "count": 3, "deep": {"b": [1]}},
    }
    model_id = call.run("create_model", body)["model_id"]
    run = call("GET", f"training_runs/{model_id}").body
    assert run["user_metadata"] == {"name": "a", "count": "3", "deep": '{"b":[1]}'}


@pytest.mark.parametrize("depth", [100, 300, 900])
def test_too_deep_metadata_is_rejected_on_arrival(call: Caller, depth: int) -> None:
    """Otherwise the metadata would fail when the server writes or lists it."""
    metadata: Any = {}
    for _ in range(depth):
        metadata = {"a": metadata}
    session = {"tags": [], "user_metadata": metadata, "sdk_version": "0.16.1"}
    model = {"session_id": call.create_session(), "model_seq_id": 0, "base_model": "tinkerwire/byte-nano"}
    for path, body in (("create_session", session), ("create_model", {**model, "user_metadata": metadata})):
        # The parser of orjson accepts values that its serializer rejects.
        reply = call.post(path, json.dumps(body).encode())
        assert reply.status == 422, reply
        assert "must be nested at most 100 levels deep" in reply.body["detail"][0]["msg"]
    assert call.post("create_session", {**session, "user_metadata": {"a": [[["b"]]]}}).status == 200


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_crash_during_a_write_leaves_the_old_or_the_new_file(tmp_path: Path, step: str) -> None:
    """A process killed at any step leaves the file unchanged, and no other file is mistaken for it."""
    target = tmp_path / "state.npz"
    atomic_files.write_arrays(target, {"a": np.arange(3)})
    script = f"""
        import os, pathlib, numpy as np
        from tinkerwire._server.storage import atomic_files
        die = lambda *a, **k: os._exit(9)
        if {step!r} == "write":
            np.savez = lambda file, **k: (file.write(b"PK half"), file.flush(), die())
        elif {step!r} == "fsync":
            os.fsync = die
        else:
            pathlib.Path.replace = die
        atomic_files.write_arrays(pathlib.Path({str(target)!r}), {{"a": np.arange(9)}})
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env=os.environ)
    assert child.returncode == 9
    assert atomic_files.read_arrays(target)["a"].tolist() == [0, 1, 2]


def test_failed_write_removes_the_unfinished_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error during the write leaves no file behind."""
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        atomic_files.write_json(tmp_path / "a.json", {})
    assert list(tmp_path.iterdir()) == []


def test_server_keeps_files_that_it_does_not_know(
    serve: ServerFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Copies, links and remains of a crash stay; incomplete pairs are skipped; one line of the log names them."""
    call = serve(folder=tmp_path)
    model_id = call.create_model()
    for name in ("whole", "half"):
        call.run("save_weights", {"model_id": model_id, "path": name})
    call.server.close()
    [truncated] = tmp_path.rglob("half.npz")
    truncated.unlink()
    unknown_files = [
        truncated.parent / ".writing-x",
        truncated.parent.parent / ".writing-y",
        truncated.parent / "alone.npz",
    ]
    unknown_files += [truncated.parent / f"copy{number}.npz" for number in range(50)]
    for path in unknown_files:
        path.write_bytes(b"PK")
    unknown_files.append(truncated.parent / "link.npz")
    unknown_files[-1].symlink_to(truncated.parent / "whole.npz")
    arrays_file = (truncated.parent / "whole.npz").read_bytes()
    (truncated.parent / "broken.json").write_text("{")
    (truncated.parent / "broken.npz").write_bytes(b"PK")
    listing = serve(folder=tmp_path)("GET", "checkpoints").body["checkpoints"]
    assert [checkpoint["checkpoint_id"] for checkpoint in listing] == ["weights/whole"]
    assert all(path.exists() for path in unknown_files)
    assert (truncated.parent / "whole.npz").read_bytes() == arrays_file
    [line] = [text for text in caplog.messages if "alone.npz" in text]
    assert "more" in line
    assert len(line) < 2000
    assert (truncated.parent / "broken.npz").exists()


@pytest.mark.parametrize("dies", ["write_arrays", "_write_record", "unlink"])
def test_crash_during_a_replacement_leaves_the_old_or_the_new(serve: ServerFactory, tmp_path: Path, dies: str) -> None:
    """After a kill before, at or after the replacement, weights and record belong together."""
    call = serve(folder=tmp_path, wire_version=NEWEST)
    model_id = call.create_model()
    save = {"model_id": model_id, "path": "a", "overwrite": True}
    call.run("save_weights", {**save, "user_metadata": {"is": "old"}})
    old = _read_weights(tmp_path)
    call.server.close()
    script = f"""
        import os, pathlib, numpy as np
        from tinkerwire.local import EmbeddedServer
        from tinkerwire._server.storage import checkpoints
        server = EmbeddedServer(folder={str(tmp_path)!r}, wire_version={NEWEST!r})
        all = server._state.checkpoints
        die = lambda *a, **k: os._exit(9)
        owners = {{"write_arrays": checkpoints, "_write_record": checkpoints.Checkpoints, "unlink": pathlib.Path}}
        owner = owners[{dies!r}]
        setattr(owner, {dies!r}, die)
        about = checkpoints.CheckpointOptions(user_metadata={{"is": "new"}})
        run = server._state.runs.get({model_id!r})
        all.save(run, "weights", "a", {{"x": np.arange(9)}}, about, overwrite=True)
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env=os.environ)
    assert child.returncode == 9
    [checkpoint] = serve(folder=tmp_path, wire_version=NEWEST)("GET", "checkpoints").body["checkpoints"]
    [record] = tmp_path.rglob("a.json")
    arrays = atomic_files.read_arrays(record.with_name(atomic_files.read_json(record)["file"]))
    assert checkpoint["user_metadata"] == {"is": "new" if dies == "unlink" else "old"}
    assert (sorted(arrays) == ["x"]) if dies == "unlink" else (sorted(arrays) == sorted(old))


def test_checkpoint_is_replaced_on_request(serve: ServerFactory, tmp_path: Path) -> None:
    """The last one is loaded, before and after a restart, and no file of an earlier one remains."""
    call = serve(folder=tmp_path, wire_version=NEWEST)
    model_id = call.create_model()
    losses = []
    for _ in range(3):
        call.run("save_weights", {"model_id": model_id, "path": "a", "overwrite": True})
        losses.append(call.protobuf_loss(model_id))
        call.result(call.post_protobuf(model_id).body["request_id"])
        call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})
        assert len(list(tmp_path.rglob("*.npz"))) == 1
    assert len(set(losses)) == 3
    call.server.close()
    restarted = serve(folder=tmp_path, wire_version=NEWEST)
    body = {"session_id": restarted.create_session(), "model_seq_id": 0, "path": f"tinker://{model_id}/weights/a"}
    loaded = restarted.run("load_weights", {**body, "optimizer": True})["model_id"]
    assert restarted.protobuf_loss(loaded) == losses[-1]
    assert restarted("DELETE", f"training_runs/{model_id}/checkpoints/weights/a").status == 204
    assert list(tmp_path.rglob("*.npz")) == []


def test_failed_save_leaves_nothing(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed save does not block the next one."""
    call = serve(folder=tmp_path)
    save = {"model_id": call.create_model(), "path": "a"}
    with monkeypatch.context() as broken:
        broken.setattr(checkpoints, "write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        assert "disk full" in call.run("save_weights", save)["error"]
    assert list(tmp_path.rglob("*.npz")) == []
    assert call.run("save_weights", save)["path"].endswith("/weights/a")


def _read_weights(folder: Path) -> Any:
    """Return the arrays of the only checkpoint in a folder."""
    [path] = folder.rglob("*.npz")
    return atomic_files.read_arrays(path)


def test_temporary_folder_is_removed_on_close(serve: ServerFactory) -> None:
    """Without a configured folder, no file remains after close."""
    call = serve()
    call.run("save_weights", {"model_id": call.create_model()})
    assert call.server.folder.exists()
    call.server.close()
    assert not call.server.folder.exists()
