"""Prompt logprobs of upstreams that omit the null of the first token."""

from __future__ import annotations

import attrs
import orjson

from tinkerwire_base.call import WireResponse
from tinkerwire_generated import models

from .._server.http.protobuf import encode_result
from .._usage import exact_length
from .._wire import codec
from . import memory as kinds
from .front import ClientRequest, json_object
from .memory import Memory


def _may_ask(content: bytes) -> bool:
    """Return whether the body of a sample may ask for prompt logprobs; an escape may hide the name."""
    return b'"prompt_logprobs"' in content or b"\\" in content


class PromptLogprobs:
    """Completes the results of samples that ask for prompt logprobs: one per token, null for the first.

    Args:
        memory: keeps the lengths of the prompts.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def remember(self, request: ClientRequest, response: WireResponse) -> None:
        """Keep the length of the prompt of a request that was accepted."""
        if response.status >= 300 or not _may_ask(request.content):
            return
        body: models.SampleRequest = request.body
        length = exact_length(body.prompt) if body.prompt_logprobs else None
        request_id = json_object(response.content).get("request_id")
        if length is not None and isinstance(request_id, str):
            self._memory.put(kinds.PROMPT_LENGTH, request_id, str(length))

    def complete(self, request_id: str, response: WireResponse) -> WireResponse:
        """Return a response to a poll, with the null of the first token if it has one value too few."""
        length = self._memory.get(kinds.PROMPT_LENGTH, request_id)
        if length is None or response.status >= 300:
            return response
        if codec.is_protobuf(response):
            sample = codec.decode(response.content, models.SampleResponse)
            values = sample.prompt_logprobs
            if values is None or len(values) + 1 != int(length):
                return response
            return attrs.evolve(response, content=encode_result(attrs.evolve(sample, prompt_logprobs=[None, *values])))
        value = json_object(response.content)
        values = value.get("prompt_logprobs")
        if not isinstance(values, list) or len(values) + 1 != int(length):
            return response
        return attrs.evolve(response, content=orjson.dumps({**value, "prompt_logprobs": [None, *values]}))
