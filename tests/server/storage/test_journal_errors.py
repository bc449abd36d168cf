"""Journals that cannot be written or read, and handlers that fail."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from support.restarts import SAMPLE, Restart, count_rows, fail_to_write, forward_backward, optim_step
from support.server_fixtures import Caller, ServerFactory
from tinkerwire._server.storage.journal import Journal
from tinkerwire.local import EmbeddedServer


def test_full_disk_rejects_requests_until_there_is_space(restart: Restart, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rejected request leaves nothing; resent, it runs once, and earlier operations are unaffected."""
    call = restart()
    model_id = call.create_model()
    call.run("forward_backward", forward_backward(model_id, 1))
    fill_disk(call)
    body = forward_backward(model_id, 2, [1] * 4000)
    with monkeypatch.context() as patch:
        for _ in range(3):
            reply = call.post("forward_backward", body)
            assert reply.status == 503
            assert "the folder of this server cannot be written" in reply.body["detail"]
            assert "x-should-retry" not in reply.headers
            patch.setattr(Journal, "require_writable", lambda self: fail_to_write(self, None))
    request_id = call.submit("forward_backward", forward_backward(model_id, 2))
    assert call.result(request_id)["metrics"]
    assert call.run("optim_step", optim_step(model_id, 3))["metrics"]["optimizer_step:max"] == 1.0


def fill_disk(call: Caller) -> None:
    """Let the journal's file not grow any more."""
    connection = call.server._state.journal._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 1")


def test_result_that_cannot_be_written_is_computed_again(
    restart: Restart, sampling: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """The client polls on, and gets the result once there is space."""
    call = restart(long_poll_s=0.2)
    sampler_id = call.create_sampler()
    body = {**SAMPLE, "sampling_params": {"max_tokens": 500, "seed": 5}, "sampling_session_id": sampler_id}
    request_id = call.submit("asample", {**body, "seq_id": 1})
    fill_disk(call)
    sampling.set()
    statuses = []
    while 200 not in statuses:
        statuses.append(call.poll(request_id).status)
    assert set(statuses) <= {200, 408, 503}
    assert f"the result of {request_id} was not kept" in caplog.text
    assert not call.server._state.journal.has_failed


def test_failed_handler_leaves_nothing(restart: Restart, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error that is not a rejection, the server reads its state again."""
    call = restart()
    model_id = call.create_model()
    with monkeypatch.context() as patch:
        patch.setattr(type(call.server._state.requests), "put", lambda *_: 1 / 0)
        assert call.post("optim_step", optim_step(model_id, 1)).status == 500
    assert call.run("optim_step", optim_step(model_id, 1))["metrics"]["optimizer_step:max"] == 1.0


def test_operation_that_cannot_run_any_more_fails_with_the_reason(restart: Restart, tmp_path: Path) -> None:
    """Its run was removed from the folder by hand."""
    call = restart()
    model_id = call.create_model()
    blocked = threading.Event()
    call.server._state.models.get(model_id).worker.put(lambda: blocked.wait(20) and None)
    request_id = call.submit("optim_step", optim_step(model_id, 1))
    (call.server._state.runs.folder_of(model_id) / "run.json").unlink()
    call = restart()
    blocked.set()
    assert "cannot be resumed after the restart of the server: unknown model" in call.result(request_id)["error"]
    assert "operations" not in count_rows(restart())


def test_damaged_journal_is_an_error_at_the_start(restart: Restart, serve: ServerFactory, tmp_path: Path) -> None:
    path = tmp_path / "data" / "journal-0.16.1.sqlite3"
    path.parent.mkdir()
    path.write_bytes(b"x" * 5000)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"journal-0\.16\.1\.sqlite3 cannot be read"):
            EmbeddedServer(folder=tmp_path / "data")
    path.unlink()
    restart().create_session()
    sqlite3.connect(path).close()
