"""Steps that train a model."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.training import create_model, get_info

from ..subject.server import LORA_RANK, MODEL_SEED
from ..subject.training_model import TrainingModel, make_datum
from .official_client import OfficialClient
from .step import NotReached, Step, require

DESCRIBES_MODEL_SINCE = "0.38.0"
"""These versions request get_info for a new model."""


async def new_model(sdk: OfficialClient, rank: int = LORA_RANK) -> TrainingModel:
    """Create a model."""
    body = models.CreateModelRequest(
        session_id=sdk.session_id,
        model_seq_id=sdk.take_model_seq_id(),
        base_model=await sdk.server.base_model(),
        lora_config=models.LoraConfig(rank=rank, seed=MODEL_SEED),
    )
    created = await sdk.run(create_model(body=body))
    return await adopt_model(sdk, created.model_id)


async def adopt_model(sdk: OfficialClient, model_id: str) -> TrainingModel:
    """Return a model that the server has created, after the requests that the SDK sends about it."""
    sdk.server.adopt(model_id)
    if sdk.is_at_least(DESCRIBES_MODEL_SINCE):
        await sdk.call(get_info(body=models.GetInfoRequest(model_id=model_id)))
    return TrainingModel(sdk.client, model_id, sdk.server.saved_paths)


async def _create_model(sdk: OfficialClient) -> None:
    sdk.model = await new_model(sdk)


async def _describe_model(sdk: OfficialClient) -> None:
    await sdk.call(get_info(body=models.GetInfoRequest(model_id=require(sdk.model).id)))


async def _forward(sdk: OfficialClient) -> None:
    _check_batch(sdk, await sdk.run(require(sdk.model).forward_call([make_datum()])))


async def _forward_backward(sdk: OfficialClient) -> None:
    _check_batch(sdk, await sdk.run(require(sdk.model).forward_backward_call([make_datum()])))
    sdk.has_gradients = True


def _check_batch(sdk: OfficialClient, output: models.ForwardBackwardOutput) -> None:
    if len(output.loss_fn_outputs) != 1:
        raise sdk.violation("one output", f"{len(output.loss_fn_outputs)} outputs")
    if not all("logprobs" in item for item in output.loss_fn_outputs):
        raise sdk.violation("logprobs in every output", "an output without logprobs")
    # The SDK splits the name of each metric at its colon.
    unnamed = [name for name in output.metrics if name.count(":") != 1]
    if unnamed:
        raise sdk.violation("metrics named NAME:REDUCTION", f"a metric named {unnamed[0]}")


async def _optim_step(sdk: OfficialClient) -> None:
    if not sdk.has_gradients:
        raise NotReached
    await sdk.run(require(sdk.model).optim_step_call())


TRAIN_STEPS = (
    Step("create_lora_training_client", _create_model),
    Step("get_info", _describe_model),
    Step("forward", _forward),
    Step("forward_backward", _forward_backward),
    Step("optim_step", _optim_step),
)
