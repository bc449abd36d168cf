# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Constants of the wire, which clients and servers share."""

from __future__ import annotations

from collections.abc import Mapping

LOSS_INPUT_DTYPES: Mapping[str, str] = {
    "target_tokens": "int64",
    "weights": "float32",
    "advantages": "float32",
    "logprobs": "float32",
    "clip_low_threshold": "float32",
    "clip_high_threshold": "float32",
    "sequence_ratio_mask": "float32",
}
"""Constant of LossFnInputs."""
CUSTOM_LOSS_FIRST_INPUT: str = "logprobs"
"""Constant of CreateCustomLossRequest."""
CUSTOM_LOSS_MAX_INPUTS: int = 16
"""Constant of CreateCustomLossRequest."""
CUSTOM_LOSS_INPUT_NAME: str = "[a-z_][a-z0-9_]{0,63}"
"""Constant of CreateCustomLossRequest."""
CUSTOM_LOSS_METRIC_NAME: str = "custom/[a-z0-9_./-]{1,64}:(sum|mean)"
"""Constant of CreateCustomLossRequest."""
SEQ_IDS_PER_COPY: int = 1000000000
"""Constant of JoinSamplingSessionResponse."""
TINKER_SCHEME: str = "tinker://"
"""Constant of CheckpointType."""
CHECKPOINT_SEGMENTS: Mapping[str, str] = {
    "training": "weights",
    "sampler": "sampler_weights",
    "external": "external_weights",
}
"""Constant of CheckpointType."""
PROTOBUF_OPERATIONS: Mapping[str, str] = {"forward": "forward_backward", "forward_backward": "forward_backward"}
"""Operations whose requests may be protobuf, each with the operation that receives the message."""
RESULT_TYPES: Mapping[str, str] = {
    "create_model": "CreateModelResponse",
    "unload_model": "UnloadModelResponse",
    "forward": "ForwardBackwardOutput",
    "forward_backward": "ForwardBackwardOutput",
    "optim_step": "OptimStepResponse",
    "create_custom_loss": "CreateCustomLossResponse",
    "save_weights": "SaveWeightsResponse",
    "save_weights_for_sampler": "SaveWeightsForSamplerResponseInternal",
    "load_weights": "LoadWeightsResponse",
    "save_weights_external": "SaveWeightsExternalResponseInternal",
    "asample": "SampleResponse",
}
"""Result type of each operation that the server queues."""
