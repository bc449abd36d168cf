# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family sampling."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_base.mixins import (
    SampledSequenceMixin,
    SampleResponseMixin,
)
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

from .inputs import ModelInput, TensorData


@define
class ComputeLogprobsResponse(AllowExtra):
    """Logprobs of a prompt; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    logprobs: list[float | None]
    """Logprob (nats) of each token; null where a token has no logprob."""
    type: Literal["compute_logprobs"] = field(default="compute_logprobs")
    """Tag of the result."""


@define
class CreateSamplingSessionRequest(ForbidExtra):
    """Request to open a sampling session on base_model or on model_path.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """Session of the sampling session."""
    sampling_session_seq_id: int = field(validator=field_validator())
    """Index among the session's sampling sessions, from 0."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model to sample from."""
    model_path: str | None = field(default=None, validator=field_validator())
    """The tinker:// path of the weights to sample from."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session", validator=field_validator())
    """Tag of the request."""


@define
class CreateSamplingSessionResponse(AllowExtra):
    """The open sampling session.

    Wire: 0.3.0 and later.
    """

    sampling_session_id: str
    """Identifies the sampling session in later requests."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session")
    """Tag of the response."""


@define
class GetSamplerResponse(AllowExtra):
    """Base model and weights of a sampler.

    Wire: 0.6.0 and later.

    A field that the server leaves out or garbles is None, except sampler_id and model_path.
    """

    _essential = frozenset({"sampler_id", "model_path"})

    sampler_id: str
    """The sampler."""
    base_model: str
    """Name of the base model."""
    model_path: str | None = field(default=None)
    """The tinker:// path of the weights; null for the base model itself."""


@define
class JoinSamplingSessionRequest(ForbidExtra):
    """Request for the number of a copy of a sampling client.

    Wire: 0.32.0 and later.
    """

    sampling_session_id: str = field(validator=field_validator())
    """The sampling session."""
    type: Literal["join_sampling_session"] = field(default="join_sampling_session", validator=field_validator())
    """Tag of the request."""


@define
class JoinSamplingSessionResponse(AllowExtra):
    """The number of a copy of a sampling client.

    Wire: 0.32.0 and later.
    """

    client_counter: int
    """The number; seq_ids of the copy start at the number times SEQ_IDS_PER_COPY."""
    type: Literal["join_sampling_session"] = field(default="join_sampling_session")
    """Tag of the response."""


@define(kw_only=False)
class PromptAltTokens(DataclassMethods, AllowExtra):
    """Alternatives sampled at each prompt position but the first, as matrices with one row per position.

    Wire: 0.31.0 and later.
    """

    tokens: TensorData
    """Token ids (int64)."""
    logprobs: TensorData
    """Logprob (nats, float32) of each token."""


@define
class SampleRequest(ForbidExtra):
    """Request for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 and later.
    """

    prompt: ModelInput = field(validator=field_validator())
    """Prompt to continue."""
    sampling_params: SamplingParams = field(validator=field_validator())
    """Parameters of token sampling."""
    num_samples: int = field(default=1, validator=field_validator())
    """Number of samples."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Base model; without a sampling session."""
    model_path: str | None = field(default=None, validator=field_validator())
    """The tinker:// path of the weights; without a sampling session."""
    sampling_session_id: str | None = field(default=None, validator=field_validator())
    """The sampling session. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the sampling session's requests, from 0; required with sampling_session_id. (wire 0.3.0 and later)"""
    prompt_logprobs: bool | None = field(default=None, validator=field_validator())
    """True or false to return logprobs of the prompt or not; null for the server's choice."""
    topk_prompt_logprobs: int = field(default=0, validator=field_validator())
    """Number of most likely tokens to return at each position of the prompt; 0 for none. (wire 0.3.0 and later)"""
    record_stability_info: bool | None = field(default=None, validator=field_validator())
    """True to record data on stability; null for the server's choice. (wire 0.26.2 and later)"""
    topk_sample_logprobs: int = field(default=0, validator=field_validator())
    """Number of most likely tokens to return at each position of the samples; 0 for none. (wire 0.29.1 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, validator=field_validator())
    """Token ids whose logprobs to return (int64, one row per prompt position but the first; -1 for none); null for none. (wire 0.30.4 and later)"""
    prompt_alt_tokens_k: int = field(default=0, validator=field_validator())
    """Number of alternatives to sample at each position of the prompt but the first; 0 for none. (wire 0.31.0 and later)"""
    prompt_logprobs_last_n: int | None = field(default=None, validator=field_validator())
    """Number of tokens at the end of the prompt with logprobs, from 1 to the length of the prompt minus 1; only if prompt_logprobs is true, and null for all. (wire 0.33.1 and later)"""
    type: Literal["sample"] = field(default="sample", validator=field_validator())
    """Tag of the request."""


@define
class SampleResponse(SampleResponseMixin, DataclassMethods, AllowExtra):
    """Result of asample.

    Wire: 0.1.0 to before 0.25.0.
    """

    sequences: list[SampledSequence]
    """The samples."""
    _prompt_logprobs: list[float | None] | None = field(default=None, alias="prompt_logprobs")
    """Logprob (nats) of each token of the prompt given the tokens before; null for the first."""
    _topk_prompt_logprobs: list[list[TokenLogprob] | None] | None = field(default=None, alias="topk_prompt_logprobs")
    """Most likely tokens at each position of the prompt, best first; null without tokens. (wire 0.3.0 and later)"""
    prompt_cache_hit_tokens: int = field(default=0)
    """Number of tokens of the prompt that came from the cache. (wire 0.23.4 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, metadata={"protobuf_only": True})
    """Logprobs (nats, float32) of the tokens in target_prompt_logprobs, in its shape. (wire 0.30.4 and later)"""
    prompt_alt_tokens: PromptAltTokens | None = field(default=None, metadata={"protobuf_only": True})
    """Alternatives requested by prompt_alt_tokens_k. (wire 0.31.0 and later)"""
    type: Literal["sample"] = field(default="sample")
    """Tag of the result."""


@define
class SampledSequence(SampledSequenceMixin, DataclassMethods, AllowExtra):
    """One sample.

    Wire: 0.1.0 to before 0.25.0.
    """

    stop_reason: StopReason | str
    """Reason of the end; clients pass on unknown values."""
    _tokens: list[int] = field(alias="tokens")
    """Sampled token ids."""
    _logprobs: list[float] | None = field(default=None, alias="logprobs")
    """Logprob (nats) of each sampled token."""
    sequence_id: str | None = field(default=None, metadata={"protobuf_only": True})
    """Identifier of the sample in provenance spans, one of the sample_sequence_ids of its future. (wire 0.26.2 and later)"""
    _topk_logprobs: list[list[TokenLogprob] | None] | None = field(
        default=None, alias="topk_logprobs", metadata={"protobuf_only": True}
    )
    """Most likely tokens at each position of the sample, best first; null without tokens. (wire 0.28.1 and later)"""


@define
class SamplingParams(AllowExtra):
    """Parameters of token sampling.

    Wire: 0.1.0 and later.

    Example:
        >>> params = tinker.SamplingParams(max_tokens=64, temperature=0.7, seed=1)
        >>> params.temperature
        0.7
    """

    max_tokens: int | None = field(default=None, validator=field_validator())
    """Maximum number of tokens to sample; null for the server's limit."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of sampling; null for a random one."""
    stop: StopCondition | None = field(default=None, validator=field_validator())
    """Stop condition before max_tokens; null for the model's end token only."""
    temperature: float = field(default=1, validator=field_validator())
    """Divisor of the logits; 0 always takes the most likely token."""
    top_k: int = field(default=-1, validator=field_validator())
    """Number of most likely tokens to sample from; -1 for all."""
    top_p: float = field(default=1, validator=field_validator())
    """Total probability of the most likely tokens to sample from."""


StopCondition: TypeAlias = str | list[str] | list[int]
"""
Stop condition of sampling: a string, one of several strings, or one of several token ids.

Wire: 0.1.0 and later.
"""


StopReason: TypeAlias = Literal["length", "stop"]
"""
Reason why a sample ended: max_tokens (length) or a stop condition (stop).

Wire: 0.1.0 and later.
"""


TokenLogprob: TypeAlias = tuple[int, float]
"""
A token id and its logprob (nats).

Wire: 0.3.0 and later.
"""
