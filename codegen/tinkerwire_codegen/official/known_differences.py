"""Intended differences between the contract and the facts, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable

from .comparison import Difference

_ARCHIVE = "response of GET /api/v1/training_runs/{}/checkpoints/{}/archive: contract "

BY_REASON: dict[str, tuple[str, ...]] = {
    "The SDK types the kind of an event as any EventType; each kind sends its own value only.": tuple(
        f"type of {name}{suffix}.event: contract '\"{value}\"', facts 'EventType'"
        for suffix in ("", "Param")
        for name, value in (
            ("GenericEvent", "GENERIC_EVENT"),
            ("SessionEndEvent", "SESSION_END"),
            ("SessionStartEvent", "SESSION_START"),
            ("UnhandledExceptionEvent", "UNHANDLED_EXCEPTION"),
        )
    ),
    "The SDK only writes these; readers distinguish them by this field.": (
        "discriminator of TelemetryEvent: contract 'event', facts None",
        "discriminator of TelemetryEventParam: contract 'event', facts None",
        "discriminator of ModelInputChunkParam: contract 'type', facts None",
        "discriminator of SearchOwner: contract 'type', facts None",
        "discriminator of SessionStatusQuery: contract 'type', facts None",
    ),
    "The SDK of 0.3.0 to 0.16.1 declares the tag of chunks, and never sends it.": (
        "discriminator of ModelInputChunk: contract None, facts 'type'",
    ),
    "The SDK's union lacks it, but its table of futures has it.": tuple(
        f"member of FutureRetrieveResponse: contract {name!r}, facts None"
        for name in (
            "SampleResponse",
            "SaveWeightsForSamplerResponseInternal",
            "SaveWeightsExternalResponseInternal",
            "CreateCustomLossResponse",
        )
    ),
    "Python name of a field that is not on the wire: it is written as adam_params or as optimizer_params.": (
        "field of OptimStepRequest: contract 'adam_params', facts None",
        "field of OptimStepRequest: contract 'optimizer_params', facts None",
        "field of OptimStepRequest: contract None, facts 'optim_params'",
    ),
    "The SDK's class is one of those of any optimizer; its specific fields justify a name in the union.": (
        "member of OptimParams: contract 'DimuonParams', facts None",
        "member of OptimizerConfig: contract 'DimuonOptimizerConfig', facts None",
    ),
    "They are sent as protobuf only, so no JSON type of the SDK declares them; see ProvenanceSpan in the contract.": (
        "type of types: contract None, facts 'ProvenanceSpans'",
    ),
    "The SDK reads the raw response: the headers of a 302, and since 0.22.7 a body too.": (
        f"{_ARCHIVE}'null', facts 'APIResponse'",
        f"{_ARCHIVE}'CheckpointArchiveUrlResponse', facts 'any'",
    ),
    "The SDK takes the body as text and reads the type from it.": (
        "response of GET /api/unauthed/auth-config: contract '_AuthConfigResponse', facts 'str'",
    ),
}

REASONS: dict[str, str] = {text: reason for reason, texts in BY_REASON.items() for text in texts}
"""The reason for each difference, by its text."""


def exclude_known(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences that have no known reason."""
    return [difference for difference in differences if str(difference) not in REASONS]
