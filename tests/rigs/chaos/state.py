"""State that a server has left in its folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

import numpy as np


def read_checkpoint(folder: Path, tinker_path: str) -> dict[str, bytes]:
    """Return the weights and the optimizer of a training checkpoint, as bytes."""
    run_id, _, name = tinker_path.removeprefix("tinker://").split("/")
    with np.load(folder / "runs" / quote(run_id, safe="") / "weights" / f"{name}.npz") as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def check_journal(folder: Path, requested: int) -> list[str]:
    """Return a problem unless each sample was drawn once, and no operation is pending."""
    (path,) = folder.glob("journal-*.sqlite3")
    connection = sqlite3.connect(path)
    try:
        (samples,) = connection.execute("SELECT count(*) FROM results WHERE model = 'SampleResponse'").fetchone()
        (pending,) = connection.execute("SELECT count(*) FROM operations WHERE executed IS NULL").fetchone()
    finally:
        connection.close()
    problems = [] if samples == requested else [f"{samples} samples were drawn for {requested}"]
    return problems if not pending else [*problems, f"{pending} operations are pending"]
