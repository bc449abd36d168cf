"""tinkerwire: the schema-first client for the Tinker API. ``import tinkerwire as tinker`` is the migration."""

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

from . import auth, types
from .experimental import ExperimentalWarning
from .futures.future import APIFuture
from .futures.gathering import as_completed, gather
from .futures.tracking import FutureState, Progress, Waiting
from .rest.admin import AdminClient
from .rest.client import RestClient
from .sampling.client import SamplingClient
from .sending.backpressure import SamplingLoad
from .sending.http_options import APIResponse as APIResponse
from .sending.http_options import AsyncAPIResponse as AsyncAPIResponse
from .sending.http_options import RequestOptions, Timeout
from .sending.retry import RetryConfig
from .service import ServiceClient
from .training.chunking import ChunkLimits
from .training.client import TrainingClient
from .training.loss_handles import LossHandle, PerDatumLossFn
from .usage import Usage
from .version import __version__

BackcompatSamplingClientFuture = SamplingClient
BackcompatTrainingClientFuture = TrainingClient
"""Every client is the future of its own creation, too."""

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
    "Waiting",
    "__title__",
    "__version__",
    "as_completed",
    "auth",
    "gather",
    "types",
]
