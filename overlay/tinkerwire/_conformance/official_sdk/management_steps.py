"""Steps that list runs, checkpoints and sessions, and change checkpoints."""

from __future__ import annotations

from contextlib import suppress

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import (
    delete_checkpoint,
    get_checkpoint_archive_url,
    get_training_run,
    list_checkpoints,
    list_model_checkpoints,
    list_training_runs,
    list_user_checkpoints,
    publish_checkpoint,
    set_checkpoint_ttl,
    unpublish_checkpoint,
)
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.api.session import finish_session, get_session, list_sessions
from tinkerwire_generated.api.weights import weights_info

from ..violation import Violation
from .official_client import OfficialClient
from .saving_steps import save_state, split_checkpoint_path
from .step import Step, require

STATE_TTL_S = 3600
ARCHIVE_STATUS = 302


async def _checkpoint(sdk: OfficialClient) -> tuple[str, str]:
    """Return run and checkpoint of a saved state."""
    if not sdk.state_path and not sdk.has_tried_to_save:
        # A failure is one of another feature.
        with suppress(Violation):
            await save_state(sdk)
    return split_checkpoint_path(sdk, require(sdk.state_path))


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
        raise sdk.violation("the saved weights in the list", "a list without them")


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
    require(sdk.sampler_path)
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
    sdk.server.sessions.let_go(sdk.session_id)


MANAGE_STEPS = (
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
)
