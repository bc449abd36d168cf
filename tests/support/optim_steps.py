"""Optimizer steps whose polls get scripted responses."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import ADAM
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order

NOT_READY = ScriptedResponse(status=408)
DONE = ScriptedResponse({"metrics": {"x:mean": 1.0}})


def step_metrics(
    server: ScriptedServer, training: tw.TrainingClient, *responses: ScriptedResponse
) -> dict[str, float] | None:
    """Return the metrics of an optimizer step whose polls get these responses."""
    server.on_poll("OptimStep", in_order(*responses))
    return training.optim_step(ADAM).result(PATIENCE_S).metrics


def step_error(server: ScriptedServer, training: tw.TrainingClient, *responses: ScriptedResponse) -> tw.TinkerError:
    """Return the error of an optimizer step whose polls get these responses."""
    with pytest.raises(tw.TinkerError) as caught:
        step_metrics(server, training, *responses)
    return caught.value
