"""Optimizer steps whose polls get scripted responses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tinkerwire as tw
from support.clients import ADAM, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order

NOT_READY = ScriptedResponse(status=408)
OPTIM_STEP_RESULT = ScriptedResponse({"metrics": {"x:mean": 1.0}})


def step_metrics(
    server: ScriptedServer, training: tw.TrainingClient, *responses: ScriptedResponse
) -> dict[str, float] | None:
    """Return the metrics of an optimizer step whose polls get these responses."""
    server.on_poll("OptimStep", in_order(*responses))
    return training.optim_step(ADAM).result(TEST_TIMEOUT_S).metrics


def step_error(server: ScriptedServer, training: tw.TrainingClient, *responses: ScriptedResponse) -> tw.TinkerError:
    """Return the error of an optimizer step whose polls get these responses."""
    with pytest.raises(tw.TinkerError) as caught:
        step_metrics(server, training, *responses)
    return caught.value


def make_expired_step_error(
    server: ScriptedServer, response: ScriptedResponse, pass_time: Callable[[float], None]
) -> tw.RequestTimeoutError:
    """Return the error of an optimizer step whose deadline of 50 s passes while its first poll gets a response."""
    server.on_poll("OptimStep", lambda _: response)
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError) as caught:
            step.result(TEST_TIMEOUT_S)
    return caught.value
