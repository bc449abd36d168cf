"""Requirements on the service: health, models, client config, and the optional operations it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from tinkerwire_generated import models
from tinkerwire_generated.api.auth import client_config, client_dynamic_config
from tinkerwire_generated.api.service import get_server_capabilities, healthz

from ..._wire.dialect import CONFIG_SINCE
from ..requirement import Area, Breakage, Feature, Level, first_version
from ..subject.server import Server
from ..violation import Violation, expect

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
    remedy="Answer client/config for every sdk_version, also for versions that the server does not know.",
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


def _config_call(server: Server) -> Any:
    return client_config(body=models.ClientConfigRequest(sdk_version=server.wire))


# --- optional operations ----------------------------------------------------------------------------------------------


@attrs.frozen
class OptionalOperations:
    """Operations for one purpose of users: a server has all of them, or cannot serve the purpose."""

    number: int
    level: Level
    names: tuple[str, ...]
    sentence: str
    remedy: str
    breaks: Sequence[Breakage] = ()
    until: str | None = None

    async def require(self, server: Server) -> None:
        """Raise Violation if the server lacks one of the operations."""
        lacking = [name for name in self.names if name in server.missing]
        if lacking:
            raise Violation(f"the operations {', '.join(self.names)}", f"no {', '.join(lacking)}")


OPTIONAL_OPERATIONS = (
    OptionalOperations(
        20,
        Level.SHOULD,
        ("list_training_runs", "get_training_run"),
        "The server lists training runs.",
        "Add list_training_runs and get_training_run, so that users find their runs.",
    ),
    OptionalOperations(
        21,
        Level.SHOULD,
        ("list_checkpoints", "list_user_checkpoints"),
        "The server lists checkpoints, of one run and of all runs.",
        "Add list_checkpoints and list_user_checkpoints, so that users find their checkpoints.",
        breaks=[Breakage("0.4.0", None, Feature.MANAGE, "raises an error when checkpoints are listed")],
    ),
    OptionalOperations(
        22,
        Level.SHOULD,
        ("delete_checkpoint",),
        "The server deletes checkpoints.",
        "Add delete_checkpoint, so that users can free storage.",
        breaks=[Breakage("0.3.0", None, Feature.MANAGE, "raises an error when a checkpoint is deleted")],
    ),
    OptionalOperations(
        23,
        Level.MAY,
        ("publish_checkpoint", "unpublish_checkpoint"),
        "The server publishes checkpoints.",
        "Add publish_checkpoint and unpublish_checkpoint if the server has several users.",
        breaks=[Breakage("0.4.0", None, Feature.MANAGE, "raises an error when a checkpoint is published")],
    ),
    OptionalOperations(
        24,
        Level.MAY,
        ("set_checkpoint_ttl",),
        "The server changes the lifetime of checkpoints.",
        "Add set_checkpoint_ttl if checkpoints can expire.",
        breaks=[Breakage("0.13.1", None, Feature.MANAGE, "raises an error when the lifetime of a checkpoint is set")],
    ),
    OptionalOperations(
        25,
        Level.MAY,
        ("get_checkpoint_archive_url",),
        "The server offers checkpoints as archives.",
        "Add get_checkpoint_archive_url, so that users can download checkpoints.",
        breaks=[Breakage("0.3.0", "0.35.0", Feature.MANAGE, "raises an error when a checkpoint is downloaded")],
        until="0.36.0",
    ),
    OptionalOperations(
        26,
        Level.MAY,
        ("list_sessions", "get_session"),
        "The server lists sessions.",
        "Add list_sessions and get_session, so that users find what belongs together.",
        breaks=[Breakage("0.5.1", None, Feature.MANAGE, "raises an error when sessions are listed")],
    ),
    OptionalOperations(
        27,
        Level.SHOULD,
        ("weights_info",),
        "The server describes checkpoints by their path.",
        "Add weights_info, which returns the base model and the rank of a checkpoint.",
        breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error when a checkpoint is described")],
    ),
    OptionalOperations(
        28,
        Level.SHOULD,
        ("get_sampler",),
        "The server describes sampling sessions.",
        "Add get_sampler, which returns the base model of a sampling session.",
        breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error when a sampler is described")],
    ),
    OptionalOperations(
        29,
        Level.SHOULD,
        ("telemetry",),
        "The server accepts telemetry of clients.",
        'Add telemetry, which may drop all events, and answer it with {"status": "accepted"}.',
        breaks=[Breakage("0.38.0", None, Feature.CONNECT, "delays fatal errors by up to 30 s")],
    ),
    OptionalOperations(
        30,
        Level.MAY,
        ("retrieve_futures", "cancel_future"),
        "The server reports several finished futures at once, and cancels futures.",
        "Add retrieve_futures and cancel_future, which save polls and work.",
    ),
    OptionalOperations(
        31,
        Level.SHOULD,
        ("finish_session",),
        "The server lets clients finish their session.",
        "Add finish_session; it may ignore the status.",
        breaks=[Breakage("0.38.0", None, Feature.CONNECT, "raises an error when the client is closed")],
    ),
    OptionalOperations(
        32,
        Level.MAY,
        ("client_dynamic_config",),
        "The server has a client config that may change while clients run.",
        "Add client/dynamic_config if flags change while clients run; without it clients use the defaults.",
    ),
    OptionalOperations(
        33,
        Level.MAY,
        ("copy_weights",),
        "The server copies checkpoints of other runs.",
        "Add copy_weights if users share checkpoints.",
        breaks=[Breakage("0.26.2", None, Feature.MANAGE, "raises an error when a checkpoint is copied")],
    ),
    OptionalOperations(
        34,
        Level.MAY,
        ("save_weights_external", "get_external_weights_urls"),
        "The server saves weights for use elsewhere.",
        "Add save_weights_external and get_external_weights_urls, so that users can download weights.",
        breaks=[Breakage("0.28.1", None, Feature.SAVE, "raises an error when external weights are saved")],
    ),
    OptionalOperations(
        35,
        Level.MAY,
        ("join_sampling_session",),
        "The server numbers the clients of one sampling session.",
        "Add join_sampling_session, which numbers the copies of a sampling client.",
    ),
    OptionalOperations(
        36,
        Level.MAY,
        ("create_custom_loss",),
        "The server computes losses of users.",
        "Add create_custom_loss if the server computes losses of users.",
    ),
    OptionalOperations(
        37,
        Level.MAY,
        ("assign_session_project",),
        "The server moves sessions to projects.",
        "Add assign_session_project if the server has projects.",
    ),
    OptionalOperations(
        38,
        Level.MAY,
        ("get_billing_usage", "get_audit_log"),
        "The server reports usage, and keeps an audit log.",
        "Add get_billing_usage and get_audit_log if the server has accounts.",
    ),
    OptionalOperations(
        39,
        Level.MAY,
        ("search_sessions",),
        "The server searches sessions.",
        "Add search_sessions, so that users find sessions by their metadata.",
    ),
)

for _row in OPTIONAL_OPERATIONS:
    AREA.requirement(
        _row.level,
        _row.number,
        sentence=_row.sentence,
        contract=_row.names,
        remedy=_row.remedy,
        since=first_version(_row.names),
        until=_row.until,
        breaks=_row.breaks,
    )(_row.require)
