"""URLs of the web console."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.scripted import TEST_TIMEOUT_S
from tinkerwire import types
from tinkerwire_base import console_urls

pytestmark = pytest.mark.timeout(60)


def test_console_url_waits_for_session_and_run(client: tw.ServiceClient) -> None:
    """get_console_url waits for the run or session, and returns its page."""
    assert client.create_lora_training_client("base").get_console_url() == f"{console_urls.CONSOLE}/training_runs/m1"
    assert client.get_console_url() == f"{console_urls.CONSOLE}/sessions/s1"


RUN = "tinker://s1:train:0/"


@pytest.mark.parametrize("response_class", [types.SaveWeightsResponse, types.SaveWeightsForSamplerResponse])
def test_url_of_saved_weights_quotes_the_id(
    response_class: type[types.SaveWeightsResponse | types.SaveWeightsForSamplerResponse],
) -> None:
    """As in the official SDK 0.38.0, every character of an id is quoted."""
    saved = response_class(path=f"{RUN}sampler_weights/ü&x y")
    page = f"{console_urls.CONSOLE}/checkpoints/s1%3Atrain%3A0/sampler_weights%2F%C3%BC%26x%20y"
    assert saved.get_console_url() == page
    with pytest.raises(ValueError, match=r"checkpoint path: expected .*, got 'plain'"):
        response_class(path="plain").get_console_url()


def test_url_of_the_playground_names_the_checkpoint() -> None:
    """The URL of the playground names the checkpoint."""
    saved = types.SaveWeightsForSamplerResponse(path=f"{RUN}sampler_weights/a b")
    query = "mode=checkpoint&checkpoint=tinker%3A%2F%2Fs1%3Atrain%3A0%2Fsampler_weights%2Fa%20b"
    assert saved.get_playground_url() == f"{console_urls.CONSOLE}/playground?{query}"


def test_save_responses_have_urls(client: tw.ServiceClient) -> None:
    """Responses of save methods have URLs."""
    training = client.create_lora_training_client("base")
    saved = training.save_state("a").result(TEST_TIMEOUT_S)
    assert saved.get_console_url().startswith(f"{console_urls.CONSOLE}/checkpoints/m1/weights")
    assert "sampler_weights" in training.save_weights_for_sampler("a").result(TEST_TIMEOUT_S).get_playground_url()


def test_run_page_quotes_slashes() -> None:
    """The page of a run quotes slashes, but not colons."""
    assert console_urls.run_page("s1:train:0/a b") == f"{console_urls.CONSOLE}/training_runs/s1:train:0%2Fa%20b"
