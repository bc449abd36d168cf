"""A sampling session on the server under test: its samples, each under the next seq_id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample

from ..client.futures import Futures, QueuedWork
from ..client.wire_client import WireClient
from .training_model import TOKENS

LOGPROB_TOLERANCE = 2e-3
"""Difference of two log probabilities of one token that come from different passes through the model."""


class OpenSampler:
    """A sampling session, and the number of its next sample.

    Args:
        client: sends the requests.
        sampling_session_id: id of the sampling session.
    """

    def __init__(self, client: WireClient, sampling_session_id: str) -> None:
        self.id = sampling_session_id
        self.next_seq_id = 0
        self.futures = Futures(client)

    def take_seq_id(self) -> int:
        """Return the seq_id of the next sample."""
        self.next_seq_id += 1
        return self.next_seq_id - 1

    def sample_call(
        self,
        prompt: Sequence[int] = TOKENS,
        *,
        seq_id: int | None = None,
        num_samples: int = 1,
        fields: dict[str, Any] | None = None,
        **params: Any,
    ) -> Call[models.UntypedAPIFuture]:
        """Return a call of asample.

        Args:
            prompt: tokens of the prompt.
            seq_id: number of the sample; None takes the next one.
            num_samples: number of sequences.
            fields: further fields of SampleRequest.
            params: fields of SamplingParams; by default 4 tokens with seed 1.
        """
        body = models.SampleRequest(
            prompt=models.ModelInput.from_ints(list(prompt)),
            sampling_params=models.SamplingParams(**{"max_tokens": 4, "seed": 1, **params}),
            num_samples=num_samples,
            sampling_session_id=self.id,
            seq_id=self.take_seq_id() if seq_id is None else seq_id,
            **(fields or {}),
        )
        return asample(body=body)

    async def submit(self, prompt: Sequence[int] = TOKENS, **settings: Any) -> QueuedWork:
        """Start to sample; see :meth:`sample_call`."""
        return await self.futures.submit(self.sample_call(prompt, **settings))

    async def sample(self, prompt: Sequence[int] = TOKENS, **settings: Any) -> models.SampleResponse:
        """Sample and return the response; see :meth:`sample_call`."""
        result = await self.futures.run(self.sample_call(prompt, **settings))
        response: models.SampleResponse = result.value
        return response
