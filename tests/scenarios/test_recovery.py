"""Tests of recovery: a real server is killed and loses its sessions, and the training goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import FAST
from support.embedded import ServerProcess, embedded_http_server
from tinkerwire._session.session import Session

ADAM = tw.AdamParams(learning_rate=1e-2)
STEPS = 10


def make_datum(number: int) -> tw.Datum:
    """Return the data of one step."""
    inputs: dict[str, Any] = {"target_tokens": [2, 3, 4 + number % 7], "weights": [1.0, 1.0, 1.0]}
    return tw.Datum(model_input=tw.ModelInput.from_ints([number % 50, 2, 3]), loss_fn_inputs=inputs)


class ForgetfulServer:
    """A server whose sessions end with its process; its saves stay.

    Args:
        folder: folder of the server.
        options: further options of the command.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._process = ServerProcess(folder, "--seed", "1", *options)
        self._process.start()
        self.url = self._process.url

    def lose_sessions(self) -> None:
        """Kill the process, delete its journal, and start another one."""
        self._process.kill()
        for file in self._folder.glob("journal-*"):
            file.unlink()
        self._process.start()

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForgetfulServer]:
    """Return a server that forgets its sessions."""
    server = ForgetfulServer(tmp_path / "data")
    yield server
    server.stop()


def create(service: tw.ServiceClient, recover: tw.Recovery | None) -> tw.TrainingClient:
    """Create a training client with the same weights in every run."""
    return service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=7, recover=recover)


def final_logprobs(training: tw.TrainingClient) -> list[float]:
    """Return numbers that depend on all weights."""
    output = training.forward([make_datum(3)], "cross_entropy").result().loss_fn_outputs[0]
    logprobs: list[float] = output["logprobs"].tolist()
    return logprobs


def train(training: tw.TrainingClient, after_step: Callable[[int], None]) -> list[float]:
    """Train step by step and return the losses."""
    losses = []
    for number in range(STEPS):
        trained = training.forward_backward([make_datum(number)], "cross_entropy")
        step = training.optim_step(ADAM)
        losses.append(trained.result().metrics["loss:sum"])
        step.result()
        after_step(number)
    return losses


@pytest.fixture(scope="module")
def undisturbed() -> tuple[list[float], list[float]]:
    """Return the losses and the final numbers of a run without recovery and without a loss."""
    with embedded_http_server("--seed", "1") as url, tw.ServiceClient(base_url=url) as service:
        training = create(service, None)
        return train(training, lambda _: None), final_logprobs(training)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed_after", [(0,), (4,), (2, 3, 8)], ids=["first", "between saves", "several"])
def test_replay_gives_the_weights_of_an_undisturbed_run(
    server: ForgetfulServer, killed_after: tuple[int, ...], undisturbed: tuple[list[float], list[float]]
) -> None:
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=3, keep=2, replay=True, on_recovery=reports.append))
        losses = train(training, lambda number: server.lose_sessions() if number in killed_after else None)
        assert (losses, final_logprobs(training)) == undisturbed
    assert len(reports) == len(killed_after)
    assert all(report.lost_steps == 0 for report in reports)
    assert [report.step + report.replayed_steps for report in reports] == [number + 1 for number in killed_after]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("with_optimizer", [True, False], ids=["with optimizer", "weights only"])
def test_client_from_saved_state_recovers(server: ForgetfulServer, with_optimizer: bool) -> None:
    """The first save has the loaded state, from which a recovery after the first step starts."""
    with tw.ServiceClient(base_url=server.url) as service:
        first = create(service, None)
        first.forward_backward([make_datum(1)], "cross_entropy")
        first.optim_step(ADAM).result()
        path = first.save_state("start").result().path

    def resume(recover: tw.Recovery | None, after_step: Callable[[int], None]) -> tuple[list[float], list[float]]:
        with tw.ServiceClient(base_url=server.url) as service:
            training = (
                service.create_training_client_from_state_with_optimizer(path, recover=recover)
                if with_optimizer
                else service.create_training_client_from_state(path, recover=recover)
            )
            return train(training, after_step), final_logprobs(training)

    undisturbed = resume(None, lambda _: None)
    reports: list[tw.RecoveryReport] = []
    recover = tw.Recovery(every=4, replay=True, on_recovery=reports.append)
    assert resume(recover, lambda number: server.lose_sessions() if number in (0, 5) else None) == undisturbed
    assert len(reports) == 2


@pytest.mark.timeout(300)
def test_sampling_clients_of_the_lost_session_raise_its_error(server: ForgetfulServer) -> None:
    """They do so before the recovery and after it, and new ones work."""
    prompt, params = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=2)
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=1))
        lost = [
            training.save_weights_and_get_sampling_client(),
            service.create_sampling_client(base_model="tinkerwire/byte-nano"),
        ]
        for sampling in lost:
            sampling.sample(prompt, 1, params).result()
        first = training.model_id.rpartition(":train:")[0]
        server.lose_sessions()
        for _ in range(2):
            for sampling in lost:
                with pytest.raises(tw.SessionExpiredError) as caught:
                    sampling.sample(prompt, 1, params).result()
                assert caught.value.session_id == first
            training.forward_backward([make_datum(1)], "cross_entropy").result()
        assert training.save_weights_and_get_sampling_client().sample(prompt, 1, params).result().sequences


@pytest.mark.timeout(300)
def test_loss_during_a_recovery_is_recovered(
    server: ForgetfulServer, undisturbed: tuple[list[float], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies again after the recovery has created a session, and before it has created a model."""
    create_session, created, losses = Session._create, 0, 2

    async def create_and_lose(session: Session) -> str:
        nonlocal created
        session_id = await create_session(session)
        created += 1
        if 1 < created <= 1 + losses:
            server.lose_sessions()
        return session_id

    monkeypatch.setattr(Session, "_create", create_and_lose)
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=1, keep=1, replay=True, on_recovery=reports.append))
        trained = train(training, lambda number: server.lose_sessions() if number == 4 else None)
        assert (trained, final_logprobs(training)) == undisturbed
    assert (len(reports), created) == (1, 2 + losses)


@pytest.mark.timeout(300)
def test_replay_of_operations_in_flight_gives_the_same_weights(
    server: ForgetfulServer, undisturbed: tuple[list[float], list[float]]
) -> None:
    """The program sends all steps at once, and the server dies somewhere among them, twice."""
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=2, replay=True)).result()
        futures = []
        for number in range(STEPS):
            futures.append(training.forward_backward([make_datum(number)], "cross_entropy"))
            training.optim_step(ADAM)
        for number in (1, 6):
            futures[number].result()
            server.lose_sessions()
        losses = [future.result().metrics["loss:sum"] for future in futures]
        assert (losses, final_logprobs(training)) == undisturbed


@pytest.mark.timeout(300)
def test_injected_failures_do_not_change_the_weights(
    tmp_path: Path, undisturbed: tuple[list[float], list[float]]
) -> None:
    server = ForgetfulServer(tmp_path / "data", "--inject-faults", "p_429=0.1,p_5xx=0.05,p_lost_reply=0.1,p_reset=0.05")
    try:
        with tw.ServiceClient(base_url=server.url, retry=FAST) as service:
            training = create(service, tw.Recovery(every=3, replay=True))
            losses = train(training, lambda number: server.lose_sessions() if number == 4 else None)
            assert (losses, final_logprobs(training)) == undisturbed
    finally:
        server.stop()


@pytest.mark.timeout(200)
def test_steps_since_the_save_are_lost_without_replay(
    server: ForgetfulServer, undisturbed: tuple[list[float], list[float]], caplog: pytest.LogCaptureFixture
) -> None:
    """The report and the log have their number; the training goes on from the save."""
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=3, on_recovery=reports.append)).result()
        first_model = training.model_id
        losses = train(training, lambda number: server.lose_sessions() if number == 4 else None)
        assert losses[:5] == undisturbed[0][:5]
        assert losses[5:] != undisturbed[0][5:]
        assert final_logprobs(training) != undisturbed[1]
        assert training.model_id != first_model
    (report,) = reports
    assert (report.step, report.lost_steps, report.replayed_steps, report.resent) == (3, 2, 0, 2)
    assert report.path.startswith(f"tinker://{first_model}/weights/")
    assert isinstance(report.error, tw.SessionExpiredError)
    assert "2 finished steps are lost, 0 replayed, 2 operations resent" in caplog.text


@pytest.mark.timeout(200)
def test_lost_session_is_an_error_without_recovery(server: ForgetfulServer) -> None:
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, None)
        training.forward_backward([make_datum(1)], "cross_entropy").result()
        server.lose_sessions()
        with pytest.raises(tw.SessionExpiredError):
            training.optim_step(ADAM).result()


@pytest.mark.timeout(200)
def test_only_the_last_saves_stay(server: ForgetfulServer) -> None:
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=1, keep=2))
        train(training, lambda _: None)
        training.save_state("own").result()
        run = training.model_id
    with tw.RestClient(base_url=server.url) as rest:
        names = {checkpoint.checkpoint_id for checkpoint in rest.list_checkpoints(run).result().checkpoints}
    assert names == {"weights/own", "weights/tinkerwire-recovery-10", "weights/tinkerwire-recovery-11"}


@pytest.mark.timeout(200)
def test_older_save_is_used_if_the_last_one_is_gone(server: ForgetfulServer) -> None:
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=3, keep=2, on_recovery=reports.append))

        def lose(number: int) -> None:
            if number == 7:
                rest = service.create_rest_client()
                rest.delete_checkpoint(training.model_id, "weights/tinkerwire-recovery-3").result()
                server.lose_sessions()

        train(training, lose)
    (report,) = reports
    assert (report.step, report.lost_steps) == (3, 5)


@pytest.mark.timeout(200)
def test_loaded_weights_are_not_lost(server: ForgetfulServer) -> None:
    """A recovery starts from the weights that the program loaded, although no step followed."""
    with tw.ServiceClient(base_url=server.url) as service:
        source = create(service, None)
        train(source, lambda _: None)
        expected, path = final_logprobs(source), source.save_state("trained").result().path
        training = create(service, tw.Recovery())
        training.load_state(path).result()
        assert final_logprobs(training) == expected
        server.lose_sessions()
        assert final_logprobs(training) == expected


@pytest.mark.timeout(200)
def test_samplers_custom_losses_and_saves_are_recovered(server: ForgetfulServer) -> None:
    """Each kind of operation may be the one that shows the loss."""
    reports: list[tw.RecoveryReport] = []

    def negative(data: list[tw.Datum], logprobs: list[Any]) -> tuple[float, dict[str, float], list[Any]]:
        return -sum(float(x.sum()) for x in logprobs), {}, [-np.ones_like(x) for x in logprobs]

    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(every=1, replay=True, on_recovery=reports.append)).result()
        prompt, params = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=3)
        operations: list[Callable[[], Any]] = [
            lambda: training.save_weights_and_get_sampling_client().sample(prompt, 1, params).result().sequences,
            lambda: training.forward_backward_custom([make_datum(1)], negative, arrays="numpy").result().metrics,
            lambda: training.save_state(f"own-{len(reports)}").result().path,
            lambda: training.save_weights_for_sampler(f"own-{len(reports)}").result().path,
            lambda: training.get_info().model_data.model_name,
            lambda: (
                asyncio.run(training.save_weights_and_get_sampling_client_async()).compute_logprobs(prompt).result()
            ),
        ]
        for operation in operations:
            server.lose_sessions()
            assert operation()
    assert len(reports) == len(operations)


@pytest.mark.timeout(200)
def test_loss_before_the_first_save_starts_a_new_model(server: ForgetfulServer) -> None:
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url=server.url) as service:
        training = create(service, tw.Recovery(replay=True, on_recovery=reports.append)).result()
        # The save behind the creation may be finished or not.
        server.lose_sessions()
        losses = train(training, lambda _: None)
        assert losses == train(create(service, None), lambda _: None)
    (report,) = reports
    assert (report.step, report.lost_steps) == (0, 0)


@pytest.mark.timeout(200)
def test_two_clients_of_one_session_recover(server: ForgetfulServer) -> None:
    """The session is created again once, and each client gets a model in it."""
    with tw.ServiceClient(base_url=server.url) as service:
        clients = [create(service, tw.Recovery(every=1, replay=True)).result() for _ in range(2)]
        for client in clients:
            train(client, lambda _: None)
        expected, session = [final_logprobs(client) for client in clients], service.session_id
        server.lose_sessions()
        found: dict[int, list[float]] = {}
        threads = [
            threading.Thread(target=lambda n=number: found.update({n: final_logprobs(clients[n])}))
            for number in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[0], found[1]] == expected
        assert service.session_id != session
        assert len({client.model_id.partition(":")[0] for client in clients}) == 1


@pytest.mark.timeout(200)
def test_repeated_loss_is_raised_after_the_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that never loads ends the recovery with the error of the loss."""
    server = ForgetfulServer(tmp_path / "data")
    try:
        with tw.ServiceClient(base_url=server.url) as service:
            training = create(service, tw.Recovery(every=1, attempts=1)).result()
            train(training, lambda _: None)
            training.save_state("last").result()
            run = training.model_id
            rest = service.create_rest_client()
            for checkpoint in rest.list_checkpoints(run).result().checkpoints:
                # The client deletes its old saves at the same time.
                with suppress(tw.NotFoundError):
                    rest.delete_checkpoint(run, checkpoint.checkpoint_id).result()
            server.lose_sessions()
            for _ in range(2):
                with pytest.raises(tw.TinkerError):
                    training.optim_step(ADAM).result()
    finally:
        server.stop()


def test_errors_of_the_program_do_not_start_a_recovery() -> None:
    reports: list[tw.RecoveryReport] = []
    with tw.ServiceClient(base_url="local") as service:
        training = create(service, tw.Recovery(on_recovery=reports.append))
        with pytest.raises(tw.TinkerError):
            training.load_state("tinker://gone/weights/none").result()
        with pytest.raises(ValueError, match="data"):
            training.forward_backward([], "cross_entropy")
        with pytest.raises(tw.TinkerError):
            training.forward_backward([make_datum(1)], "ppo").result()
        training.forward_backward([make_datum(1)], "cross_entropy").result()
        training.unload_model().result()
        with pytest.raises(tw.TinkerError):
            training.forward_backward([make_datum(1)], "cross_entropy").result()
    assert not reports
