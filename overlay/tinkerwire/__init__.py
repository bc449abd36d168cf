"""Schema-first client for the Tinker API; code for the official SDK works with ``import tinkerwire as tinker``."""

from importlib import import_module
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
    ReplayError,
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

from .experimental import ExperimentalWarning
from .version import __version__

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

    from . import auth, training, types
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
    from ._training.recovery.settings import Recovery, RecoveryReport
    from ._transport.backpressure import SamplingLoad
    from ._transport.httpx_types import APIResponse as APIResponse
    from ._transport.httpx_types import AsyncAPIResponse as AsyncAPIResponse
    from ._transport.httpx_types import RequestOptions, Timeout
    from ._usage import Usage

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
    "Recovery",
    "RecoveryReport",
    "ReplayError",
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
    "training",
    "types",
]

_MODULES = {
    "APIFuture": "._futures.future",
    "APIResponse": "._transport.httpx_types",
    "AdminClient": "._rest.admin",
    "AsyncAPIResponse": "._transport.httpx_types",
    "BackcompatSamplingClientFuture": "._sampling.client:SamplingClient",
    "BackcompatTrainingClientFuture": "._training.client:TrainingClient",
    "ChunkLimits": "._training.chunking",
    "FutureState": "._futures.operation_record",
    "LossHandle": "._training.losses.handles",
    "PerDatumLossFn": "._training.losses.handles",
    "Progress": "._futures.operation_record",
    "Recovery": "._training.recovery.settings",
    "RecoveryReport": "._training.recovery.settings",
    "RequestOptions": "._transport.httpx_types",
    "RestClient": "._rest.client",
    "RetryConfig": "._connection.retry",
    "SamplingClient": "._sampling.client",
    "SamplingLoad": "._transport.backpressure",
    "ServiceClient": "._service",
    "Timeout": "._transport.httpx_types",
    "TrainingClient": "._training.client",
    "Usage": "._usage",
    "WaitStatus": "._futures.operation_record",
    "as_completed": "._futures.gather",
    "gather": "._futures.gather",
}
"""Modules of the names that are imported at first use, and the names there that differ; the others are models."""

if not TYPE_CHECKING:
    # Type checkers see the imports instead, and so report names that do not exist.
    def __getattr__(name: str) -> Any:
        """Import a module or a name."""
        if name in ("auth", "training", "types"):
            return import_module(f".{name}", __name__)
        if name not in _MODULES and name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, attribute = _MODULES.get(name, "tinkerwire_generated.models").partition(":")
        value = globals()[name] = getattr(import_module(module, __name__), attribute or name)
        return value

    def __dir__() -> list[str]:
        """Return the names of the module, also those that are not imported yet."""
        return sorted({*globals(), *_MODULES, *__all__})
