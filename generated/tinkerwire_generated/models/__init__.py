# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of all wire versions, one module per family of the contract.

Importing this package imports no family: a family is imported when one of its names is read for the first time, since
making all classes takes longer than importing the rest of the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FAMILIES = {
    "AccessScope": "session",
    "AccessTokenResponse": "auth",
    "AccessibleSearchOwner": "search",
    "ActiveSessionStatusQuery": "search",
    "AdamOptimizerConfig": "optimizers",
    "AdamParams": "optimizers",
    "ApiKeyDetails": "auth",
    "ApiKeyOrgDetails": "auth",
    "ApiKeyUserDetails": "auth",
    "AssignSessionProjectRequest": "session",
    "AuditEventType": "admin",
    "AuditLogEntry": "admin",
    "AuditLogResponse": "admin",
    "AuthConfigResponse": "auth",
    "AuthErrorResponse": "auth",
    "AuthTokenRequest": "auth",
    "AuthTokenResponse": "auth",
    "BillingEventInfo": "admin",
    "BillingUsageEvent": "admin",
    "BillingUsageResponse": "admin",
    "BillingUsageSession": "admin",
    "CancelFutureRequest": "futures",
    "CancelledSessionStatusQuery": "search",
    "Checkpoint": "runs",
    "CheckpointArchiveUrlResponse": "runs",
    "CheckpointBillingEvent": "admin",
    "CheckpointType": "runs",
    "CheckpointsListResponse": "runs",
    "ClientConfigRequest": "auth",
    "ClientConfigResponse": "auth",
    "ClientDynamicConfigResponse": "auth",
    "ClientFinishedSessionStatusQuery": "search",
    "ClientSessionFinishErrored": "search",
    "ClientSessionFinishInterrupted": "search",
    "ClientSessionFinishReason": "search",
    "ClientSessionFinishReasonType": "search",
    "ClientSessionFinishSuccess": "search",
    "ClientSessionFinished": "search",
    "CompleteMetadataResponse": "futures",
    "ComputeLogprobsResponse": "sampling",
    "CopyWeightsRequest": "weights",
    "CopyWeightsResponse": "weights",
    "CreateApiKeyRequest": "auth",
    "CreateCustomLossRequest": "custom_loss",
    "CreateCustomLossResponse": "custom_loss",
    "CreateModelRequest": "training",
    "CreateModelResponse": "training",
    "CreateSamplingSessionRequest": "sampling",
    "CreateSamplingSessionResponse": "sampling",
    "CreateSessionRequest": "session",
    "CreateSessionResponse": "session",
    "CreatedApiKey": "auth",
    "CurrentCheckpointStorageUsageItem": "admin",
    "CurrentCheckpointStorageUsageResponse": "admin",
    "Cursor": "runs",
    "CustomLossGraph": "custom_loss",
    "CustomLossInput": "custom_loss",
    "CustomLossInputRank": "custom_loss",
    "CustomLossNode": "custom_loss",
    "CustomLossNodeOp": "custom_loss",
    "Datum": "inputs",
    "DatumParam": "params",
    "DeviceAuthorizationResponse": "auth",
    "DimuonOptimizerConfig": "optimizers",
    "DimuonParams": "optimizers",
    "DmelChunk": "inputs",
    "EncodedTextChunk": "inputs",
    "EncodedTextChunkParam": "params",
    "ErrorBody": "errors",
    "ErrorResponse": "errors",
    "EventType": "telemetry",
    "ExternalWeightsUrlsResponse": "weights",
    "FailedSessionStatusQuery": "search",
    "FinishSessionRequest": "session",
    "ForwardBackwardInput": "training",
    "ForwardBackwardInputParam": "params",
    "ForwardBackwardOutput": "training",
    "ForwardBackwardRequest": "training",
    "ForwardRequest": "training",
    "FutureCompletion": "futures",
    "FutureFailed": "futures",
    "FutureFinished": "futures",
    "FutureRetrieveParams": "params",
    "FutureRetrieveRequest": "futures",
    "FutureRetrieveResponse": "futures",
    "FuturesRetrieveRequest": "futures",
    "FuturesRetrieveResponse": "futures",
    "GeneratedKey": "auth",
    "GenericEvent": "telemetry",
    "GenericEventParam": "params",
    "GetBillingUsageRequest": "admin",
    "GetCurrentCheckpointStorageUsageRequest": "admin",
    "GetInfoRequest": "training",
    "GetInfoResponse": "training",
    "GetSamplerResponse": "sampling",
    "GetServerCapabilitiesResponse": "service",
    "GetSessionResponse": "session",
    "HealthResponse": "service",
    "ImageAssetPointerChunk": "inputs",
    "ImageAssetPointerChunkParam": "params",
    "ImageChunk": "inputs",
    "ImageFormat": "inputs",
    "JoinSamplingSessionRequest": "sampling",
    "JoinSamplingSessionResponse": "sampling",
    "KeyRecordV1": "auth",
    "ListSessionsResponse": "session",
    "LoadWeightsRequest": "weights",
    "LoadWeightsResponse": "weights",
    "LocationPart": "errors",
    "LoraConfig": "training",
    "LoraConfigParam": "params",
    "LossConfigValue": "training",
    "LossFnInputs": "inputs",
    "LossFnInputsParam": "params",
    "LossFnOutput": "training",
    "LossFnType": "training",
    "ManualKey": "auth",
    "ModelCreateParams": "params",
    "ModelData": "training",
    "ModelGetInfoParams": "params",
    "ModelID": "training",
    "ModelInput": "inputs",
    "ModelInputChunk": "inputs",
    "ModelInputChunkParam": "params",
    "ModelInputParam": "params",
    "ModelUnloadParams": "params",
    "OptimParams": "optimizers",
    "OptimParamsBase": "optimizers",
    "OptimStepRequest": "training",
    "OptimStepResponse": "training",
    "OptimizerConfig": "optimizers",
    "OptimizerConfigBase": "optimizers",
    "OtherOptimParams": "optimizers",
    "OwnSearchOwner": "search",
    "ParsedCheckpointTinkerPath": "weights",
    "PromptAltTokens": "sampling",
    "PromptProvenanceSpan": "inputs",
    "ProvenanceSpan": "inputs",
    "ProvenanceSpans": "inputs",
    "QueueState": "futures",
    "RequestErrorCategory": "futures",
    "RequestFailedResponse": "futures",
    "RequestID": "futures",
    "SampleRequest": "sampling",
    "SampleResponse": "sampling",
    "SampledProvenanceSpan": "inputs",
    "SampledSequence": "sampling",
    "SamplingAsampleParams": "params",
    "SamplingClientKind": "weights",
    "SamplingParams": "sampling",
    "SamplingParamsParam": "params",
    "SamplingPrefillBillingEvent": "admin",
    "SamplingSampleBillingEvent": "admin",
    "SamplingSampleParams": "params",
    "SamplingSessionFuturesTarget": "futures",
    "SaveWeightsExternalRequest": "weights",
    "SaveWeightsExternalResponse": "weights",
    "SaveWeightsExternalResponseInternal": "weights",
    "SaveWeightsForSamplerRequest": "weights",
    "SaveWeightsForSamplerResponse": "weights",
    "SaveWeightsForSamplerResponseInternal": "weights",
    "SaveWeightsRequest": "weights",
    "SaveWeightsResponse": "weights",
    "SearchOwner": "search",
    "SelfApiKeyResponse": "auth",
    "SessionActive": "search",
    "SessionCancelled": "search",
    "SessionEndEvent": "telemetry",
    "SessionEndEventParam": "params",
    "SessionFailed": "search",
    "SessionFailedReason": "search",
    "SessionFailedRequestReason": "search",
    "SessionFailedSamplingSessionReason": "search",
    "SessionFailedTrainingRunReason": "search",
    "SessionFailureCategory": "search",
    "SessionFinishReason": "session",
    "SessionFinishStatus": "session",
    "SessionHeartbeatRequest": "session",
    "SessionHeartbeatResponse": "session",
    "SessionSearchCursor": "search",
    "SessionSearchRequest": "search",
    "SessionSearchResponse": "search",
    "SessionStartEvent": "telemetry",
    "SessionStartEventParam": "params",
    "SessionStatus": "search",
    "SessionStatusQuery": "search",
    "SessionSummary": "search",
    "SessionTraceExportPollResponse": "session",
    "SetCheckpointTtlRequest": "runs",
    "Severity": "telemetry",
    "StopCondition": "sampling",
    "StopReason": "sampling",
    "StorageBillingEvent": "admin",
    "StoredCredentialsV1": "auth",
    "SupportedModel": "service",
    "TelemetryBatch": "telemetry",
    "TelemetryEvent": "telemetry",
    "TelemetryEventParam": "params",
    "TelemetryResponse": "telemetry",
    "TelemetrySendParams": "params",
    "TelemetrySendRequest": "telemetry",
    "TensorData": "inputs",
    "TensorDataParam": "params",
    "TensorDtype": "inputs",
    "TokenLogprob": "sampling",
    "TraceExportStatus": "session",
    "TrainingBillingEvent": "admin",
    "TrainingForwardBackwardParams": "params",
    "TrainingForwardParams": "params",
    "TrainingOptimStepParams": "params",
    "TrainingRun": "runs",
    "TrainingRunIdsResponse": "runs",
    "TrainingRunsResponse": "runs",
    "TryAgainResponse": "futures",
    "UnhandledExceptionEvent": "telemetry",
    "UnhandledExceptionEventParam": "params",
    "UnloadModelRequest": "training",
    "UnloadModelResponse": "training",
    "UntypedAPIFuture": "futures",
    "UserSearchOwner": "search",
    "ValidationErrorBody": "errors",
    "ValidationErrorItem": "errors",
    "WeightLoadParams": "params",
    "WeightSaveForSamplerParams": "params",
    "WeightSaveParams": "params",
    "WeightsInfoRequest": "weights",
    "WeightsInfoResponse": "weights",
    "WhoamiResponse": "auth",
}
"""Family of each name."""

if TYPE_CHECKING:
    from .admin import AuditEventType as AuditEventType
    from .admin import AuditLogEntry as AuditLogEntry
    from .admin import AuditLogResponse as AuditLogResponse
    from .admin import BillingEventInfo as BillingEventInfo
    from .admin import BillingUsageEvent as BillingUsageEvent
    from .admin import BillingUsageResponse as BillingUsageResponse
    from .admin import BillingUsageSession as BillingUsageSession
    from .admin import CheckpointBillingEvent as CheckpointBillingEvent
    from .admin import CurrentCheckpointStorageUsageItem as CurrentCheckpointStorageUsageItem
    from .admin import CurrentCheckpointStorageUsageResponse as CurrentCheckpointStorageUsageResponse
    from .admin import GetBillingUsageRequest as GetBillingUsageRequest
    from .admin import GetCurrentCheckpointStorageUsageRequest as GetCurrentCheckpointStorageUsageRequest
    from .admin import SamplingPrefillBillingEvent as SamplingPrefillBillingEvent
    from .admin import SamplingSampleBillingEvent as SamplingSampleBillingEvent
    from .admin import StorageBillingEvent as StorageBillingEvent
    from .admin import TrainingBillingEvent as TrainingBillingEvent
    from .auth import AccessTokenResponse as AccessTokenResponse
    from .auth import ApiKeyDetails as ApiKeyDetails
    from .auth import ApiKeyOrgDetails as ApiKeyOrgDetails
    from .auth import ApiKeyUserDetails as ApiKeyUserDetails
    from .auth import AuthConfigResponse as AuthConfigResponse
    from .auth import AuthErrorResponse as AuthErrorResponse
    from .auth import AuthTokenRequest as AuthTokenRequest
    from .auth import AuthTokenResponse as AuthTokenResponse
    from .auth import ClientConfigRequest as ClientConfigRequest
    from .auth import ClientConfigResponse as ClientConfigResponse
    from .auth import ClientDynamicConfigResponse as ClientDynamicConfigResponse
    from .auth import CreateApiKeyRequest as CreateApiKeyRequest
    from .auth import CreatedApiKey as CreatedApiKey
    from .auth import DeviceAuthorizationResponse as DeviceAuthorizationResponse
    from .auth import GeneratedKey as GeneratedKey
    from .auth import KeyRecordV1 as KeyRecordV1
    from .auth import ManualKey as ManualKey
    from .auth import SelfApiKeyResponse as SelfApiKeyResponse
    from .auth import StoredCredentialsV1 as StoredCredentialsV1
    from .auth import WhoamiResponse as WhoamiResponse
    from .custom_loss import CreateCustomLossRequest as CreateCustomLossRequest
    from .custom_loss import CreateCustomLossResponse as CreateCustomLossResponse
    from .custom_loss import CustomLossGraph as CustomLossGraph
    from .custom_loss import CustomLossInput as CustomLossInput
    from .custom_loss import CustomLossInputRank as CustomLossInputRank
    from .custom_loss import CustomLossNode as CustomLossNode
    from .custom_loss import CustomLossNodeOp as CustomLossNodeOp
    from .errors import ErrorBody as ErrorBody
    from .errors import ErrorResponse as ErrorResponse
    from .errors import LocationPart as LocationPart
    from .errors import ValidationErrorBody as ValidationErrorBody
    from .errors import ValidationErrorItem as ValidationErrorItem
    from .futures import CancelFutureRequest as CancelFutureRequest
    from .futures import CompleteMetadataResponse as CompleteMetadataResponse
    from .futures import FutureCompletion as FutureCompletion
    from .futures import FutureFailed as FutureFailed
    from .futures import FutureFinished as FutureFinished
    from .futures import FutureRetrieveRequest as FutureRetrieveRequest
    from .futures import FutureRetrieveResponse as FutureRetrieveResponse
    from .futures import FuturesRetrieveRequest as FuturesRetrieveRequest
    from .futures import FuturesRetrieveResponse as FuturesRetrieveResponse
    from .futures import QueueState as QueueState
    from .futures import RequestErrorCategory as RequestErrorCategory
    from .futures import RequestFailedResponse as RequestFailedResponse
    from .futures import RequestID as RequestID
    from .futures import SamplingSessionFuturesTarget as SamplingSessionFuturesTarget
    from .futures import TryAgainResponse as TryAgainResponse
    from .futures import UntypedAPIFuture as UntypedAPIFuture
    from .inputs import Datum as Datum
    from .inputs import DmelChunk as DmelChunk
    from .inputs import EncodedTextChunk as EncodedTextChunk
    from .inputs import ImageAssetPointerChunk as ImageAssetPointerChunk
    from .inputs import ImageChunk as ImageChunk
    from .inputs import ImageFormat as ImageFormat
    from .inputs import LossFnInputs as LossFnInputs
    from .inputs import ModelInput as ModelInput
    from .inputs import ModelInputChunk as ModelInputChunk
    from .inputs import PromptProvenanceSpan as PromptProvenanceSpan
    from .inputs import ProvenanceSpan as ProvenanceSpan
    from .inputs import ProvenanceSpans as ProvenanceSpans
    from .inputs import SampledProvenanceSpan as SampledProvenanceSpan
    from .inputs import TensorData as TensorData
    from .inputs import TensorDtype as TensorDtype
    from .optimizers import AdamOptimizerConfig as AdamOptimizerConfig
    from .optimizers import AdamParams as AdamParams
    from .optimizers import DimuonOptimizerConfig as DimuonOptimizerConfig
    from .optimizers import DimuonParams as DimuonParams
    from .optimizers import OptimizerConfig as OptimizerConfig
    from .optimizers import OptimizerConfigBase as OptimizerConfigBase
    from .optimizers import OptimParams as OptimParams
    from .optimizers import OptimParamsBase as OptimParamsBase
    from .optimizers import OtherOptimParams as OtherOptimParams
    from .params import DatumParam as DatumParam
    from .params import EncodedTextChunkParam as EncodedTextChunkParam
    from .params import ForwardBackwardInputParam as ForwardBackwardInputParam
    from .params import FutureRetrieveParams as FutureRetrieveParams
    from .params import GenericEventParam as GenericEventParam
    from .params import ImageAssetPointerChunkParam as ImageAssetPointerChunkParam
    from .params import LoraConfigParam as LoraConfigParam
    from .params import LossFnInputsParam as LossFnInputsParam
    from .params import ModelCreateParams as ModelCreateParams
    from .params import ModelGetInfoParams as ModelGetInfoParams
    from .params import ModelInputChunkParam as ModelInputChunkParam
    from .params import ModelInputParam as ModelInputParam
    from .params import ModelUnloadParams as ModelUnloadParams
    from .params import SamplingAsampleParams as SamplingAsampleParams
    from .params import SamplingParamsParam as SamplingParamsParam
    from .params import SamplingSampleParams as SamplingSampleParams
    from .params import SessionEndEventParam as SessionEndEventParam
    from .params import SessionStartEventParam as SessionStartEventParam
    from .params import TelemetryEventParam as TelemetryEventParam
    from .params import TelemetrySendParams as TelemetrySendParams
    from .params import TensorDataParam as TensorDataParam
    from .params import TrainingForwardBackwardParams as TrainingForwardBackwardParams
    from .params import TrainingForwardParams as TrainingForwardParams
    from .params import TrainingOptimStepParams as TrainingOptimStepParams
    from .params import UnhandledExceptionEventParam as UnhandledExceptionEventParam
    from .params import WeightLoadParams as WeightLoadParams
    from .params import WeightSaveForSamplerParams as WeightSaveForSamplerParams
    from .params import WeightSaveParams as WeightSaveParams
    from .runs import Checkpoint as Checkpoint
    from .runs import CheckpointArchiveUrlResponse as CheckpointArchiveUrlResponse
    from .runs import CheckpointsListResponse as CheckpointsListResponse
    from .runs import CheckpointType as CheckpointType
    from .runs import Cursor as Cursor
    from .runs import SetCheckpointTtlRequest as SetCheckpointTtlRequest
    from .runs import TrainingRun as TrainingRun
    from .runs import TrainingRunIdsResponse as TrainingRunIdsResponse
    from .runs import TrainingRunsResponse as TrainingRunsResponse
    from .sampling import ComputeLogprobsResponse as ComputeLogprobsResponse
    from .sampling import CreateSamplingSessionRequest as CreateSamplingSessionRequest
    from .sampling import CreateSamplingSessionResponse as CreateSamplingSessionResponse
    from .sampling import GetSamplerResponse as GetSamplerResponse
    from .sampling import JoinSamplingSessionRequest as JoinSamplingSessionRequest
    from .sampling import JoinSamplingSessionResponse as JoinSamplingSessionResponse
    from .sampling import PromptAltTokens as PromptAltTokens
    from .sampling import SampledSequence as SampledSequence
    from .sampling import SampleRequest as SampleRequest
    from .sampling import SampleResponse as SampleResponse
    from .sampling import SamplingParams as SamplingParams
    from .sampling import StopCondition as StopCondition
    from .sampling import StopReason as StopReason
    from .sampling import TokenLogprob as TokenLogprob
    from .search import AccessibleSearchOwner as AccessibleSearchOwner
    from .search import ActiveSessionStatusQuery as ActiveSessionStatusQuery
    from .search import CancelledSessionStatusQuery as CancelledSessionStatusQuery
    from .search import ClientFinishedSessionStatusQuery as ClientFinishedSessionStatusQuery
    from .search import ClientSessionFinished as ClientSessionFinished
    from .search import ClientSessionFinishErrored as ClientSessionFinishErrored
    from .search import ClientSessionFinishInterrupted as ClientSessionFinishInterrupted
    from .search import ClientSessionFinishReason as ClientSessionFinishReason
    from .search import ClientSessionFinishReasonType as ClientSessionFinishReasonType
    from .search import ClientSessionFinishSuccess as ClientSessionFinishSuccess
    from .search import FailedSessionStatusQuery as FailedSessionStatusQuery
    from .search import OwnSearchOwner as OwnSearchOwner
    from .search import SearchOwner as SearchOwner
    from .search import SessionActive as SessionActive
    from .search import SessionCancelled as SessionCancelled
    from .search import SessionFailed as SessionFailed
    from .search import SessionFailedReason as SessionFailedReason
    from .search import SessionFailedRequestReason as SessionFailedRequestReason
    from .search import SessionFailedSamplingSessionReason as SessionFailedSamplingSessionReason
    from .search import SessionFailedTrainingRunReason as SessionFailedTrainingRunReason
    from .search import SessionFailureCategory as SessionFailureCategory
    from .search import SessionSearchCursor as SessionSearchCursor
    from .search import SessionSearchRequest as SessionSearchRequest
    from .search import SessionSearchResponse as SessionSearchResponse
    from .search import SessionStatus as SessionStatus
    from .search import SessionStatusQuery as SessionStatusQuery
    from .search import SessionSummary as SessionSummary
    from .search import UserSearchOwner as UserSearchOwner
    from .service import GetServerCapabilitiesResponse as GetServerCapabilitiesResponse
    from .service import HealthResponse as HealthResponse
    from .service import SupportedModel as SupportedModel
    from .session import AccessScope as AccessScope
    from .session import AssignSessionProjectRequest as AssignSessionProjectRequest
    from .session import CreateSessionRequest as CreateSessionRequest
    from .session import CreateSessionResponse as CreateSessionResponse
    from .session import FinishSessionRequest as FinishSessionRequest
    from .session import GetSessionResponse as GetSessionResponse
    from .session import ListSessionsResponse as ListSessionsResponse
    from .session import SessionFinishReason as SessionFinishReason
    from .session import SessionFinishStatus as SessionFinishStatus
    from .session import SessionHeartbeatRequest as SessionHeartbeatRequest
    from .session import SessionHeartbeatResponse as SessionHeartbeatResponse
    from .session import SessionTraceExportPollResponse as SessionTraceExportPollResponse
    from .session import TraceExportStatus as TraceExportStatus
    from .telemetry import EventType as EventType
    from .telemetry import GenericEvent as GenericEvent
    from .telemetry import SessionEndEvent as SessionEndEvent
    from .telemetry import SessionStartEvent as SessionStartEvent
    from .telemetry import Severity as Severity
    from .telemetry import TelemetryBatch as TelemetryBatch
    from .telemetry import TelemetryEvent as TelemetryEvent
    from .telemetry import TelemetryResponse as TelemetryResponse
    from .telemetry import TelemetrySendRequest as TelemetrySendRequest
    from .telemetry import UnhandledExceptionEvent as UnhandledExceptionEvent
    from .training import CreateModelRequest as CreateModelRequest
    from .training import CreateModelResponse as CreateModelResponse
    from .training import ForwardBackwardInput as ForwardBackwardInput
    from .training import ForwardBackwardOutput as ForwardBackwardOutput
    from .training import ForwardBackwardRequest as ForwardBackwardRequest
    from .training import ForwardRequest as ForwardRequest
    from .training import GetInfoRequest as GetInfoRequest
    from .training import GetInfoResponse as GetInfoResponse
    from .training import LoraConfig as LoraConfig
    from .training import LossConfigValue as LossConfigValue
    from .training import LossFnOutput as LossFnOutput
    from .training import LossFnType as LossFnType
    from .training import ModelData as ModelData
    from .training import ModelID as ModelID
    from .training import OptimStepRequest as OptimStepRequest
    from .training import OptimStepResponse as OptimStepResponse
    from .training import UnloadModelRequest as UnloadModelRequest
    from .training import UnloadModelResponse as UnloadModelResponse
    from .weights import CopyWeightsRequest as CopyWeightsRequest
    from .weights import CopyWeightsResponse as CopyWeightsResponse
    from .weights import ExternalWeightsUrlsResponse as ExternalWeightsUrlsResponse
    from .weights import LoadWeightsRequest as LoadWeightsRequest
    from .weights import LoadWeightsResponse as LoadWeightsResponse
    from .weights import ParsedCheckpointTinkerPath as ParsedCheckpointTinkerPath
    from .weights import SamplingClientKind as SamplingClientKind
    from .weights import SaveWeightsExternalRequest as SaveWeightsExternalRequest
    from .weights import SaveWeightsExternalResponse as SaveWeightsExternalResponse
    from .weights import SaveWeightsExternalResponseInternal as SaveWeightsExternalResponseInternal
    from .weights import SaveWeightsForSamplerRequest as SaveWeightsForSamplerRequest
    from .weights import SaveWeightsForSamplerResponse as SaveWeightsForSamplerResponse
    from .weights import SaveWeightsForSamplerResponseInternal as SaveWeightsForSamplerResponseInternal
    from .weights import SaveWeightsRequest as SaveWeightsRequest
    from .weights import SaveWeightsResponse as SaveWeightsResponse
    from .weights import WeightsInfoRequest as WeightsInfoRequest
    from .weights import WeightsInfoResponse as WeightsInfoResponse

else:
    # Type checkers see the imports instead, and so report names that do not exist.
    __all__ = list(_FAMILIES)

    def __getattr__(name: str) -> Any:
        """Return a type, and import its family."""
        family = _FAMILIES.get(name)
        if family is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{family}"), name)
        return value

    def __dir__() -> list[str]:
        """Return the names of all types."""
        return sorted({*globals(), *__all__})
