"""Tests of aliases of base models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tinkerwire
from tinkerwire._cli.entry import main
from tinkerwire.local import EmbeddedServer, EmbeddedTransport

ALIAS, NANO = "org/Model-9B", "tinkerwire/byte-nano"
pytestmark = pytest.mark.timeout(60)


def _open_client(server: EmbeddedServer) -> tinkerwire.ServiceClient:
    return tinkerwire.ServiceClient(base_url="local", transport=EmbeddedTransport(server))


def _compute_logprobs(sampling: Any) -> list[float]:
    prompt = tinkerwire.types.ModelInput.from_ints([1, 2, 3])
    logprobs: list[float] = sampling.compute_logprobs(prompt).result(timeout=30)[1:]
    return logprobs


def test_alias_is_the_same_model_with_its_own_name(tmp_path: Path) -> None:
    """An alias is listed, trained, saved and sampled; later responses have the requested name."""
    with EmbeddedServer(folder=tmp_path, aliases={ALIAS: NANO}, seed=0) as server, _open_client(server) as service:
        assert {
            supported_model.model_name for supported_model in service.get_server_capabilities().supported_models
        } >= {ALIAS, NANO}
        base = service.create_sampling_client(base_model=ALIAS)
        assert base.result(timeout=30).get_base_model() == ALIAS
        assert _compute_logprobs(base) == _compute_logprobs(service.create_sampling_client(base_model=NANO))
        training = service.create_lora_training_client(ALIAS, rank=4)
        assert training.get_info().model_data.model_name == ALIAS
        state = training.save_state("state").result(timeout=30).path
        weights = training.save_weights_for_sampler("weights").result(timeout=30).path
        live = training.save_weights_and_get_sampling_client()
        assert _compute_logprobs(service.create_sampling_client(model_path=weights)) == _compute_logprobs(live)
        restored = service.create_training_client_from_state_with_optimizer(state)
        assert restored.get_info().model_data.model_name == ALIAS
    unknown = pytest.raises(tinkerwire.TinkerError, match=f"unknown base model '{ALIAS}'; choose one of {NANO}")
    with EmbeddedServer(folder=tmp_path) as server, _open_client(server) as service, unknown:
        service.create_training_client_from_state(state).result(timeout=30)


@pytest.mark.parametrize(
    ("alias", "text"),
    [
        ("org/model", "alias 'org/model' must have the form NAME=VALUE, such as org/model=tinkerwire/byte-nano"),
        ("org/model=other", "alias 'org/model': unknown model 'other'; choose one of tinkerwire/byte-nano"),
        (f"{NANO}=tinkerwire/byte-small", f"alias '{NANO}' of 'tinkerwire/byte-small': must not be empty"),
    ],
)
def test_invalid_alias_is_rejected(alias: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error comes before the server starts, with the remedy."""
    assert main(["serve", "--folder", str(tmp_path), "--port", "0", "--alias", alias]) == 2
    assert text in capsys.readouterr().err
