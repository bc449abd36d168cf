"""Tests of folders that others have changed: a server loses the changed records only."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest

from support.server_fixtures import ServerFactory
from tinkerwire._server.engine import LoraSettings
from tinkerwire._server.storage.checkpoints import CheckpointOptions
from tinkerwire.local import EmbeddedServer

ODD = (None, True, -1, 2**63, 1e300, "", "..", "../../evil", "a/b", "weights", [], {}, {"run_id": 1}, "9" * 5000)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with two runs; both have a training checkpoint and a sampler checkpoint."""
    folder = tmp_path_factory.mktemp("saved")
    with EmbeddedServer(folder=folder) as server:
        state = server._state
        for number in range(2):
            run = state.runs.add(f"s-{number}:train:0", "tinkerwire/byte-nano", LoraSettings(rank=4), None)
            for kind in ("weights", "sampler_weights"):
                state.checkpoints.save(run, kind, "a", {"x": np.arange(3)}, CheckpointOptions())
    return folder


def _damage(rng: random.Random, folder: Path) -> set[Path]:
    """Damage a folder in a few ways; return the damaged records."""
    damaged: set[Path] = set()
    records = sorted(path for path in folder.rglob("*.json") if path.name != "run.json")
    for _ in range(rng.choice((1, 2, 3))):
        record = rng.choice(records)
        kind = rng.randrange(10)
        if kind < 4:
            value = orjson.loads(record.read_bytes()) if record.is_file() and record not in damaged else {"key": {}}
            owner = rng.choice((value, value["key"]))
            name = rng.choice([*owner, "unknown"])
            before = dict(owner)
            owner[name] = rng.choice(ODD)
            if rng.random() < 0.3:
                del owner[name]
            record.unlink() if record.is_file() else shutil.rmtree(record, ignore_errors=True)
            record.write_bytes(orjson.dumps(value))
            if owner != before:
                damaged.add(record)
        elif kind == 4:
            _replace(record, record.read_bytes()[:20] if record.is_file() else b"{")
            damaged.add(record)
        elif kind == 5:
            _replace(record, b'{"key":"\xff\xfe"}')
            damaged.add(record)
        elif kind == 6:
            _replace(record, b"[" * 100_000)
            damaged.add(record)
        elif kind == 7:
            record.unlink() if record.is_file() else None
            record.mkdir(exist_ok=True)
            damaged.add(record)
        elif kind == 8:
            copy = record.with_name("copy.json")
            copy.write_bytes(record.read_bytes() if record.is_file() else b"")
        else:
            arrays = record.parent / f"foreign{rng.randrange(9)}.npz"
            arrays.write_bytes(b"PK")
    return damaged


def _replace(path: Path, content: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_record_does_not_affect_other_records(
    serve: ServerFactory, saved: Path, tmp_path: Path, seed: int
) -> None:
    """Every listing succeeds with all other checkpoints, and no file of the folder is removed."""
    folder = tmp_path / "data"
    shutil.copytree(saved, folder)
    damaged = _damage(random.Random(seed), folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    call = serve(folder=folder)
    listing = call("GET", "checkpoints").body["checkpoints"]
    runs = call("GET", "training_runs").body["training_runs"]
    assert len(runs) == 2
    records = {path for path in saved.rglob("*.json") if path.name != "run.json"}
    intact = {path.relative_to(saved) for path in records} - {path.relative_to(folder) for path in damaged}
    # A changed value, such as a size, may still be valid.
    assert len(intact) <= len(listing) <= len(records)
    for run in runs:
        assert call("GET", f"training_runs/{run['training_run_id']}/checkpoints").status == 200
    call.server.close()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("field", ["run_id", "rank", "created_at", "user_metadata", "base_model", "unknown"])
def test_damaged_run_does_not_affect_other_runs(serve: ServerFactory, saved: Path, tmp_path: Path, field: str) -> None:
    """This includes an id that leads out of the folder, or to another run."""
    folder = tmp_path / "data"
    shutil.copytree(saved, folder)
    path, intact_file = sorted(folder.rglob("run.json"))
    intact_id = orjson.loads(intact_file.read_bytes())["run_id"]
    for value in (*ODD, intact_id):
        if field == "user_metadata" and value in (None, {}):
            continue
        record = orjson.loads((saved / path.relative_to(folder)).read_bytes())
        if (field in record and record[field] == value) or (field == "base_model" and isinstance(value, str) and value):
            continue
        path.write_bytes(orjson.dumps({**record, field: value}))
        if field == "created_at" and value == -1:
            continue
        with EmbeddedServer(folder=folder) as server:
            runs = [run.run_id for run in server._state.runs.newest_first()]
        assert runs == [intact_id], (field, value)


def test_unreadable_record_is_not_overwritten(serve: ServerFactory, saved: Path, tmp_path: Path) -> None:
    """A save under its name is rejected with the name of the file; an unnamed save takes another name."""
    folder = tmp_path / "data"
    shutil.copytree(saved, folder)
    run = orjson.loads(min(folder.rglob("run.json")).read_bytes())["run_id"]
    call = serve(folder=folder)
    model_id = call.create_model()
    weights = call.server._state.runs.folder_of(model_id) / "weights"
    weights.mkdir()
    (weights / "a.json").write_bytes(b"precious")
    save = {"model_id": model_id, "path": "a"}
    assert "a.json exists, but" in call.run("save_weights", save)["error"]
    assert (weights / "a.json").read_bytes() == b"precious"
    assert run != model_id


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_pipe_in_the_folder_does_not_block_the_start(serve: ServerFactory, saved: Path, tmp_path: Path) -> None:
    """The server does not open a pipe as a record."""
    folder = tmp_path / "data"
    shutil.copytree(saved, folder)
    record = min(path for path in folder.rglob("*.json") if path.name != "run.json")
    record.unlink()
    os.mkfifo(record)
    assert len(serve(folder=folder)("GET", "checkpoints").body["checkpoints"]) == 3
