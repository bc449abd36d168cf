"""Schema-first client for the Tinker API; code for the official SDK works with ``import tinkerwire as tinker``."""

from typing import TYPE_CHECKING, Any

from tinkerwire_base.errors import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    BillingError,
    CancelledSubmissionError,
    ClientClosedError,
    ConflictError,
    ContextLengthError,
    DialectError,
    FutureExpiredError,
    InternalServerError,
    NotFoundError,
    PermissionDeniedError,
    PrecedingOperationError,
    RateLimitError,
    RequestErrorCategory,
    RequestFailedError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SequenceConflictError,
    SessionExpiredError,
    TinkerError,
    UnprocessableEntityError,
)
from tinkerwire_base.tensors import PrecisionWarning
from tinkerwire_generated import models

from . import auth, types
from ._connection.retry import RetryConfig
from ._futures.future import APIFuture
from ._futures.gather import as_completed, gather
from ._futures.operation_record import FutureState, Progress, WaitStatus
from ._rest.admin import AdminClient
from ._rest.client import RestClient
from ._sampling.client import SamplingClient
from ._service import ServiceClient
from ._training.chunking import ChunkLimits
from ._training.client import TrainingClient
from ._training.losses.handles import LossHandle, PerDatumLossFn
from ._transport.backpressure import SamplingLoad
from ._transport.httpx_types import APIResponse as APIResponse
from ._transport.httpx_types import AsyncAPIResponse as AsyncAPIResponse
from ._transport.httpx_types import RequestOptions, Timeout
from ._usage import Usage
from .experimental import ExperimentalWarning
from .version import __version__

BackcompatSamplingClientFuture = SamplingClient
BackcompatTrainingClientFuture = TrainingClient
"""Older names: every client is also the future of its creation."""

__title__ = "tinkerwire"

__all__ = [
    "APIConnectionError",
    "APIError",
    "APIFuture",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AdamOptimizerConfig",
    "AdamParams",
    "AdminClient",
    "AuthenticationError",
    "BackcompatSamplingClientFuture",
    "BackcompatTrainingClientFuture",
    "BadRequestError",
    "BillingError",
    "CancelledSubmissionError",
    "Checkpoint",
    "CheckpointType",
    "ChunkLimits",
    "ClientClosedError",
    "ConflictError",
    "ContextLengthError",
    "Datum",
    "DialectError",
    "DimuonOptimizerConfig",
    "DimuonParams",
    "DmelChunk",
    "EncodedTextChunk",
    "ExperimentalWarning",
    "ForwardBackwardOutput",
    "FutureExpiredError",
    "FutureState",
    "InternalServerError",
    "LoraConfig",
    "LossHandle",
    "ModelID",
    "ModelInput",
    "ModelInputChunk",
    "NotFoundError",
    "OptimParams",
    "OptimStepRequest",
    "OptimStepResponse",
    "ParsedCheckpointTinkerPath",
    "PerDatumLossFn",
    "PermissionDeniedError",
    "PrecedingOperationError",
    "PrecisionWarning",
    "Progress",
    "PromptProvenanceSpan",
    "RateLimitError",
    "RequestErrorCategory",
    "RequestFailedError",
    "RequestOptions",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "RestClient",
    "RetryConfig",
    "SampleRequest",
    "SampleResponse",
    "SampledProvenanceSpan",
    "SampledSequence",
    "SamplingClient",
    "SamplingLoad",
    "SamplingParams",
    "SequenceConflictError",
    "ServiceClient",
    "SessionExpiredError",
    "StopReason",
    "TensorData",
    "TensorDtype",
    "Timeout",
    "TinkerError",
    "TrainingClient",
    "TrainingRun",
    "UnprocessableEntityError",
    "Usage",
    "WaitStatus",
    "__title__",
    "__version__",
    "as_completed",
    "auth",
    "gather",
    "types",
]

if TYPE_CHECKING:
    from tinkerwire_generated.models import (
        AdamOptimizerConfig,
        AdamParams,
        Checkpoint,
        CheckpointType,
        Datum,
        DimuonOptimizerConfig,
        DimuonParams,
        DmelChunk,
        EncodedTextChunk,
        ForwardBackwardOutput,
        LoraConfig,
        ModelID,
        ModelInput,
        ModelInputChunk,
        OptimParams,
        OptimStepRequest,
        OptimStepResponse,
        ParsedCheckpointTinkerPath,
        PromptProvenanceSpan,
        SampledProvenanceSpan,
        SampledSequence,
        SampleRequest,
        SampleResponse,
        SamplingParams,
        StopReason,
        TensorData,
        TensorDtype,
        TrainingRun,
    )
else:
    # Creating a model takes longer than importing most modules, so that each is imported when it is used.
    def __getattr__(name: str) -> Any:
        """Return a type of the wire."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(models, name)
        return value

    def __dir__() -> list[str]:
        """Return the names of the module, also those that are not imported yet."""
        return sorted({*globals(), *__all__})
