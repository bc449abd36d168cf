"""Intended differences between the official SDK and the contract, with reasons; stale entries fail the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Excuse:
    """Values of a type that one side does not read as the other; ``when`` selects them."""

    version: str
    name: str
    direction: str
    """theirs: values of the SDK on their way through our models; ours: the other way."""
    when: Callable[[Any], bool]
    reason: str


GUESSED = "results without a tag in one union: each side guesses; the SDK itself knows the type from its request"
UNTAGGED = "an object without its tag: the SDK takes the first member of the union that fits, we raise an error"
TAGGED_FIELDS = ("event_info", "owner", "reason", "status", "statuses")


def lacks_tag(value: Any, field: str = "") -> bool:
    """Check whether a member of a union with a discriminator has no tag, at any depth."""
    if isinstance(value, list):
        return any(lacks_tag(item, field) for item in value)
    if not isinstance(value, dict):
        return False
    is_untagged = field in TAGGED_FIELDS and "type" not in value
    return is_untagged or any(lacks_tag(item, name) for name, item in value.items())


EXCUSES = (
    *(
        Excuse("0.38.0", name, "theirs", lambda value: lacks_tag(value, "status"), UNTAGGED)
        for name in (
            *("BillingEventInfo", "ClientSessionFinishReason", "ClientSessionFinished", "SearchOwner", "SessionFailed"),
            *("SessionFailedReason", "SessionStatus", "SessionStatusQuery"),
        )
    ),
    *(
        Excuse("0.38.0", name, "theirs", lacks_tag, UNTAGGED)
        for name in (
            *("BillingUsageEvent", "BillingUsageResponse"),
            *("SessionSearchRequest", "SessionSearchResponse", "SessionSummary"),
        )
    ),
    *(
        Excuse(version, "FutureRetrieveResponse", direction, lambda _: True, GUESSED)
        for version in ("0.16.1", "0.38.0")
        for direction in ("theirs", "ours")
    ),
    Excuse(
        "0.38.0",
        "OptimStepRequest",
        "theirs",
        lambda value: "optim_params" in value,
        "a name for Python; its dump has adam_params or optimizer_params",
    ),
    Excuse(
        "0.38.0",
        "OptimStepRequest",
        "ours",
        lambda value: ("adam_params" in value) == ("optimizer_params" in value),
        "the contract cannot express that exactly one of two fields is set",
    ),
)

TAGS: Mapping[str, tuple[str, str]] = {
    "SessionStartEvent": ("event", "SESSION_START"),
    "SessionEndEvent": ("event", "SESSION_END"),
    "UnhandledExceptionEvent": ("event", "UNHANDLED_EXCEPTION"),
    "GenericEvent": ("event", "GENERIC_EVENT"),
}
"""Events of telemetry, by their tag: the types of the SDK take that of any event, but its code sends these only."""

OWN_DUMP_REFUSED: Mapping[tuple[str, str], str] = {
    ("0.38.0", "CreateSessionRequest"): "a user_metadata of null is required, and left out as all nulls; none is sent",
}
"""Types that do not take back what the SDK dumps of them."""

NOT_COVERED: Mapping[tuple[str, str], str] = {
    ("0.38.0", "LossFnOutput"): "a map to a Python class without JSON form; TensorData itself is covered",
    ("0.38.0", "ProvenanceSpans"): "only protobuf has it; protobuf_suite.py covers it",
}
"""Types of the SDK that are not tried."""

BOTH_VERSIONS, OLD_ONLY, NEW_ONLY = ("0.16.1", "0.38.0"), ("0.16.1",), ("0.38.0",)
BASE = "a base of others"
CLIENT = "internal to the client, never sent"
BINARY = "since it is a Python class it is sent as protobuf only; protobuf_suite.py covers it"
BASES = ("BaseAsyncPage", "BaseModel", "BasePage", "GenericModel", "StrictBase")
CLIENTS = ("CLIContext", "ClientConnectionPoolType", "FinalRequestOptions", "FinalRequestOptionsInput", "HttpxSendArgs")
CLIENTS += ("QueueState", "RequestOptions", "RetryConfig", "_SamplingClientPickleState")
OLD_CLIENTS = ("_ComputeLogprobsRPC", "_RegisterTargetRPC", "_SampleRPC", "_UnregisterTargetRPC")
NEW_CLIENTS = ("LossHandle", "_CustomLossResult", "_Failed", "_LoopState", "_MetadataOnly", "_ShadowHolderConfig")
NEW_CLIENTS += ("_SuccessJson", "_SuccessProto", "_TransportError", "_TransportErrorKind", "_TryAgain")
IN_MEMORY = ("ForwardBackwardOutput", "ForwardBackwardRequest", "ForwardRequest", "PromptAltTokens", "TopkLogprobs")
IN_MEMORY += ("PromptProvenanceSpan", "SampleResponse", "SampledProvenanceSpan", "SampledSequence")
NO_TYPES: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(BASES, (BOTH_VERSIONS, BASE)),
    **dict.fromkeys(CLIENTS, (BOTH_VERSIONS, CLIENT)),
    **dict.fromkeys(OLD_CLIENTS, (OLD_ONLY, CLIENT)),
    **dict.fromkeys(NEW_CLIENTS, (NEW_ONLY, CLIENT)),
    **dict.fromkeys(IN_MEMORY, (NEW_ONLY, BINARY)),
}
"""Classes of the package without a JSON form, with versions and reasons."""


def list_excuses(version: str, name: str, direction: str) -> list[Excuse]:
    """Return the excuses for one test."""
    return [
        excuse for excuse in EXCUSES if (excuse.version, excuse.name, excuse.direction) == (version, name, direction)
    ]
