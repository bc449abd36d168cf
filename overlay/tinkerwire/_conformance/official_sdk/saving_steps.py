"""Steps that save weights, load them and sample from them."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_external_weights_urls, get_training_run
from tinkerwire_generated.api.weights import load_weights, save_weights_external, weights_info
from tinkerwire_generated.constants import TINKER_SCHEME

from .official_client import Failure, OfficialClient
from .sampling_steps import open_sampler, sample
from .step import Step, require
from .training_steps import adopt_model, new_model

UNKNOWN_STATE = f"{TINKER_SCHEME}no-such-model/weights/no-such-state"
REQUIRES_NO_PATH_UNTIL = "0.20.0"
"""Older versions raise an error if a save without a name returns a path."""


async def save_state(sdk: OfficialClient) -> None:
    """Create a model and save its state."""
    sdk.has_tried_to_save = True
    sdk.model = await new_model(sdk)
    saved = await sdk.run(sdk.model.save_weights_call(sdk.server.new_name()))
    sdk.server.saved_paths.append(saved.path)
    sdk.state_path = saved.path


async def _load_state(sdk: OfficialClient) -> None:
    await sdk.run(require(sdk.model).load_weights_call(require(sdk.state_path)))


async def _save_for_sampler(sdk: OfficialClient) -> None:
    model = require(sdk.model)
    sdk.sampler_name = sdk.server.new_name()
    saved = await sdk.run(model.save_for_sampler_call(sdk.sampler_name))
    if saved.path is None:
        raise sdk.violation("the path of the saved weights", "none")
    sdk.server.saved_paths.append(saved.path)
    sdk.sampler_path = saved.path


async def _sample_saved_weights(sdk: OfficialClient) -> None:
    require(sdk.sampler_path)
    await sample(sdk, await open_sampler(sdk, sdk.sampler_path))


async def _save_and_sample(sdk: OfficialClient) -> None:
    model = require(sdk.model)
    saved = await sdk.run(model.save_for_sampler_call(None, sampling_session_seq_id=sdk.take_sampler_seq_id()))
    if saved.sampling_session_id is None:
        raise sdk.violation("a sampling_session_id", "none")
    if saved.path is not None and not sdk.is_at_least(REQUIRES_NO_PATH_UNTIL):
        raise sdk.violation("no path", f"the path {saved.path}")
    await sample(sdk, saved.sampling_session_id)


async def _model_from_state(sdk: OfficialClient) -> None:
    path = require(sdk.state_path)
    if sdk.client.dialect.creates_model_on_load:
        number = sdk.take_model_seq_id()
        body = models.LoadWeightsRequest(session_id=sdk.session_id, model_seq_id=number, path=path, optimizer=False)
        await sdk.run(load_weights(body=body))
        await adopt_model(sdk, f"{sdk.session_id}:train:{number}")
        return
    if sdk.has("weights_info"):
        info = await sdk.call(weights_info(body=models.WeightsInfoRequest(tinker_path=path)))
        rank = info.lora_rank
        if not info.is_lora:
            raise sdk.violation("is_lora true", "false")
    else:
        rank = (await sdk.call(get_training_run(split_checkpoint_path(sdk, path)[0]))).lora_rank
    if rank is None:
        raise sdk.violation("a lora_rank", "none")
    model = await new_model(sdk, rank)
    await sdk.run(model.load_weights_call(path))


async def _save_external(sdk: OfficialClient) -> None:
    model = require(sdk.model)
    body = models.SaveWeightsExternalRequest(model_id=model.id, path=sdk.server.new_name(), seq_id=model.take_seq_id())
    saved = await sdk.run(save_weights_external(body=body))
    if saved.path is None:
        raise sdk.violation("the path of the saved weights", "none")
    sdk.server.saved_paths.append(saved.path)
    await sdk.call(get_external_weights_urls(*split_checkpoint_path(sdk, saved.path)))


async def _fail_to_load(sdk: OfficialClient) -> None:
    exchange = await sdk.send(require(sdk.model).load_weights_call(UNKNOWN_STATE))
    if exchange.is_client_error:
        return
    future = sdk.read_future("load_weights", exchange)
    value, exchange = await sdk.wait(future.request_id, "LoadWeightsResponse")
    if not isinstance(value, Failure):
        raise sdk.violation("an error for an unknown path", "success", exchange)


def split_checkpoint_path(sdk: OfficialClient, path: str) -> tuple[str, str]:
    """Return run and checkpoint of a path, by the rule of the SDK."""
    parts = path.removeprefix(TINKER_SCHEME).split("/")
    if not path.startswith(TINKER_SCHEME) or len(parts) != 3:
        raise sdk.violation("a path tinker://RUN/KIND/NAME", path)
    return parts[0], f"{parts[1]}/{parts[2]}"


SAVE_STEPS = (
    Step("save_state", save_state),
    Step("save_weights_for_sampler", _save_for_sampler),
    Step("create_sampling_client with a path", _sample_saved_weights),
    Step("save_weights_and_get_sampling_client", _save_and_sample),
    Step("load_state", _load_state),
    Step("create_training_client_from_state", _model_from_state),
    Step("save_weights_external", _save_external, since="0.28.1"),
    Step("load_state of an unknown path", _fail_to_load),
)
