"""Requirements on the service: health, models, client config, and the optional operations it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.api.auth import client_config, client_dynamic_config
from tinkerwire_generated.api.service import get_server_capabilities, healthz

from ..._wire.dialect import CONFIG_SINCE
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..violation import NotApplicable, Violation, expect

AREA = Area("SRV", "service", "The service: health, models, client config and optional operations")
CANNOT_READ_CONFIG = Breakage("0.18.2", None, Feature.CONNECT, "raises an error when a client is created")
FLAG_OPERATIONS = {
    "pjwt_auth_enabled": "auth_token",
    "sample_use_retrieve_futures": "retrieve_futures",
    "sample_join_sampling_session": "join_sampling_session",
    "custom_loss_server_side": "create_custom_loss",
}
"""Flags that make clients use an operation."""
LIMITS = (
    "sample_dispatch_bytes_semaphore_size",
    "inflight_response_bytes_semaphore_size",
    "sample_max_concurrent_requests",
    "fwdbwd_max_chunk_len",
    "fwdbwd_max_chunk_bytes_count",
    "fwdbwd_dispatch_bytes_semaphore_size",
)
"""Flags that limit what a client sends at the same time; with 0 it would send nothing."""


@AREA.should(
    1,
    contract=("healthz 200", "HealthResponse.status"),
    remedy='Answer GET /api/v1/healthz with status 200 and {"status": "ok"}.',
)
async def server_is_healthy(server: Server) -> None:
    """The server reports that it is up."""
    await server.client.call(healthz())


@AREA.must(
    2,
    contract=("get_server_capabilities 200", "GetServerCapabilitiesResponse.supported_models"),
    remedy="List at least one base model with its model_name in supported_models of get_server_capabilities.",
)
async def models_are_listed(server: Server) -> None:
    """The server lists at least one base model by name."""
    found, exchange = await server.client.call(get_server_capabilities())
    expect(any(model.model_name for model in found.supported_models), "the name of a model", "none", exchange)


@AREA.should(
    3,
    contract="SupportedModel.model_name",
    remedy="Give each entry of supported_models a model_name of its own.",
    needs=("SRV-002",),
)
async def listed_models_have_names(server: Server) -> None:
    """Every listed base model has a name, and no two have the same."""
    found, exchange = await server.client.call(get_server_capabilities())
    names = [model.model_name for model in found.supported_models]
    expect(all(names) and len(set(names)) == len(names), "a different name for each model", names, exchange)


@AREA.should(
    4,
    since=CONFIG_SINCE,
    contract="SupportedModel.max_context_length",
    remedy="Return max_context_length of each model, a number of tokens that is greater than 0.",
    needs=("SRV-002",),
)
async def context_length_is_listed(server: Server) -> None:
    """Every listed base model has a positive max_context_length."""
    found, exchange = await server.client.call(get_server_capabilities())
    lengths = [model.max_context_length for model in found.supported_models]
    expect(all(length is not None and length > 0 for length in lengths), "positive lengths", lengths, exchange)


@AREA.may(
    5,
    since="0.26.2",
    contract=("SupportedModel.trainable", "SupportedModel.sampleable"),
    remedy="Return trainable and sampleable of each model.",
    needs=("SRV-002",),
)
async def uses_of_models_are_listed(server: Server) -> None:
    """Every listed base model has the fields trainable and sampleable."""
    found, exchange = await server.client.call(get_server_capabilities())
    known = all(None not in (model.trainable, model.sampleable) for model in found.supported_models)
    expect(known, "trainable and sampleable of each model", "none", exchange)


# --- client config ----------------------------------------------------------------------------------------------------


@AREA.must(
    6,
    since=CONFIG_SINCE,
    contract=("client_config 200", "ClientConfigResponse"),
    remedy="Answer POST /api/v1/client/config with status 200 and a JSON object, at least {}.",
    breaks=[CANNOT_READ_CONFIG],
)
async def client_config_is_available(server: Server) -> None:
    """The server returns a client config whose flags have the types of the contract."""
    await server.client.call(_config_call(server))


@AREA.must(
    7,
    since=CONFIG_SINCE,
    contract="client_config",
    remedy="Return a limit above 0 for each flag that limits what clients send at the same time.",
    needs=("SRV-006",),
)
async def limits_are_positive(server: Server) -> None:
    """All limits in the client config are greater than 0."""
    config, exchange = await server.client.call(_config_call(server))
    wrong = {name: getattr(config, name) for name in LIMITS if getattr(config, name) <= 0}
    expect(not wrong, "limits above 0", wrong, exchange)


@AREA.should(
    8,
    since=CONFIG_SINCE,
    contract="client_config",
    remedy="Return the same client config to all clients of one version; clients read it once.",
    needs=("SRV-006",),
)
async def client_config_is_constant(server: Server) -> None:
    """The client config is the same for each request."""
    first, _ = await server.client.call(_config_call(server))
    second, exchange = await server.client.call(_config_call(server))
    expect(first == second, "the same client config", second, exchange)


@AREA.must(
    9,
    since=CONFIG_SINCE,
    contract="ClientConfigResponse",
    remedy="Set flags only for operations that the server has: clients use those operations without a check.",
    needs=("SRV-006",),
)
async def flags_name_existing_operations(server: Server) -> None:
    """The server has each operation that a flag of its client config makes clients use."""
    config, exchange = await server.client.call(_config_call(server))
    for flag, operation in FLAG_OPERATIONS.items():
        if server.contract.has_field("ClientConfigResponse", flag) and getattr(config, flag):
            expect(operation not in server.missing, f"{operation}, as {flag} is set", "no such operation", exchange)


@AREA.must(
    10,
    since=CONFIG_SINCE,
    contract="ClientConfigRequest.sdk_version",
    remedy="Answer client/config endlesslyy sdk_version, also for versions that the server does not know.",
    needs=("SRV-006",),
    breaks=[CANNOT_READ_CONFIG],
)
async def config_is_for_every_version(server: Server) -> None:
    """The client config is returned to clients of a version that the server does not know, too."""
    await server.client.call(client_config(body=models.ClientConfigRequest(sdk_version="99.0.0")))


@AREA.should(
    11,
    since="0.25.0",
    contract=("client_dynamic_config 200", "ClientDynamicConfigResponse.refresh_interval_sec"),
    remedy="Answer POST /api/v1/client/dynamic_config with status 200 and a positive refresh_interval_sec.",
    operations=("client_dynamic_config",),
)
async def dynamic_config_is_valid(server: Server) -> None:
    """The dynamic config has flags of the types of the contract, and a positive interval."""
    body = models.ClientConfigRequest(sdk_version=server.wire)
    config, exchange = await server.client.call(client_dynamic_config(body=body))
    expect(config.refresh_interval_sec > 0, "refresh_interval_sec above 0", config.refresh_interval_sec, exchange)


# --- optional operations ----------------------------------------------------------------------------------------------


@AREA.should(
    20,
    contract=("list_training_runs", "get_training_run"),
    remedy="Add list_training_runs and get_training_run, so that users find their runs.",
)
async def has_runs(server: Server) -> None:
    """The server lists training runs."""
    _require_existing(server, "list_training_runs", "get_training_run")


@AREA.should(
    21,
    since="0.4.0",
    contract=("list_checkpoints", "list_user_checkpoints"),
    remedy="Add list_checkpoints and list_user_checkpoints, so that users find their checkpoints.",
    breaks=[Breakage("0.4.0", None, Feature.MANAGE, "raises an error when checkpoints are listed")],
)
async def has_checkpoint_listing(server: Server) -> None:
    """The server lists checkpoints, of one run and of all runs."""
    _require_existing(server, "list_checkpoints", "list_user_checkpoints")


@AREA.should(
    22,
    contract="delete_checkpoint",
    remedy="Add delete_checkpoint, so that users can free storage.",
    breaks=[Breakage("0.3.0", None, Feature.MANAGE, "raises an error when a checkpoint is deleted")],
)
async def has_checkpoint_deletion(server: Server) -> None:
    """The server deletes checkpoints."""
    _require_existing(server, "delete_checkpoint")


@AREA.may(
    23,
    since="0.4.0",
    contract=("publish_checkpoint", "unpublish_checkpoint"),
    remedy="Add publish_checkpoint and unpublish_checkpoint if the server has several users.",
    breaks=[Breakage("0.4.0", None, Feature.MANAGE, "raises an error when a checkpoint is published")],
)
async def has_publication(server: Server) -> None:
    """The server publishes checkpoints."""
    _require_existing(server, "publish_checkpoint", "unpublish_checkpoint")


@AREA.may(
    24,
    since="0.13.1",
    contract="set_checkpoint_ttl",
    remedy="Add set_checkpoint_ttl if checkpoints can expire.",
    breaks=[Breakage("0.13.1", None, Feature.MANAGE, "raises an error when the lifetime of a checkpoint is set")],
)
async def has_checkpoint_ttl(server: Server) -> None:
    """The server changes the lifetime of checkpoints."""
    _require_existing(server, "set_checkpoint_ttl")


@AREA.may(
    25,
    until="0.36.0",
    contract="get_checkpoint_archive_url",
    remedy="Add get_checkpoint_archive_url, so that users can download checkpoints.",
    breaks=[Breakage("0.3.0", "0.35.0", Feature.MANAGE, "raises an error when a checkpoint is downloaded")],
)
async def has_archives(server: Server) -> None:
    """The server offers checkpoints as archives."""
    _require_existing(server, "get_checkpoint_archive_url")


@AREA.may(
    26,
    since="0.5.1",
    contract=("list_sessions", "get_session"),
    remedy="Add list_sessions and get_session, so that users find what belongs together.",
    breaks=[Breakage("0.5.1", None, Feature.MANAGE, "raises an error when sessions are listed")],
)
async def has_session_listing(server: Server) -> None:
    """The server lists sessions."""
    _require_existing(server, "list_sessions", "get_session")


@AREA.should(
    27,
    since="0.6.0",
    contract="weights_info",
    remedy="Add weights_info, which returns the base model and the rank of a checkpoint.",
    breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error when a checkpoint is described")],
)
async def has_weights_info(server: Server) -> None:
    """The server describes checkpoints by their path."""
    _require_existing(server, "weights_info")


@AREA.should(
    28,
    since="0.6.0",
    contract="get_sampler",
    remedy="Add get_sampler, which returns the base model of a sampling session.",
    breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error when a sampler is described")],
)
async def has_samplers(server: Server) -> None:
    """The server describes sampling sessions."""
    _require_existing(server, "get_sampler")


@AREA.should(
    29,
    contract="telemetry",
    remedy='Add telemetry, which may drop all events, and answer it with {"status": "accepted"}.',
    breaks=[Breakage("0.38.0", None, Feature.CONNECT, "delays fatal errors by up to 30 s")],
)
async def has_telemetry(server: Server) -> None:
    """The server accepts telemetry of clients."""
    _require_existing(server, "telemetry")


@AREA.may(
    30,
    since="0.26.2",
    contract=("retrieve_futures", "cancel_future"),
    remedy="Add retrieve_futures and cancel_future, which save polls and work.",
)
async def has_batched_polling(server: Server) -> None:
    """The server reports several finished futures at once, and cancels futures."""
    _require_existing(server, "retrieve_futures", "cancel_future")


@AREA.should(
    31,
    since="0.27.2",
    contract="finish_session",
    remedy="Add finish_session; it may ignore the status.",
    breaks=[Breakage("0.38.0", None, Feature.CONNECT, "raises an error when the client is closed")],
)
async def has_session_end(server: Server) -> None:
    """The server lets clients finish their session."""
    _require_existing(server, "finish_session")


@AREA.may(
    32,
    since="0.25.0",
    contract="client_dynamic_config",
    remedy="Add client/dynamic_config if flags change while clients run; without it clients use the defaults.",
)
async def has_dynamic_config(server: Server) -> None:
    """The server has a client config that may change while clients run."""
    _require_existing(server, "client_dynamic_config")


@AREA.may(
    33,
    since="0.26.2",
    contract="copy_weights",
    remedy="Add copy_weights if users share checkpoints.",
    breaks=[Breakage("0.26.2", None, Feature.MANAGE, "raises an error when a checkpoint is copied")],
)
async def has_copies(server: Server) -> None:
    """The server copies checkpoints of other runs."""
    _require_existing(server, "copy_weights")


@AREA.may(
    34,
    since="0.28.1",
    contract=("save_weights_external", "get_external_weights_urls"),
    remedy="Add save_weights_external and get_external_weights_urls, so that users can download weights.",
    breaks=[Breakage("0.28.1", None, Feature.SAVE, "raises an error when external weights are saved")],
)
async def has_external_weights(server: Server) -> None:
    """The server saves weights for use elsewhere."""
    _require_existing(server, "save_weights_external", "get_external_weights_urls")


@AREA.may(
    35,
    since="0.32.0",
    contract="join_sampling_session",
    remedy="Add join_sampling_session, which numbers the copies of a sampling client.",
)
async def has_shared_sampling(server: Server) -> None:
    """The server numbers the clients of one sampling session."""
    _require_existing(server, "join_sampling_session")


@AREA.may(
    36,
    since="0.36.0",
    contract="create_custom_loss",
    remedy="Add create_custom_loss if the server computes losses of users.",
)
async def has_custom_losses(server: Server) -> None:
    """The server computes losses of users."""
    _require_existing(server, "create_custom_loss")


@AREA.may(
    37,
    since="0.22.7",
    contract="assign_session_project",
    remedy="Add assign_session_project if the server has projects.",
)
async def has_projects(server: Server) -> None:
    """The server moves sessions to projects."""
    _require_existing(server, "assign_session_project")


@AREA.may(
    38,
    since="0.23.4",
    contract=("get_billing_usage", "get_audit_log"),
    remedy="Add get_billing_usage and get_audit_log if the server has accounts.",
)
async def has_accounts(server: Server) -> None:
    """The server reports usage, and keeps an audit log."""
    _require_existing(server, "get_billing_usage", "get_audit_log")


@AREA.may(
    39,
    since="0.36.0",
    contract="search_sessions",
    remedy="Add search_sessions, so that users find sessions by their metadata.",
)
async def has_session_search(server: Server) -> None:
    """The server searches sessions."""
    _require_existing(server, "search_sessions")


def _config_call(server: Server) -> Any:
    return client_config(body=models.ClientConfigRequest(sdk_version=server.wire))


def _require_existing(server: Server, *names: str) -> None:
    """Raise Violation if the server lacks operations of its wire version."""
    known: Sequence[str] = [name for name in names if server.contract.has_operation(name)]
    if not known:
        raise NotApplicable(f"wire {server.wire} has no {', '.join(names)}")
    lacking = [name for name in known if name in server.missing]
    if lacking:
        raise Violation(f"the operations {', '.join(known)}", f"no {', '.join(lacking)}")
