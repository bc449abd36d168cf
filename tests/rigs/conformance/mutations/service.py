"""Mutations of capabilities and client/config."""

from __future__ import annotations

import itertools

from . import patches
from .mutation import Group

GROUP = Group("Service")
CAPABILITIES = "get_server_capabilities"


@GROUP.mutation("SRV-001")
def health_is_up() -> None:
    """The status of healthz is ``up``."""
    patches.set_field("healthz", status="up")


@GROUP.mutation("SRV-002")
def no_models() -> None:
    """The capabilities list no models."""
    patches.set_field(CAPABILITIES, supported_models=[])


@GROUP.mutation("SRV-003")
def nameless_model() -> None:
    """The capabilities list one model more, without a name."""
    entry = {"model_name": None, "max_context_length": 5, "trainable": True, "sampleable": True}
    patches.change_field(CAPABILITIES, "supported_models", lambda models: [*models, entry])


def _drop_from_models(name: str) -> None:
    patches.change_field(
        CAPABILITIES,
        "supported_models",
        lambda models: [{key: value for key, value in model.items() if key != name} for model in models],
    )


@GROUP.mutation("SRV-004")
def no_context_length() -> None:
    """Listed models have no max_context_length."""
    _drop_from_models("max_context_length")


@GROUP.mutation("SRV-005")
def no_trainable() -> None:
    """Listed models have no field trainable."""
    _drop_from_models("trainable")


@GROUP.mutation("SRV-006")
def config_flag_is_text() -> None:
    """A flag of client/config is the text ``yes``."""
    patches.set_field("client/config", parallel_fwdbwd_chunks="yes")


@GROUP.mutation("SRV-007")
def config_limit_zero() -> None:
    """A limit in client/config is 0."""
    patches.set_field("client/config", sample_max_concurrent_requests=0)


@GROUP.mutation("SRV-008")
def config_varies() -> None:
    """A limit in client/config is another one in each response."""
    numbers = itertools.count(1000)
    patches.change_body("client/config", lambda body: body.update(sample_max_concurrent_requests=next(numbers)))


@GROUP.mutation(
    "SRV-009", "SRV-030", quirks="missing=retrieve_futures", client_config={"sample_use_retrieve_futures": True}
)
def flag_without_operation() -> None:
    """The flag sample_use_retrieve_futures is set, and retrieve_futures does not exist."""


@GROUP.mutation("SRV-010")
def config_for_known_versions() -> None:
    """The server rejects client/config of a version of the SDK that it does not know."""
    patches.respond("client/config", 400, when=patches.contains(b"99.0.0"))


@GROUP.mutation("SRV-011")
def dynamic_interval_zero() -> None:
    """The refresh_interval_sec of client/dynamic_config is 0."""
    patches.set_field("client/dynamic_config", refresh_interval_sec=0)


@GROUP.mutation(
    "SRV-020",
    "SRV-022",
    "SRV-033",
    "SRV-034",
    "SRV-036",
    quirks="missing=list_training_runs+get_training_run+delete_checkpoint+copy_weights+save_weights_external"
    "+get_external_weights_urls+create_custom_loss",
)
def operations_missing() -> None:
    """Operations on runs, deletion, copies, external weights and custom losses do not exist."""


@GROUP.mutation("SRV-025", wire="0.24.1", quirks="missing=get_checkpoint_archive_url")
def no_archives() -> None:
    """Archives of checkpoints do not exist."""
