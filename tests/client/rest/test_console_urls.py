"""Pages of the console."""

from __future__ import annotations

from typing import Any

import pytest

import tinkerwire as tw
from support.scripted import PATIENCE_S
from tinkerwire import types
from tinkerwire_base import console_urls

pytestmark = pytest.mark.timeout(60)


def test_pages_of_session_and_run(client: tw.ServiceClient) -> None:
    """Each names what is there, and waits until it is."""
    assert client.create_lora_training_client("base").get_console_url() == f"{console_urls.CONSOLE}/training_runs/m1"
    assert client.get_console_url() == f"{console_urls.CONSOLE}/sessions/s1"


RUN = "tinker://s1:train:0/"


@pytest.mark.parametrize("kind", [types.SaveWeightsResponse, types.SaveWeightsForSamplerResponse])
def test_pages_of_saved_weights(kind: Any) -> None:
    """As the official SDK 0.38.0 gives them: all of an id is quoted."""
    saved = kind(path=f"{RUN}sampler_weights/ü&x y")
    page = f"{console_urls.CONSOLE}/checkpoints/s1%3Atrain%3A0/sampler_weights%2F%C3%BC%26x%20y"
    assert saved.get_console_url() == page
    with pytest.raises(ValueError, match="'plain' is not a checkpoint path"):
        kind(path="plain").get_console_url()


def test_playground() -> None:
    """Of what one can sample from."""
    saved = types.SaveWeightsForSamplerResponse(path=f"{RUN}sampler_weights/a b")
    query = "mode=checkpoint&checkpoint=tinker%3A%2F%2Fs1%3Atrain%3A0%2Fsampler_weights%2Fa%20b"
    assert saved.get_playground_url() == f"{console_urls.CONSOLE}/playground?{query}"


def test_pages_of_a_save(client: tw.ServiceClient) -> None:
    """What the clients give has them."""
    training = client.create_lora_training_client("base")
    saved = training.save_state("a").result(PATIENCE_S)
    assert saved.get_console_url().startswith(f"{console_urls.CONSOLE}/checkpoints/m1/weights")
    assert "sampler_weights" in training.save_weights_for_sampler("a").result(PATIENCE_S).get_playground_url()


def test_ids_stand_in_a_path() -> None:
    """Colons stay, slashes do not."""
    assert console_urls.run_page("s1:train:0/a b") == f"{console_urls.CONSOLE}/training_runs/s1:train:0%2Fa%20b"
