"""Decisions of people that the history of the contract needed, each with its reason: no release shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """One decision, which explains the differences that its pattern matches."""

    since: str
    title: str
    reason: str
    pattern: str

    def explains(self, difference: str) -> bool:
        """Report whether a difference follows from this decision."""
        return re.search(self.pattern, difference) is not None


DECISIONS = (
    Decision(
        "any",
        "Essential fields of responses",
        "A policy of readers: which fields a client cannot do without.",
        r"x-essential is",
    ),
    Decision(
        "0.7.0",
        "queue_state_reason of TryAgainResponse",
        "No type of the SDK declares the field; the client reads it from the raw body.",
        r"queue_state_reason",
    ),
    Decision(
        "0.14.0",
        "CompleteMetadataResponse as a result",
        "No type of the SDK declares it; the client reads it from the raw body.",
        r"CompleteMetadataResponse is no longer a member",
    ),
    Decision(
        "0.18.2",
        "Tags of chunks",
        "Clients omit tags until 0.16.1: the options of their dumps decide it, not the types.",
        r"request (ModelInputChunk|(EncodedText|ImageAssetPointer|Image|Dmel)Chunk\.type): ",
    ),
    Decision(
        "0.20.0",
        "402 of the calls that may cost money",
        "Only the retry loop of the client shows the status, as a number.",
        r"response 402: ",
    ),
    Decision(
        "0.22.7",
        "Body of the archive call",
        "The client reads the raw response, so the type of its body is any.",
        r"checkpoints/{}/archive: response 200",
    ),
    Decision(
        "0.22.7",
        "Content-Encoding of forward_backward",
        "The client sets the header in code that compresses the body.",
        r"header Content-Encoding",
    ),
    Decision(
        "0.23.4",
        "Mixin of DmelChunk",
        "Conversions of models are code of this package.",
        r"model DmelChunk: x-mixin",
    ),
    Decision(
        "0.24.1",
        "Open values of two fields of responses",
        "Readers pass on values that they do not know; the type of the SDK rejects them.",
        r"TraceExportPollResponseStatus:|SessionFailedCategory: the value",
    ),
    Decision(
        "0.26.2",
        "Body of auth-config",
        "The client takes the body as text, and reads it under two names.",
        r"auth-config|_AuthConfigResponse",
    ),
    Decision(
        "0.26.2",
        "Error statuses of new calls",
        "A release does not show the statuses of a call; the absorption follows similar calls.",
        r"(auth/apikey|sessions/search|GET /api/v1/sessions/{}): response (4\d\d|ValidationError)|/me: response 404",
    ),
    Decision(
        "0.26.2",
        "Authentication of the call that creates a key",
        "The client sets the header of the sign-in itself.",
        r"auth/apikey: request security",
    ),
    Decision(
        "0.26.2",
        "Provenance spans",
        "Only messages have them, so no JSON type of the SDK declares them.",
        r"Provenance|_spans|SampledSequence\.sequence_id",
    ),
    Decision(
        "0.28.1",
        "topk_logprobs of samples",
        "Only the message has them, under another name and as bytes.",
        r"SampledSequence\.topk_logprobs",
    ),
    Decision(
        "0.29.1",
        "Keys of OptimStepRequest",
        "A serializer of the SDK writes one field under two keys.",
        r"OptimStepRequest|OtherOptimParams",
    ),
    Decision(
        "0.29.1",
        "Limits of numbers and lists",
        "Docstrings and validators of the SDK have them, not the types of its fields.",
        r"ttl_seconds: a number|prompt_logprobs_last_n: |CreateCustomLossRequest\.inputs: |CustomLossInput\.name: ",
    ),
    Decision(
        "0.30.4",
        "target_prompt_logprobs of samples",
        "Only the message has them; the model holds a tensor.",
        r"target_prompt_logprobs",
    ),
    Decision(
        "0.31.0",
        "prompt_alt_tokens of samples",
        "Only the message has them; the model holds two tensors.",
        r"rompt_alt_tokens|PromptAltTokens",
    ),
    Decision(
        "0.34.0",
        "Headers of versions and deprecation",
        "The SDK sets and reads them in the code of its transport.",
        r"header x-(sdk|deprecation)",
    ),
    Decision(
        "0.34.0",
        "X-Tinker-Weights-Access-Token of copy_weights",
        "The client sets the header in a helper.",
        r"header X-Tinker-Weights-Access-Token",
    ),
    Decision(
        "0.36.0",
        "Tags of the unions of a search",
        "The SDK only writes these; readers distinguish them by a field.",
        r"model (SearchOwner|SessionStatusQuery): x-untagged|request \w*(SearchOwner|SessionStatusQuery)(\.type)?:",
    ),
    Decision(
        "0.38.0",
        "WWW-Authenticate of 401",
        "The client reads the header in its retry loop.",
        r"header WWW-Authenticate",
    ),
)
