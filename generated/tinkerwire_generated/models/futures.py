# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family futures."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.mixins import (
    ErrorCategoryMixin,
)
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

from .custom_loss import CreateCustomLossResponse
from .sampling import SampleResponse
from .training import CreateModelResponse, ForwardBackwardOutput, ModelID, OptimStepResponse, UnloadModelResponse
from .weights import (
    LoadWeightsResponse,
    SaveWeightsExternalResponse,
    SaveWeightsExternalResponseInternal,
    SaveWeightsForSamplerResponse,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsResponse,
)


@define
class CancelFutureRequest(ForbidExtra):
    """Request to cancel a sample.

    Wire: 0.26.2 and later.
    """

    request_id: str = field(validator=field_validator())
    """The work."""


@define
class CompleteMetadataResponse(AllowExtra):
    """The result is ready and has this size; the next poll fetches it with allow_metadata_only off.

    Wire: 0.14.0 and later.
    """

    status: Literal["complete_metadata"] = field(default="complete_metadata")
    """Tag of the response."""
    response_payload_size: int
    """Size of the result in bytes."""


@define
class FutureFailed(AllowExtra):
    """A sample failed; retrieve_future fetches the error.

    Wire: 0.26.2 and later.
    """

    request_id: RequestID
    """The work."""
    state: Literal["failed"] = field(default="failed")
    """Tag of the outcome."""


@define
class FutureFinished(AllowExtra):
    """A sample is ready; retrieve_future fetches it.

    Wire: 0.26.2 and later.
    """

    request_id: RequestID
    """The work."""
    state: Literal["finished"] = field(default="finished")
    """Tag of the outcome."""
    response_payload_uncompressed_size: int | None = field(default=None)
    """Size of the result in bytes."""


FutureCompletion: TypeAlias = FutureFinished | FutureFailed
"""
Outcome of a sample.

Wire: 0.26.2 and later.
"""


@define
class FutureRetrieveRequest(ForbidExtra):
    """Request to wait for a result.

    Wire: 0.3.0 and later.
    """

    request_id: RequestID = field(validator=field_validator())
    """The work."""
    allow_metadata_only: bool = field(default=False, validator=field_validator())
    """True if the server may return the size of a result instead of the result. (wire 0.14.0 and later)"""


@define
class FuturesRetrieveRequest(ForbidExtra):
    """Request to wait for any of the samples of a sampling session.

    Wire: 0.26.2 and later.
    """

    target: SamplingSessionFuturesTarget = field(validator=field_validator())
    """Sampling session and client of the samples."""
    prev_cursor: int = field(default=0, validator=field_validator())
    """Cursor of the last response, which acknowledges it."""
    timeout: float | None = field(default=None, validator=field_validator())
    """Seconds to hold the request at most; null for the server's choice, 0 to acknowledge only."""
    retrieved_request_ids: list[str] = field(factory=list, validator=field_validator())
    """Samples whose results were fetched. (wire 0.36.0 and later)"""


@define
class FuturesRetrieveResponse(AllowExtra):
    """Samples that finished since the last response.

    Wire: 0.26.2 and later.
    """

    completions: list[FutureCompletion]
    """Outcome of each sample."""
    cursor: int
    """Position in the order of completions; the next prev_cursor."""


QueueState: TypeAlias = Literal["active", "paused_capacity", "paused_rate_limit"]
"""
Reason why a result is not ready: it is running, or waits for machines or for a rate limit.

Wire: 0.2.0 and later.
"""


RequestErrorCategory: TypeAlias = Literal["unknown", "server", "user"]
"""
Party that caused a failure; lower case on the wire, read in any case.

Wire: 0.3.0 and later.
"""


@define
class RequestFailedResponse(ErrorCategoryMixin, AllowExtra):
    """The work failed.

    Wire: 0.3.0 and later.
    """

    error: str
    """Error message."""
    category: RequestErrorCategory | str
    """Party that caused the failure; clients pass on unknown values."""


RequestID: TypeAlias = str
"""
Identifier of queued work.

Wire: 0.1.0 and later.
"""


@define
class SamplingSessionFuturesTarget(ForbidExtra):
    """Sampling session and client whose samples are awaited.

    Wire: 0.26.2 and later.
    """

    sampling_session_id: str = field(validator=field_validator())
    """The sampling session."""
    type: Literal["sampling_session"] = field(default="sampling_session", validator=field_validator())
    """Tag of the target."""
    cloned_sampler_id: int = field(default=0, validator=field_validator())
    """Number of the copy of the sampling client, 0 for the first."""


@define
class TryAgainResponse(AllowExtra):
    """The result is not ready yet.

    Wire: 0.1.0 and later.
    """

    request_id: str
    """The work."""
    queue_state: QueueState | str
    """Reason why the result is not ready; clients pass on unknown values. (wire 0.2.0 and later)"""
    queue_state_reason: str | None = field(default=None)
    """The reason as text for the user. (wire 0.7.0 and later)"""
    type: Literal["try_again"] = field(default="try_again")
    """Tag of the response."""


FutureRetrieveResponse: TypeAlias = (
    TryAgainResponse
    | RequestFailedResponse
    | CompleteMetadataResponse
    | SampleResponse
    | ForwardBackwardOutput
    | CreateModelResponse
    | UnloadModelResponse
    | SaveWeightsResponse
    | SaveWeightsForSamplerResponse
    | SaveWeightsForSamplerResponseInternal
    | LoadWeightsResponse
    | OptimStepResponse
    | SaveWeightsExternalResponse
    | SaveWeightsExternalResponseInternal
    | CreateCustomLossResponse
)
"""
A result, a failure or a wait, without a wrapper; the caller knows which result to expect.

Wire: 0.1.0 and later.
"""


@define
class UntypedAPIFuture(AllowExtra):
    """Queued work, whose result is fetched with retrieve_future.

    Wire: 0.1.0 and later.
    """

    request_id: RequestID
    """The work."""
    model_id: ModelID | None = field(default=None)
    """The model of the work."""
    sample_sequence_ids: list[str] | None = field(default=None)
    """Identifier of each sample of asample, in order; clients of these versions require it. (wire 0.26.2 and later)"""
