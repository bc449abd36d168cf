"""Steps of programs with the official SDK, as the requests that one of its releases sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import attrs

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_futures
from tinkerwire_generated.api.runs import (
    delete_checkpoint,
    get_checkpoint_archive_url,
    get_external_weights_urls,
    get_training_run,
    list_checkpoints,
    list_model_checkpoints,
    list_training_runs,
    list_user_checkpoints,
    publish_checkpoint,
    set_checkpoint_ttl,
    unpublish_checkpoint,
)
from tinkerwire_generated.api.sampling import asample, create_sampling_session, get_sampler
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.api.session import finish_session, get_session, list_sessions
from tinkerwire_generated.api.training import create_model, get_info
from tinkerwire_generated.api.weights import (
    load_weights,
    save_weights,
    save_weights_external,
    save_weights_for_sampler,
    weights_info,
)
from tinkerwire_generated.constants import TINKER_SCHEME

from ..exchange import Exchange
from ..requirement import Feature
from ..subject.server import LORA_RANK, MODEL_SEED
from ..subject.training_model import TOKENS, TrainingModel, make_datum
from ..violation import Violation
from .official_client import SEQUENCE_IDS_SINCE, Failure, OfficialClient

SHORT_PROMPT_LOGPROBS = "one value too few"
UNKNOWN_STATE = f"{TINKER_SCHEME}no-such-model/weights/no-such-state"
STATE_TTL_S = 3600
DESCRIBES_AT_CREATION_SINCE = "0.38.0"
"""These versions request get_info for a new model, and get_sampler for a sampler of saved weights."""
REQUIRES_NO_PATH_UNTIL = "0.20.0"
"""Older versions raise an error if a save without a name returns a path."""
ARCHIVE_STATUS = 302


class NotReached(Exception):
    """An earlier step failed, whose result this one needs."""


@attrs.frozen
class Step:
    """One thing that programs do.

    Args:
        name: name of the method, or a few words.
        run: sends the requests; raises Violation where the SDK raises an error.
        since: first version of the SDK that can do it.
        until: first version that can no longer do it; None for none.
    """

    name: str
    run: Callable[[OfficialClient], Awaitable[None]]
    since: str = "0.3.0"
    until: str | None = None

    def applies_to(self, version: str) -> bool:
        """Check whether a version of the SDK can do it."""
        parsed = parse_version(version)
        return parse_version(self.since) <= parsed and (self.until is None or parsed < parse_version(self.until))


async def run_steps(sdk: OfficialClient, steps: Sequence[Step]) -> None:
    """Do all steps, and raise one Violation with those that failed."""
    failed: list[tuple[Step, Violation]] = []
    for step in steps:
        if not step.applies_to(sdk.version):
            continue
        try:
            await step.run(sdk)
        except Violation as error:
            failed.append((step, error))
        except NotReached:
            continue
    if failed:
        parts = [(step.name, str(error)) for step, error in failed]
        received = "; ".join(f"{step.name} fails: {error.received}" for step, error in failed)
        raise Violation(failed[0][1].expected, received, failed[0][1].exchange, parts)


# --- training ---------------------------------------------------------------------------------------------------------


async def _new_model(sdk: OfficialClient, rank: int = LORA_RANK) -> TrainingModel:
    body = models.CreateModelRequest(
        session_id=sdk.session_id,
        model_seq_id=sdk.take_model_seq_id(),
        base_model=await sdk.server.base_model(),
        lora_config=models.LoraConfig(rank=rank, seed=MODEL_SEED),
    )
    created = await sdk.run(create_model(body=body))
    return await _adopt(sdk, created.model_id)


async def _adopt(sdk: OfficialClient, model_id: str) -> TrainingModel:
    sdk.server.adopt(model_id)
    if sdk.is_at_least(DESCRIBES_AT_CREATION_SINCE):
        await sdk.call(get_info(body=models.GetInfoRequest(model_id=model_id)))
    return TrainingModel(sdk.client, model_id, sdk.server.saved_paths)


async def _create_model(sdk: OfficialClient) -> None:
    sdk.model = await _new_model(sdk)


def _model(sdk: OfficialClient) -> TrainingModel:
    if sdk.model is None:
        raise NotReached
    return sdk.model


async def _describe_model(sdk: OfficialClient) -> None:
    await sdk.call(get_info(body=models.GetInfoRequest(model_id=_model(sdk).id)))


async def _forward(sdk: OfficialClient) -> None:
    _check_batch(sdk, await sdk.run(_model(sdk).forward_call([make_datum()])))


async def _forward_backward(sdk: OfficialClient) -> None:
    _check_batch(sdk, await sdk.run(_model(sdk).forward_backward_call([make_datum()])))
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
    await sdk.run(_model(sdk).optim_step_call())


# --- sampling ---------------------------------------------------------------------------------------------------------


async def _open_sampler(sdk: OfficialClient, model_path: str | None = None) -> str:
    body = models.CreateSamplingSessionRequest(
        session_id=sdk.session_id,
        sampling_session_seq_id=sdk.take_sampler_seq_id(),
        base_model=None if model_path else await sdk.server.base_model(),
        model_path=model_path,
    )
    created = await sdk.call(create_sampling_session(body=body))
    if model_path and sdk.is_at_least(DESCRIBES_AT_CREATION_SINCE):
        await sdk.call(get_sampler(created.sampling_session_id))
    return created.sampling_session_id


async def _open_base_sampler(sdk: OfficialClient) -> None:
    sdk.sampler_id = await _open_sampler(sdk)


def _sampler_id(sdk: OfficialClient) -> str:
    if not sdk.sampler_id:
        raise NotReached
    return sdk.sampler_id


async def _sample(
    sdk: OfficialClient, sampler_id: str, *, prompt_logprobs: bool = False, topk: int = 0
) -> models.SampleResponse:
    body = models.SampleRequest(
        prompt=models.ModelInput.from_ints(list(TOKENS)),
        sampling_params=models.SamplingParams(max_tokens=4, seed=1),
        num_samples=1,
        sampling_session_id=sampler_id,
        seq_id=sdk.take_sample_seq_id(sampler_id),
        prompt_logprobs=prompt_logprobs,
        topk_prompt_logprobs=topk,
        record_stability_info=False if sdk.knows("SampleRequest", "record_stability_info") else None,
    )
    future = await sdk.submit(asample(body=body))
    if sdk.is_at_least(SEQUENCE_IDS_SINCE) and len(future.sample_sequence_ids or ()) != 1:
        raise sdk.violation("one of sample_sequence_ids in the response to asample", "none", _last(sdk))
    if sdk.client.dialect.config.sample_use_retrieve_futures and sdk.has("retrieve_futures"):
        await _poll_for_all(sdk, sampler_id)
    value, exchange = await sdk.wait(future.request_id, "SampleResponse")
    if isinstance(value, Failure):
        raise sdk.violation("a sample", f"the error {value.text}", exchange)
    if len(value.sequences) != 1:
        raise sdk.violation("one sequence", f"{len(value.sequences)} sequences", exchange)
    response: models.SampleResponse = value
    return response


def _last(sdk: OfficialClient) -> Exchange | None:
    return sdk.client.recent[-1] if sdk.client.recent else None


async def _poll_for_all(sdk: OfficialClient, sampler_id: str) -> None:
    target = models.SamplingSessionFuturesTarget(sampling_session_id=sampler_id)
    await sdk.call(retrieve_futures(body=models.FuturesRetrieveRequest(target=target, timeout=1.0)))


async def _sample_once(sdk: OfficialClient) -> None:
    await _sample(sdk, _sampler_id(sdk))


async def _compute_logprobs(sdk: OfficialClient) -> None:
    response = await _sample(sdk, _sampler_id(sdk), prompt_logprobs=True)
    logprobs = response.prompt_logprobs
    if logprobs is None:
        raise sdk.violation(f"{len(TOKENS)} prompt_logprobs", "none", _last(sdk))
    missing = len(TOKENS) - len(logprobs)
    if missing:
        received = SHORT_PROMPT_LOGPROBS if missing == 1 else f"{len(logprobs)} values"
        raise sdk.violation(f"{len(TOKENS)} prompt_logprobs", received, _last(sdk))


async def _topk_prompt_logprobs(sdk: OfficialClient) -> None:
    response = await _sample(sdk, _sampler_id(sdk), prompt_logprobs=True, topk=2)
    if response.topk_prompt_logprobs is None:
        raise sdk.violation("topk_prompt_logprobs", "none", _last(sdk))


async def _describe_sampler(sdk: OfficialClient) -> None:
    await sdk.call(get_sampler(_sampler_id(sdk)))


# --- saved weights ----------------------------------------------------------------------------------------------------


async def _save_state(sdk: OfficialClient) -> None:
    sdk.has_tried_to_save = True
    sdk.model = await _new_model(sdk)
    name = sdk.server.new_name()
    body = models.SaveWeightsRequest(model_id=sdk.model.id, path=name, seq_id=sdk.model.take_seq_id())
    saved = await sdk.run(save_weights(body=body))
    sdk.server.saved_paths.append(saved.path)
    sdk.state_path = saved.path


def _state_path(sdk: OfficialClient) -> str:
    if not sdk.state_path:
        raise NotReached
    return sdk.state_path


async def _load(sdk: OfficialClient, model: TrainingModel, path: str) -> None:
    optimizer = False if sdk.knows("LoadWeightsRequest", "optimizer") else None
    body = models.LoadWeightsRequest(model_id=model.id, path=path, seq_id=model.take_seq_id(), optimizer=optimizer)
    await sdk.run(load_weights(body=body))


async def _load_state(sdk: OfficialClient) -> None:
    await _load(sdk, _model(sdk), _state_path(sdk))


async def _save_for_sampler(sdk: OfficialClient) -> None:
    model = _model(sdk)
    sdk.sampler_name = sdk.server.new_name()
    body = models.SaveWeightsForSamplerRequest(model_id=model.id, path=sdk.sampler_name, seq_id=model.take_seq_id())
    saved = await sdk.run(save_weights_for_sampler(body=body))
    if saved.path is None:
        raise sdk.violation("the path of the saved weights", "none", _last(sdk))
    sdk.server.saved_paths.append(saved.path)
    sdk.sampler_path = saved.path


async def _sample_saved_weights(sdk: OfficialClient) -> None:
    if not sdk.sampler_path:
        raise NotReached
    await _sample(sdk, await _open_sampler(sdk, sdk.sampler_path))


async def _save_and_sample(sdk: OfficialClient) -> None:
    model = _model(sdk)
    body = models.SaveWeightsForSamplerRequest(
        model_id=model.id, sampling_session_seq_id=sdk.take_sampler_seq_id(), seq_id=model.take_seq_id()
    )
    saved = await sdk.run(save_weights_for_sampler(body=body))
    if saved.sampling_session_id is None:
        raise sdk.violation("a sampling_session_id", "none", _last(sdk))
    if saved.path is not None and not sdk.is_at_least(REQUIRES_NO_PATH_UNTIL):
        raise sdk.violation("no path", f"the path {saved.path}", _last(sdk))
    await _sample(sdk, saved.sampling_session_id)


async def _model_from_state(sdk: OfficialClient) -> None:
    path = _state_path(sdk)
    if sdk.client.dialect.creates_model_on_load:
        number = sdk.take_model_seq_id()
        body = models.LoadWeightsRequest(session_id=sdk.session_id, model_seq_id=number, path=path, optimizer=False)
        await sdk.run(load_weights(body=body))
        await _adopt(sdk, f"{sdk.session_id}:train:{number}")
        return
    if sdk.has("weights_info"):
        info = await sdk.call(weights_info(body=models.WeightsInfoRequest(tinker_path=path)))
        rank = info.lora_rank
        if not info.is_lora:
            raise sdk.violation("is_lora true", "false", _last(sdk))
    else:
        rank = (await sdk.call(get_training_run(_parse(sdk, path)[0]))).lora_rank
    if rank is None:
        raise sdk.violation("a lora_rank", "none", _last(sdk))
    await _load(sdk, await _new_model(sdk, rank), path)


async def _save_external(sdk: OfficialClient) -> None:
    model = _model(sdk)
    body = models.SaveWeightsExternalRequest(model_id=model.id, path=sdk.server.new_name(), seq_id=model.take_seq_id())
    saved = await sdk.run(save_weights_external(body=body))
    if saved.path is None:
        raise sdk.violation("the path of the saved weights", "none", _last(sdk))
    sdk.server.saved_paths.append(saved.path)
    await sdk.call(get_external_weights_urls(*_parse(sdk, saved.path)))


async def _fail_to_load(sdk: OfficialClient) -> None:
    model = _model(sdk)
    optimizer = False if sdk.knows("LoadWeightsRequest", "optimizer") else None
    body = models.LoadWeightsRequest(
        model_id=model.id, path=UNKNOWN_STATE, seq_id=model.take_seq_id(), optimizer=optimizer
    )
    exchange = await sdk.send(load_weights(body=body))
    if exchange.is_client_error:
        return
    if exchange.status != 200:
        raise sdk.violation("an error for an unknown path", exchange.describe(), exchange)
    future = sdk.client.structure(exchange.json(), models.UntypedAPIFuture)
    value, exchange = await sdk.wait(future.request_id, "LoadWeightsResponse")
    if not isinstance(value, Failure):
        raise sdk.violation("an error for an unknown path", "success", exchange)


# --- lists and changes ------------------------------------------------------------------------------------------------


def _parse(sdk: OfficialClient, path: str) -> tuple[str, str]:
    """Return run and checkpoint of a path, by the rule of the SDK."""
    parts = path.removeprefix(TINKER_SCHEME).split("/")
    if not path.startswith(TINKER_SCHEME) or len(parts) != 3:
        raise sdk.violation("a path tinker://RUN/KIND/NAME", path)
    return parts[0], f"{parts[1]}/{parts[2]}"


async def _checkpoint(sdk: OfficialClient) -> tuple[str, str]:
    """Return run and checkpoint of a saved state."""
    if not sdk.state_path and not sdk.has_tried_to_save:
        # A failure is one of another feature.
        with suppress(Violation):
            await _save_state(sdk)
    return _parse(sdk, _state_path(sdk))


async def _capabilities(sdk: OfficialClient) -> None:
    await sdk.call(get_server_capabilities())


async def _list_runs(sdk: OfficialClient) -> None:
    await sdk.call(list_training_runs(limit=20, offset=0))


async def _describe_run(sdk: OfficialClient) -> None:
    await sdk.call(get_training_run((await _checkpoint(sdk))[0]))


async def _list_checkpoints(sdk: OfficialClient) -> None:
    run, _ = await _checkpoint(sdk)
    calls = list_checkpoints(run) if sdk.has("list_checkpoints") else list_model_checkpoints(run)
    listed = await sdk.call(calls)
    if sdk.state_path not in [checkpoint.tinker_path for checkpoint in listed.checkpoints]:
        raise sdk.violation("the saved weights in the list", "a list without them", _last(sdk))


async def _list_all_checkpoints(sdk: OfficialClient) -> None:
    await sdk.call(list_user_checkpoints(limit=100, offset=0))


async def _describe_weights(sdk: OfficialClient) -> None:
    await _checkpoint(sdk)
    await sdk.call(weights_info(body=models.WeightsInfoRequest(tinker_path=sdk.state_path)))


async def _list_sessions(sdk: OfficialClient) -> None:
    await sdk.call(list_sessions(limit=20, offset=0))


async def _describe_session(sdk: OfficialClient) -> None:
    await sdk.call(get_session(sdk.session_id))


async def _set_ttl(sdk: OfficialClient) -> None:
    run, checkpoint = await _checkpoint(sdk)
    for ttl in (STATE_TTL_S, None):
        await sdk.call(set_checkpoint_ttl(run, checkpoint, body=models.SetCheckpointTtlRequest(ttl_seconds=ttl)))


async def _publish(sdk: OfficialClient) -> None:
    await sdk.call(publish_checkpoint(*await _checkpoint(sdk)))


async def _unpublish(sdk: OfficialClient) -> None:
    await sdk.call(unpublish_checkpoint(*await _checkpoint(sdk)))


async def _archive(sdk: OfficialClient) -> None:
    if not sdk.sampler_path:
        raise NotReached
    run, _ = await _checkpoint(sdk)
    exchange = await sdk.send(get_checkpoint_archive_url(run, f"sampler_weights/{sdk.sampler_name}"))
    if exchange.status != ARCHIVE_STATUS or exchange.response is None:
        raise sdk.violation("a redirect to the archive", exchange.describe(), exchange)
    if "location" not in exchange.response.headers:
        raise sdk.violation("a Location", "none", exchange)


async def _delete(sdk: OfficialClient) -> None:
    await sdk.call(delete_checkpoint(*await _checkpoint(sdk)))


async def _close(sdk: OfficialClient) -> None:
    reason = models.SessionFinishReason(type="success")
    body = models.FinishSessionRequest(reason=reason, detail=None)
    await sdk.call(finish_session(sdk.session_id, body=body))


STEPS: dict[Feature, tuple[Step, ...]] = {
    Feature.TRAIN: (
        Step("create_lora_training_client", _create_model),
        Step("get_info", _describe_model),
        Step("forward", _forward),
        Step("forward_backward", _forward_backward),
        Step("optim_step", _optim_step),
    ),
    Feature.SAMPLE: (
        Step("create_sampling_client", _open_base_sampler),
        Step("sample", _sample_once),
        Step("compute_logprobs", _compute_logprobs),
        Step("sample with topk_prompt_logprobs", _topk_prompt_logprobs),
        Step("get_tokenizer and get_base_model", _describe_sampler, since="0.9.0"),
    ),
    Feature.SAVE: (
        Step("save_state", _save_state),
        Step("save_weights_for_sampler", _save_for_sampler),
        Step("create_sampling_client with a path", _sample_saved_weights),
        Step("save_weights_and_get_sampling_client", _save_and_sample),
        Step("load_state", _load_state),
        Step("create_training_client_from_state", _model_from_state),
        Step("save_weights_external", _save_external, since="0.28.1"),
        Step("load_state of an unknown path", _fail_to_load),
    ),
    Feature.MANAGE: (
        Step("get_server_capabilities", _capabilities),
        Step("list_training_runs", _list_runs),
        Step("get_training_run", _describe_run),
        Step("list_checkpoints", _list_checkpoints),
        Step("list_user_checkpoints", _list_all_checkpoints, since="0.4.0"),
        Step("get_weights_info_by_tinker_path", _describe_weights, since="0.6.0"),
        Step("list_sessions", _list_sessions, since="0.5.1"),
        Step("get_session", _describe_session, since="0.5.1"),
        Step("get_checkpoint_archive_url", _archive, until="0.36.0"),
        Step("set_checkpoint_ttl", _set_ttl, since="0.13.1"),
        Step("publish_checkpoint", _publish, since="0.4.0"),
        Step("unpublish_checkpoint", _unpublish, since="0.4.0"),
        Step("delete_checkpoint", _delete),
        Step("close", _close, since="0.27.2"),
    ),
}
"""Steps of programs by feature, in the order of the test."""
