"""Servers that end without notice, and the next ones on their folders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server_fixtures import Caller, ServerFactory, create_batch
from tinkerwire._server.engine.sampler import Sampler
from tinkerwire._server.storage.database import StorageError
from tinkerwire._server.storage.journal import Journal
from tinkerwire.local import EmbeddedServer

ADAM = {"learning_rate": 0.01}
SAMPLE = {"num_samples": 1, "prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {"max_tokens": 4, "seed": 5}}
Restart = Callable[..., Caller]


@pytest.fixture
def restart(serve: ServerFactory, tmp_path: Path) -> Iterator[Restart]:
    """Return a function that ends the server as a kill would, and starts the next one on the folder."""
    servers: list[EmbeddedServer] = []

    def start(**settings: Any) -> Caller:
        for server in servers:
            journal = server._state.journal
            with journal._lock:
                journal._is_closed = True
                journal._close_connection()
            server._leave_folder()
        call = serve(folder=tmp_path / "data", **{"long_poll_s": 10.0, **settings})
        servers[:] = [call.server]
        return call

    yield start


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block every sample until the test sets this event."""
    opened = threading.Event()
    original = Sampler.start

    def start(self: Sampler, *arguments: Any, **options: Any) -> Any:
        assert opened.wait(20)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Sampler, "start", start)
    yield opened
    opened.set()


def forward_backward(model_id: str, seq_id: int, tokens: list[int] | None = None) -> dict[str, Any]:
    return {"model_id": model_id, "seq_id": seq_id, "forward_backward_input": create_batch(tokens or [1, 2, seq_id])}


def optim_step(model_id: str, seq_id: int) -> dict[str, Any]:
    return {"model_id": model_id, "seq_id": seq_id, "adam_params": ADAM}


def train(call: Caller, model_id: str) -> None:
    """Change the weights of a model over the newest wire version."""
    call.result(call.post_protobuf(model_id).body["request_id"])
    call.run("optim_step", {"model_id": model_id, "adam_params": ADAM})


def read_state(call: Caller, model_id: str) -> dict[str, bytes]:
    """Return the weights, the optimizer and the gradients of a model, after all of its operations."""
    call.run("forward", {"model_id": model_id, "forward_input": create_batch()})
    arrays = call.server._state.models.get(model_id).engine.snapshot_arrays()
    return {name: value.tobytes() for name, value in arrays.items()}


def count_rows(call: Caller) -> dict[str, int]:
    """Return the number of rows of each table that has rows, settings apart."""
    journal = call.server._state.journal
    tables = ("sessions", "models", "samplers", "weights", "operations", "results", "accepted", "responses", "skipped")
    with journal:
        # The transaction brings the deferred statements.
        journal.execute("DELETE FROM settings WHERE name = ''")
    counts = {table: journal.query(f"SELECT count(*) FROM {table}")[0][0] for table in tables}
    return {table: count for table, count in counts.items() if count}


def fail_to_write(self: Journal, result: object) -> None:
    """Take the place of a method of a journal that writes, on a full disk."""
    self.has_failed = True
    raise StorageError("no space")
