"""Tests of a server that ends without notice: the next one on its folder goes on where it was."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.restarts import SAMPLE, Restart, count_rows, fail_to_write, forward_backward, optim_step, read_state, train
from support.server_fixtures import Clock, ServerFactory
from tinkerwire._server import bounded_table
from tinkerwire._server.sessions import models
from tinkerwire._server.storage.journal import Journal
from tinkerwire.local import RetentionPolicy


@pytest.mark.parametrize("max_replay_s", [0.0, 1000.0], ids=["recorded", "replayed"])
def test_training_with_restarts_is_equal_to_the_bit(
    restart: Restart, serve: ServerFactory, monkeypatch: pytest.MonkeyPatch, max_replay_s: float
) -> None:
    """The server ends after each operation; gradients, optimizer and weights go on, also after a failed operation."""
    monkeypatch.setattr(models, "MAX_REPLAY_S", max_replay_s)
    states = []
    for restarts in (False, True):
        call = restart() if restarts else serve()
        model_id = call.create_model(rank=8)
        for seq_id in range(1, 9):
            if restarts:
                call = restart()
            if seq_id % 3:
                # The fifth one has a token outside of the vocabulary.
                tokens = [1, 999] if seq_id == 5 else None
                call.run("forward_backward", forward_backward(model_id, seq_id, tokens))
            else:
                call.run("optim_step", optim_step(model_id, seq_id))
        states.append(read_state(restart() if restarts else call, model_id))
    assert states[0] == states[1]
    assert sum(name.startswith("grad.") for name in states[0]) > 0


def test_accepted_operations_run_after_a_restart(restart: Restart, serve: ServerFactory) -> None:
    """They were queued, and one was held behind a gap; all get their results under their request ids."""
    call = restart()
    model_id = call.create_model()
    blocked = threading.Event()
    call.server._state.models.get(model_id).worker.put(lambda: blocked.wait(20) and None)
    step = call.submit("forward_backward", forward_backward(model_id, 1))
    waiting_id = call.submit("optim_step", optim_step(model_id, 3))
    call = restart()
    blocked.set()
    assert call.result(step)["metrics"]
    second = call.submit("forward_backward", forward_backward(model_id, 2))
    assert call.result(second)["metrics"]
    assert call.result(waiting_id)["metrics"]["optimizer_step:max"] == 1.0
    undisturbed = serve()
    undisturbed_id = undisturbed.create_model()
    for seq_id in (1, 2):
        undisturbed.run("forward_backward", forward_backward(undisturbed_id, seq_id))
    undisturbed.run("optim_step", optim_step(undisturbed_id, 3))
    assert read_state(call, model_id) == read_state(undisturbed, undisturbed_id)


def test_results_and_resent_requests_are_recognised_after_a_restart(restart: Restart) -> None:
    call = restart()
    session = {"tags": ["a"], "user_metadata": {"k": "v"}, "sdk_version": "1", "project_id": "p"}
    session_id = call.post("create_session", session, key="first").body["session_id"]
    model_id = call.create_model(session_id)
    body = forward_backward(model_id, 1)
    request_id = call.submit("forward_backward", body, key="batch")
    result = call.result(request_id)
    call = restart()
    assert call.post("create_session", session, key="first").body["session_id"] == session_id
    assert call.result(request_id) == result
    assert call.submit("forward_backward", body, key="batch") == request_id
    assert call.submit("forward_backward", body, key="another") == request_id
    assert call.post("forward_backward", forward_backward(model_id, 1, [9, 9])).status == 409
    assert call.create_model(session_id) == model_id
    assert call("GET", f"sessions/{session_id}").body["training_run_ids"] == [model_id]
    later = call.submit("optim_step", optim_step(model_id, 2))
    assert later not in (request_id, model_id)
    assert int(later.split("-")[-1]) > int(request_id.split("-")[-1])


def test_samples_in_temporary_files_are_recognised_after_a_restart(
    restart: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends loses its temporary files, but not what they held; the limits apply to them, too."""
    monkeypatch.setattr(bounded_table, "RECENT_BYTES", 4 * bounded_table.ENTRY_BYTES)
    call = restart()
    sampler_id = call.create_sampler()
    bodies = [{**SAMPLE, "sampling_session_id": sampler_id, "seq_id": number} for number in range(30)]
    ids = [call.submit("asample", body, key=f"sample {number}") for number, body in enumerate(bodies)]
    results = [call.result(request_id) for request_id in ids]
    for restarts in range(3):
        assert 1 <= len(call.server._state.samples._entries) <= 4, restarts
        for key in ("sample {}", f"other {restarts} {{}}"):
            resent = [call.submit("asample", body, key=key.format(number)) for number, body in enumerate(bodies)]
            assert resent == ids
        assert [call.result(request_id) for request_id in ids] == results
        call = restart()
    call = restart(retention=RetentionPolicy(results=10))
    call.result(call.submit("asample", {**SAMPLE, "sampling_session_id": sampler_id, "seq_id": 30}))
    assert len(call.server._state.futures.results) == 10
    # The samples may have ended in another order.
    statuses = [call.post("retrieve_future", {"request_id": request_id}).status for request_id in ids]
    assert sorted(statuses) == [200] * 9 + [410] * 21
    assert [call.submit("asample", body) for body in bodies] == ids


def test_samplers_keep_their_weights_and_samples(restart: Restart) -> None:
    """Weights from a checkpoint, of a session of their own and inflight; the checkpoint is deleted meanwhile."""
    call = restart(wire_version="0.38.0")
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    train(call, model_id)
    path = call.run("save_weights_for_sampler", {"model_id": model_id, "path": "a"})["path"]
    body = {"session_id": session_id, "sampling_session_seq_id": 7, "model_path": path}
    sampler_ids = [call.post("create_sampling_session", body).body["sampling_session_id"], call.create_sampler()]
    for number, kind in ((8, None), (9, "inflight")):
        body = {"model_id": model_id, "sampling_session_seq_id": number, **({"kind": kind} if kind else {})}
        train(call, model_id)
        sampler_ids.append(call.run("save_weights_for_sampler", body)["sampling_session_id"])
    samples = [call.run("asample", {**SAMPLE, "sampling_session_id": name, "seq_id": 1}) for name in sampler_ids]
    assert len(set(samples)) == 4
    assert call("DELETE", f"training_runs/{model_id}/checkpoints/sampler_weights/a").status == 204
    call = restart(wire_version="0.38.0")
    repeated = [call.run("asample", {**SAMPLE, "sampling_session_id": name, "seq_id": 2}) for name in sampler_ids]
    assert repeated == samples
    state = call.server._state
    assert state.samplers.get(sampler_ids[3]).weights is state.models.get(model_id).inflight_weights
    assert call("GET", f"samplers/{sampler_ids[0]}").body["model_path"] == path


def test_pending_samples_are_drawn_and_listed_once(restart: Restart, sampling: threading.Event) -> None:
    """The cursor of a client stays valid, so that it gets each completion once."""
    call = restart(wire_version="0.38.0")
    sampler_id = call.create_sampler()
    sampling.set()
    target = {"type": "sampling_session", "sampling_session_id": sampler_id, "cloned_sampler_id": 0}

    def submit(seq_id: int) -> str:
        return call.submit("asample", {**SAMPLE, "sampling_session_id": sampler_id, "seq_id": seq_id})

    def completed(cursor: int, fetched: list[str]) -> tuple[list[str], int]:
        poll = {"target": target, "prev_cursor": cursor, "retrieved_request_ids": fetched}
        body = call.post("retrieve_futures", poll).body
        return [sample["request_id"] for sample in body["completions"]], body["cursor"]

    first = submit(0)
    assert completed(0, []) == ([first], 1)
    content = call.result(first)
    sampling.clear()
    pending = submit(1)
    call = restart(wire_version="0.38.0")
    assert submit(1) == pending
    sampling.set()
    request_ids, cursor = completed(1, [first])
    assert request_ids == [pending]
    assert call.result(pending) == content
    assert call.result(first) == content
    call = restart(wire_version="0.38.0")
    last = submit(2)
    call.result(last)
    request_ids, cursor = completed(cursor, [first, pending])
    assert request_ids == [last]


def test_save_that_was_written_but_not_recorded_is_done_once(restart: Restart, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends between the file and the result; a later save under the name is still rejected."""
    call = restart()
    model_id = call.create_model()
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add_result", fail_to_write)
        request_ids = [
            call.submit("save_weights", {"model_id": model_id, "seq_id": 1, "path": "a"}),
            call.submit("save_weights_for_sampler", {"model_id": model_id, "seq_id": 2}),
        ]
        assert call.server._state.models.get(model_id).worker.join(0.5) is False
    assert len(call.server._state.checkpoints.newest_first()) == 1
    call = restart()
    paths = [call.result(request_id)["path"] for request_id in request_ids]
    assert paths == [f"tinker://{model_id}/weights/a", f"tinker://{model_id}/sampler_weights/0001"]
    assert call("GET", "checkpoints").body["checkpoints"].__len__() == 2
    assert "already exists" in call.run("save_weights", {"model_id": model_id, "seq_id": 3, "path": "a"})["error"]


def test_rejected_seq_id_leaves_no_gap_after_a_restart(restart: Restart) -> None:
    call = restart(gap_wait_s=600.0)
    model_id = call.create_model()
    assert call.post("save_weights", {"model_id": model_id, "seq_id": 1, "path": "a b"}).status == 422
    call = restart(gap_wait_s=600.0)
    assert call.run("optim_step", optim_step(model_id, 2))["metrics"]
    assert "skipped" in count_rows(call)


def test_unloaded_model_stays_unloaded(restart: Restart) -> None:
    call = restart()
    model_id = call.create_model()
    call.train_step(model_id)
    assert call.run("unload_model", {"model_id": model_id})["model_id"] == model_id
    call = restart()
    assert call.post("optim_step", optim_step(model_id, 9)).status == 404
    assert not {"models", "operations"} & count_rows(call).keys()


def test_copies_of_a_client_get_new_numbers(restart: Restart) -> None:
    call = restart(wire_version="0.38.0")
    sampler_id = call.create_sampler()
    join = {"sampling_session_id": sampler_id}
    assert call.post("join_sampling_session", join).body["client_counter"] == 1
    call = restart(wire_version="0.38.0")
    assert call.post("join_sampling_session", join).body["client_counter"] == 2


def test_expired_session_leaves_no_rows(restart: Restart, clock: Clock) -> None:
    """A session that expires while no server is running leaves no rows either."""
    call = restart(clock=clock, wire_version="0.38.0")
    for _ in range(2):
        session_id = call.create_session()
        model_id = call.create_model(session_id)
        train(call, model_id)
        call.run("save_weights_for_sampler", {"model_id": model_id, "sampling_session_seq_id": 1})
        call.run("save_weights_for_sampler", {"model_id": model_id, "sampling_session_seq_id": 2, "kind": "inflight"})
        assert {"models", "weights", "samplers", "operations"} <= count_rows(call).keys()
        clock.now += 4000
        call = restart(clock=clock, wire_version="0.38.0")
        assert call.post("optim_step", optim_step(model_id, 9)).status in (404, 410)
        call.create_session()
        assert not {"models", "weights", "samplers", "operations", "results"} & count_rows(call).keys()
        assert count_rows(call)["sessions"] == 1


def test_time_without_a_server_expires_neither_sessions_nor_results(
    restart: Restart, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients cannot send heartbeats then. The wall clock may also have jumped while no server ran."""
    monkeypatch.setattr(time, "time", clock)
    call = restart(wire_version="0.38.0")
    session_id = call.create_session()
    request_id = call.submit("asample", {**SAMPLE, "sampling_session_id": call.create_sampler(), "seq_id": 0})
    texts = call.result(request_id)
    for jump_s in (100_000, -200_000):
        clock.now += jump_s
        call = restart(wire_version="0.38.0")
        assert call.post("session_heartbeat", {"session_id": session_id}).status == 200
        assert call.result(request_id) == texts


def test_dropped_results_and_requests_leave_no_rows(restart: Restart) -> None:
    """The limits of memory are those of the disk."""
    retention = RetentionPolicy(results=5, request_bytes=4000)
    call = restart(retention=retention)
    sampler_id = call.create_sampler()
    for seq_id in range(30):
        call.run("asample", {**SAMPLE, "sampling_session_id": sampler_id, "seq_id": seq_id}, key=f"key-{seq_id}")
    counts = count_rows(call)
    assert counts["results"] == 5
    assert "operations" not in counts
    assert counts["accepted"] <= 10
    for number in range(30):
        call.post("create_session", {"tags": [], "user_metadata": None, "sdk_version": "1"}, key=f"session-{number}")
    assert 1 <= count_rows(call)["responses"] <= 10


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_closed_server_is_resumed(serve: ServerFactory, tmp_path: Path, strict: bool) -> None:
    """Waiting clients are to retry if another server follows; otherwise pending operations fail for good.

    The next server does not wait for operations that failed, which nobody sends again.
    """
    settings: dict[str, Any] = {
        "folder": tmp_path / "closed",
        "strict_sequence": strict,
        "gap_wait_s": 600.0,
        "long_poll_s": 20.0,
    }
    call = serve(**settings)
    model_id = call.create_model()
    blocked = threading.Event()
    call.server._state.models.get(model_id).worker.put(lambda: blocked.wait(20) and None)
    request_id = call.submit("optim_step", optim_step(model_id, 1))

    async def poll_and_close(**options: bool) -> Any:
        poll = asyncio.ensure_future(call.send("POST", "retrieve_future", {"request_id": request_id}))
        await asyncio.sleep(0.1)
        threading.Timer(0.1, blocked.set).start()
        await asyncio.to_thread(call.server.close, **options)
        return await poll

    assert asyncio.run(poll_and_close(is_resumed=True)).status == 408
    rejection = call.poll(request_id)
    assert (rejection.status, rejection.headers.get("x-should-retry")) == (503, None)
    call = serve(**settings)
    assert call.result(request_id)["metrics"]["optimizer_step:max"] == 1.0
    blocked.clear()
    call.server._state.models.get(model_id).worker.put(lambda: blocked.wait(20) and None)
    request_id = call.submit("optim_step", optim_step(model_id, 2))
    assert "the server was closed" in asyncio.run(poll_and_close()).body["error"]
    assert call.poll(request_id).headers["x-should-retry"] == "false"
    call = serve(**settings)
    assert "the server was closed" in call.result(request_id)["error"]
    assert call.submit("optim_step", optim_step(model_id, 2)) == request_id
    assert call.run("optim_step", optim_step(model_id, 3))["metrics"]["optimizer_step:max"] == 2.0


def test_server_without_a_folder_records_nothing(serve: ServerFactory) -> None:
    call = serve()
    call.train_step(call.create_model())
    assert not call.server.is_durable
    assert not list(call.server.folder.glob("*.sqlite3"))


def test_each_wire_version_has_its_own_journal(restart: Restart, tmp_path: Path) -> None:
    """Bodies and results have the form of one version."""
    model_id = restart(wire_version="0.16.1").create_model()
    call = restart(wire_version="0.38.0")
    assert call.post("optim_step", optim_step(model_id, 1)).status == 404
    assert restart(wire_version="0.16.1").run("optim_step", optim_step(model_id, 1))["metrics"]
