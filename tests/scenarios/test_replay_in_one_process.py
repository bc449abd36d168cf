"""Recordings and replays by clients of one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.embedded import ServerProcess, embedded_http_server

KEY = "tml-recorded-secret-0123"
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3], "weights": [1.0, 1.0]}
)


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a recording of a model with one forward_backward, made in this process with the embedded server."""
    path = tmp_path / "own.tape"
    monkeypatch.setenv("TINKERWIRE_RECORD", str(path))
    train("local")
    monkeypatch.delenv("TINKERWIRE_RECORD")
    yield path
    monkeypatch.delenv("TINKERWIRE_REPLAY_CLAIMS", raising=False)


def train(base_url: str, **options: Any) -> float:
    """Train one step and return the loss."""
    with tw.ServiceClient(base_url=base_url, **options) as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        return training.forward_backward([DATUM], "cross_entropy").result().metrics["loss:sum"]


def test_replay_starts_anew_once_its_program_has_ended(tape: Path) -> None:
    assert train(f"replay:{tape}") == train(f"replay:{tape}") == train("local")


@pytest.mark.parametrize("how", ["deleted", "moved", "emptied"])
def test_process_that_records_twice_to_one_path_makes_a_new_recording(
    how: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tape.read_bytes()
    if how == "emptied":
        tape.write_bytes(b"")
    else:
        tape.rename(tape.with_name("first.tape"))
        if how == "deleted":
            tape.with_name("first.tape").unlink()
    monkeypatch.setenv("TINKERWIRE_RECORD", str(tape))
    loss = train("local")
    monkeypatch.delenv("TINKERWIRE_RECORD")
    assert train(f"replay:{tape}") == loss
    assert tape.read_bytes() != old
    if how == "moved":
        assert tape.with_name("first.tape").read_bytes() == old


def test_order_in_which_models_find_the_encoding_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch of each run is sent as protobuf, which the server rejects, and again as JSON."""
    tape = tmp_path / "own.tape"

    def train_models(base_url: str, numbers: Sequence[int]) -> dict[int, list[float]]:
        losses = {}
        with tw.ServiceClient(base_url=base_url) as service:
            for number in numbers:
                training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2, seed=number)
                datum = tw.Datum(
                    model_input=tw.ModelInput.from_ints([number, number]), loss_fn_inputs=DATUM.loss_fn_inputs
                )
                results = [
                    training.forward([datum], "cross_entropy"),
                    training.forward_backward([datum], "cross_entropy"),
                ]
                losses[number] = [result.result().metrics["loss:sum"] for result in results]
                with pytest.raises(tw.RequestFailedError, match="'logprobs' is missing"):
                    training.forward_backward([datum], "ppo").result()
        return losses

    with embedded_http_server("--wire", "0.6.3") as url:
        monkeypatch.setenv("TINKERWIRE_RECORD", str(tape))
        recorded = train_models(url, [1, 2, 3])
    monkeypatch.delenv("TINKERWIRE_RECORD")
    assert train_models(f"replay:{tape}", [3, 1, 2]) == recorded


@pytest.mark.timeout(200)
def test_samples_that_the_program_gave_up_are_given_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are pending in the replay, as they were on the slow server; if the program waits, it gets an error."""
    tape = tmp_path / "own.tape"
    prompt, params = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=2)

    async def sample(base_url: str, limit_s: float) -> str:
        async with tw.ServiceClient(base_url=base_url) as service:
            sampling = await service.create_sampling_client_async(base_model="tinkerwire/byte-nano")
            with pytest.raises((asyncio.TimeoutError, tw.ReplayError)) as caught:
                await asyncio.wait_for(sampling.sample_async(prompt, 1, params), limit_s)
            return type(caught.value).__name__

    with embedded_http_server("--inject-faults", "delay_s=5,only=asample+retrieve_future") as url:
        monkeypatch.setenv("TINKERWIRE_RECORD", str(tape))
        assert asyncio.run(sample(url, 1.0)) == "TimeoutError"
    monkeypatch.delenv("TINKERWIRE_RECORD")
    assert asyncio.run(sample(f"replay:{tape}", 1.0)) == "TimeoutError"
    monkeypatch.setattr("tinkerwire._tape.replaying.PATIENCE_S", 0.1)
    assert asyncio.run(sample(f"replay:{tape}", 100.0)) == "ReplayError"


def test_replay_beside_an_open_client_of_the_first_one_names_the_way_out(tape: Path) -> None:
    with tw.ServiceClient(base_url=f"replay:{tape}") as abandoned:
        abandoned.create_lora_training_client("tinkerwire/byte-nano", rank=2).result()
        with pytest.raises(tw.ReplayError, match="close all clients of this replay before"):
            train(f"replay:{tape}")
    assert train(f"replay:{tape}") == train("local")


def test_replay_needs_and_sends_no_key(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINKER_API_KEY", raising=False)
    assert train(f"replay:{tape}") == train(f"replay:{tape}", api_key=KEY)


def test_replay_of_other_settings_names_the_setting(tape: Path) -> None:
    with tw.ServiceClient(base_url=f"replay:{tape}") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=3)
        with pytest.raises(tw.ReplayError, match=r"create_model .*differs is lora_config.rank: recorded 2, got 3"):
            training.result()
        with pytest.raises(tw.ReplayError, match=r"lora_config.rank"):
            service.create_lora_training_client("tinkerwire/byte-nano", rank=2).result()


def test_replay_of_a_new_operation_names_it(tape: Path) -> None:
    with tw.ServiceClient(base_url=f"replay:{tape}") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        with pytest.raises(tw.ReplayError, match=r"save_weights \(POST .*: the recorded program sent no such request"):
            training.save_state("a").result()


def test_repeated_operation_is_one_too_many(tape: Path) -> None:
    with tw.ServiceClient(base_url=f"replay:{tape}") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        training.forward_backward([DATUM], "cross_entropy").result()
        with pytest.raises(tw.ReplayError, match=r"sent \d such requests, and this one is additional"):
            training.forward_backward([DATUM], "cross_entropy").result()


@pytest.mark.parametrize(
    ("address", "problem"),
    [("replay:", "does not name a file"), ("replay:gone.tape", "gone.tape cannot be read: No such file")],
)
def test_recordings_that_cannot_be_read_are_rejected_at_once(address: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tw.ServiceClient(base_url=address)


def test_recording_that_cannot_be_written_is_rejected_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINKERWIRE_RECORD", str(tmp_path / "gone" / "a.tape"))
    with pytest.raises(ValueError, match="cannot be written"):
        tw.ServiceClient(base_url="local")


def test_lost_session_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that loses the session does so in the replay, too."""
    monkeypatch.setenv("TINKERWIRE_RECORD", str(tmp_path / "own.tape"))
    server = ServerProcess(tmp_path / "first")
    server.start()
    url = server.url

    def run_into_loss(base_url: str, lose: bool) -> str:
        with tw.ServiceClient(base_url=base_url) as service:
            training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
            training.forward_backward([DATUM], "cross_entropy").result()
            if lose:
                server.kill()
                for file in (tmp_path / "first").iterdir():
                    if file.is_file():
                        file.unlink()
                server.start()
            with pytest.raises(tw.SessionExpiredError) as caught:
                training.optim_step(tw.AdamParams(learning_rate=1e-3)).result()
            return type(caught.value).__name__

    try:
        assert run_into_loss(url, lose=True) == "SessionExpiredError"
    finally:
        server.stop()
    monkeypatch.delenv("TINKERWIRE_RECORD")
    assert run_into_loss(f"replay:{tmp_path / 'own.tape'}", lose=False) == "SessionExpiredError"


def test_async_program_is_replayed(tape: Path) -> None:
    async def train_async() -> float:
        async with tw.ServiceClient(base_url=f"replay:{tape}") as service:
            training = await service.create_lora_training_client_async("tinkerwire/byte-nano", rank=2)
            future = await training.forward_backward_async([DATUM], "cross_entropy")
            return (await future).metrics["loss:sum"]

    assert asyncio.run(train_async()) == train("local")
