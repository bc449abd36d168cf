"""Schema-first client for the Tinker API; code for the official SDK works with ``import tinkerwire as tinker``."""

from .version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from ._trace.metrics import Metrics, MetricsSnapshot
    from ._training.chunking import ChunkLimits
    from ._training.client import TrainingClient
    from ._training.losses.handles import LossHandle, PerDatumLossFn
    from ._training.recovery.settings import Recovery, RecoveryReport
    from ._transport.backpressure import SamplingLoad
    from ._transport.httpx_types import APIResponse as APIResponse
    from ._transport.httpx_types import AsyncAPIResponse as AsyncAPIResponse
    from ._transport.httpx_types import RequestOptions, Timeout
    from ._usage import Usage
    from .experimental import ExperimentalWarning

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
    "Metrics",
    "MetricsSnapshot",
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
    "APIConnectionError": "tinkerwire_base.errors",
    "APIError": "tinkerwire_base.errors",
    "APIFuture": "._futures.future",
    "APIResponse": "._transport.httpx_types",
    "APIResponseValidationError": "tinkerwire_base.errors",
    "APIStatusError": "tinkerwire_base.errors",
    "APITimeoutError": "tinkerwire_base.errors",
    "AdminClient": "._rest.admin",
    "AsyncAPIResponse": "._transport.httpx_types",
    "AuthenticationError": "tinkerwire_base.errors",
    "BackcompatSamplingClientFuture": "._sampling.client:SamplingClient",
    "BackcompatTrainingClientFuture": "._training.client:TrainingClient",
    "BadRequestError": "tinkerwire_base.errors",
    "BillingError": "tinkerwire_base.errors",
    "CancelledSubmissionError": "tinkerwire_base.errors",
    "ChunkLimits": "._training.chunking",
    "ClientClosedError": "tinkerwire_base.errors",
    "ConflictError": "tinkerwire_base.errors",
    "ContextLengthError": "tinkerwire_base.errors",
    "DialectError": "tinkerwire_base.errors",
    "ExperimentalWarning": ".experimental",
    "FutureExpiredError": "tinkerwire_base.errors",
    "FutureState": "._futures.operation_record",
    "InternalServerError": "tinkerwire_base.errors",
    "LossHandle": "._training.losses.handles",
    "Metrics": "._trace.metrics",
    "MetricsSnapshot": "._trace.metrics",
    "NotFoundError": "tinkerwire_base.errors",
    "PerDatumLossFn": "._training.losses.handles",
    "PermissionDeniedError": "tinkerwire_base.errors",
    "PrecedingOperationError": "tinkerwire_base.errors",
    "PrecisionWarning": "tinkerwire_base.tensors",
    "Progress": "._futures.operation_record",
    "RateLimitError": "tinkerwire_base.errors",
    "Recovery": "._training.recovery.settings",
    "RecoveryReport": "._training.recovery.settings",
    "ReplayError": "tinkerwire_base.errors",
    "RequestErrorCategory": "tinkerwire_base.errors",
    "RequestFailedError": "tinkerwire_base.errors",
    "RequestOptions": "._transport.httpx_types",
    "RequestTimeoutError": "tinkerwire_base.errors",
    "ResponseTooLargeError": "tinkerwire_base.errors",
    "RestClient": "._rest.client",
    "RetryConfig": "._connection.retry",
    "SamplingClient": "._sampling.client",
    "SamplingLoad": "._transport.backpressure",
    "SequenceConflictError": "tinkerwire_base.errors",
    "ServiceClient": "._service",
    "SessionExpiredError": "tinkerwire_base.errors",
    "Timeout": "._transport.httpx_types",
    "TinkerError": "tinkerwire_base.errors",
    "TrainingClient": "._training.client",
    "UnprocessableEntityError": "tinkerwire_base.errors",
    "Usage": "._usage",
    "WaitStatus": "._futures.operation_record",
    "as_completed": "._futures.gather",
    "gather": "._futures.gather",
}
"""Modules of the names that are imported at first use, and the names there that differ; the others are models."""

if not TYPE_CHECKING:
    # Type checkers see the imports instead, and so report names that do not exist.
    def __getattr__(name: str) -> object:
        """Import a module or a name."""
        # `tinkerwire --help` imports this module and nothing else.
        from importlib import import_module  # noqa: PLC0415

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
