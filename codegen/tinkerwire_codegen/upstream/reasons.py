"""Where the contract differs from what the SDK's types say on purpose, and why; no drift, whatever the release."""

from __future__ import annotations

from ..facts import Difference

ONE_VALUE_EACH = "The SDK types the kind of an event as any EventType; each kind sends its own value only."
RESULT_OF_FUTURE = "The SDK's union forgets it, its table of futures has it."
TOLD_APART = "The SDK only writes these; who reads them tells them apart by this field."
RENAMED = "The SDK's own name for two fields, of which its serializer sends one."
OWN_BASE = "The SDK names the base of a family that it keeps open; the contract names the members."
RAW_ANSWER = "The SDK reads this answer by hand, past its types."
EVENTS = {
    "GenericEvent": "GENERIC_EVENT",
    "SessionEndEvent": "SESSION_END",
    "SessionStartEvent": "SESSION_START",
    "UnhandledExceptionEvent": "UNHANDLED_EXCEPTION",
}
ARCHIVE = "GET /api/v1/training_runs/{}/checkpoints/{}/archive"


def _extra_member(union: str, member: str) -> str:
    return str(Difference("member", union, member, None))


REASONS: dict[str, str] = {
    **{
        str(Difference("type", f"{event}{suffix}.event", f'"{value}"', "EventType")): ONE_VALUE_EACH
        for event, value in EVENTS.items()
        for suffix in ("", "Param")
    },
    **{
        _extra_member("FutureRetrieveResponse", result): RESULT_OF_FUTURE
        for result in (
            "CreateCustomLossResponse",
            "SampleResponse",
            "SaveWeightsExternalResponseInternal",
            "SaveWeightsForSamplerResponseInternal",
        )
    },
    **{
        str(Difference("discriminator", union, tag, None)): TOLD_APART
        for union, tag in (
            ("ModelInputChunkParam", "type"),
            ("SearchOwner", "type"),
            ("SessionStatusQuery", "type"),
            ("TelemetryEvent", "event"),
            ("TelemetryEventParam", "event"),
        )
    },
    _extra_member("OptimParams", "DimuonParams"): OWN_BASE,
    _extra_member("OptimizerConfig", "DimuonOptimizerConfig"): OWN_BASE,
    str(Difference("field", "OptimStepRequest", None, "optim_params")): RENAMED,
    str(Difference("field", "OptimStepRequest", "adam_params", None)): RENAMED,
    str(Difference("field", "OptimStepRequest", "optimizer_params", None)): RENAMED,
    str(Difference("type", "types", None, "ProvenanceSpans")): "A list of Python classes that goes as protobuf only.",
    str(Difference("response", ARCHIVE, "null", "APIResponse")): RAW_ANSWER,
    str(Difference("response", ARCHIVE, "CheckpointArchiveUrlResponse", "any")): RAW_ANSWER,
    str(Difference("response", "GET /api/unauthed/auth-config", "_AuthConfigResponse", "str")): RAW_ANSWER,
}
"""Differences as text, as facts.Difference writes them, with why."""


def is_meant(difference: Difference) -> bool:
    """Whether the contract differs here on purpose."""
    return str(difference) in REASONS
