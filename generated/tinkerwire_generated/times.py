# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""When things of the wire exist, as (since, until); what is in every version is not listed."""

from __future__ import annotations

from collections.abc import Mapping

Span = tuple[str, "str | None"]

NEWEST = "0.16.1"
"""The newest wire version of the contract."""

TYPE_TIMES: Mapping[str, Span] = {
    "AccessScope": ("0.15.0", None),
    "CreateSessionRequest": ("0.3.0", None),
    "CreateSessionResponse": ("0.3.0", None),
    "SessionHeartbeatRequest": ("0.3.0", None),
    "SessionHeartbeatResponse": ("0.3.0", None),
    "ListSessionsResponse": ("0.5.1", None),
    "GetSessionResponse": ("0.5.1", None),
    "ImageChunk": ("0.3.0", None),
    "ForwardRequest": ("0.3.0", "0.25.0"),
    "ForwardBackwardRequest": ("0.3.0", "0.25.0"),
    "ForwardBackwardOutput": ("0.1.0", "0.25.0"),
    "SaveWeightsForSamplerResponseInternal": ("0.3.0", None),
    "WeightsInfoRequest": ("0.6.0", None),
    "WeightsInfoResponse": ("0.6.0", None),
    "CreateSamplingSessionRequest": ("0.3.0", None),
    "CreateSamplingSessionResponse": ("0.3.0", None),
    "TokenLogprob": ("0.3.0", None),
    "SampledSequence": ("0.1.0", "0.25.0"),
    "SampleResponse": ("0.1.0", "0.25.0"),
    "GetSamplerResponse": ("0.6.0", None),
    "FutureRetrieveRequest": ("0.3.0", None),
    "QueueState": ("0.2.0", None),
    "RequestErrorCategory": ("0.3.0", None),
    "RequestFailedResponse": ("0.3.0", None),
    "CompleteMetadataResponse": ("0.14.0", None),
    "CheckpointArchiveUrlResponse": ("0.2.0", "0.36.0"),
    "SetCheckpointTtlRequest": ("0.13.1", None),
    "TelemetrySendRequest": ("0.3.0", None),
}

FIELD_TIMES: Mapping[str, Mapping[str, Span]] = {
    "CreateSessionRequest": {"project_id": ("0.15.0", None)},
    "ImageChunk": {
        "height": ("0.3.0", "0.6.0"),
        "width": ("0.3.0", "0.6.0"),
        "tokens": ("0.3.0", "0.6.0"),
        "expected_tokens": ("0.6.0", None),
    },
    "ImageAssetPointerChunk": {
        "height": ("0.1.0", "0.6.0"),
        "width": ("0.1.0", "0.6.0"),
        "tokens": ("0.1.0", "0.6.0"),
        "expected_tokens": ("0.6.0", None),
    },
    "CreateModelRequest": {
        "session_id": ("0.3.0", None),
        "model_seq_id": ("0.3.0", None),
        "user_metadata": ("0.2.0", None),
    },
    "ModelData": {"tokenizer_id": ("0.3.0", None)},
    "ForwardBackwardInput": {"loss_fn_config": ("0.3.0", None)},
    "AdamParams": {"weight_decay": ("0.7.0", None), "grad_clip_norm": ("0.7.0", None)},
    "OptimStepRequest": {"seq_id": ("0.3.0", None)},
    "SaveWeightsRequest": {"seq_id": ("0.3.0", None), "ttl_seconds": ("0.9.0", None)},
    "SaveWeightsForSamplerRequest": {
        "sampling_session_seq_id": ("0.3.0", None),
        "seq_id": ("0.3.0", None),
        "ttl_seconds": ("0.9.0", None),
    },
    "LoadWeightsRequest": {"optimizer": ("0.6.0", None), "seq_id": ("0.3.0", None)},
    "WeightsInfoResponse": {
        "train_unembed": ("0.8.1", None),
        "train_mlp": ("0.8.1", None),
        "train_attn": ("0.8.1", None),
    },
    "SampleRequest": {
        "sampling_session_id": ("0.3.0", None),
        "seq_id": ("0.3.0", None),
        "topk_prompt_logprobs": ("0.3.0", None),
    },
    "SampleResponse": {"topk_prompt_logprobs": ("0.3.0", None)},
    "FutureRetrieveRequest": {"allow_metadata_only": ("0.14.0", None)},
    "TryAgainResponse": {"queue_state": ("0.2.0", None), "queue_state_reason": ("0.7.0", None)},
    "Checkpoint": {"size_bytes": ("0.4.0", None), "public": ("0.4.0", None), "expires_at": ("0.9.0", None)},
    "CheckpointsListResponse": {"cursor": ("0.4.0", None)},
    "TrainingRun": {"user_metadata": ("0.2.0", None)},
}

REQUIRED_TIMES: Mapping[str, Mapping[str, tuple[Span, ...]]] = {
    "ImageChunk": {"height": (("0.3.0", "0.6.0"),), "width": (("0.3.0", "0.6.0"),), "tokens": (("0.3.0", "0.6.0"),)},
    "ImageAssetPointerChunk": {
        "height": (("0.3.0", "0.6.0"),),
        "width": (("0.3.0", "0.6.0"),),
        "tokens": (("0.3.0", "0.6.0"),),
    },
    "LoadWeightsRequest": {"optimizer": (("0.6.0", None),)},
}

VALUE_TIMES: Mapping[str, Mapping[str, Mapping[str, Span]]] = {
    "ForwardBackwardInput": {"loss_fn": {"cispo": ("0.6.0", None), "dro": ("0.6.0", None)}}
}

OPERATION_TIMES: Mapping[str, Span] = {
    "create_session": ("0.3.0", None),
    "session_heartbeat": ("0.3.0", None),
    "list_sessions": ("0.5.1", None),
    "get_session": ("0.5.1", None),
    "unload_model": ("0.1.0", "0.26.2"),
    "forward": ("0.1.0", "0.25.0"),
    "weights_info": ("0.6.0", None),
    "create_sampling_session": ("0.3.0", None),
    "get_sampler": ("0.6.0", None),
    "list_model_checkpoints": ("0.1.0", "0.4.0"),
    "list_checkpoints": ("0.4.0", None),
    "list_user_checkpoints": ("0.4.0", None),
    "publish_checkpoint": ("0.4.0", None),
    "unpublish_checkpoint": ("0.4.0", None),
    "set_checkpoint_ttl": ("0.13.1", None),
    "get_checkpoint_archive_url": ("0.1.0", "0.36.0"),
}

PARAMETER_TIMES: Mapping[str, Mapping[str, Span]] = {
    "list_sessions": {"access_scope": ("0.15.0", None)},
    "get_session": {"access_scope": ("0.15.0", None)},
    "list_training_runs": {"access_scope": ("0.15.0", None)},
    "get_training_run": {"access_scope": ("0.15.0", None)},
}
