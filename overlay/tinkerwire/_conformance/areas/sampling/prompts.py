"""Requirements on prompts: images, empty and long prompts, and unknown tokens."""

from __future__ import annotations

from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample
from tinkerwire_generated.api.service import get_server_capabilities

from ...requirement import Breakage, Feature
from ...subject.sampler import OpenSampler
from ...subject.server import Server
from ...subject.training_model import TOKENS
from ...violation import NotApplicable, Violation, expect
from .area import AREA

MAX_CONTEXT = 16384
"""Largest context that tests fill."""
IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one pixel."""


@AREA.must(
    25,
    contract="ImageChunk",
    remedy="Refuse images with a 4xx if the model has none, and sample otherwise.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "retries a prompt with an image endlessly")],
)
async def image_is_served_or_refused(server: Server) -> None:
    """A prompt with an image ends in samples, in a failure or in a 4xx, and not in a 5xx."""
    sampler = await server.base_sampler()
    size: dict[str, Any] = (
        {} if not server.contract.has_field("ImageChunk", "height") else {"height": 1, "width": 1, "tokens": 1}
    )
    image = models.ImageChunk(data=IMAGE, format="png", **size)
    chunks: list[models.ModelInputChunk] = [models.EncodedTextChunk(tokens=list(TOKENS)), image]
    body = models.SampleRequest(
        prompt=models.ModelInput(chunks=chunks),
        sampling_params=models.SamplingParams(max_tokens=4),
        sampling_session_id=sampler.id,
        seq_id=sampler.take_seq_id(),
    )
    await server.futures.attempt(asample(body=body))


@AREA.must(
    26,
    contract="SampleRequest.prompt",
    remedy="Refuse an empty prompt with a 4xx, or sample from the start of a text.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "retries an empty prompt endlessly")],
)
async def empty_prompt_ends(server: Server) -> None:
    """An empty prompt ends in samples, in a failure or in a 4xx, and not in a 5xx."""
    sampler = await server.base_sampler()
    await server.futures.attempt(sampler.sample_call([]))
    await _expect_alive(server, sampler)


@AREA.should(
    27,
    since="0.18.2",
    contract=("SupportedModel.max_context_length", "SamplingParams.max_tokens"),
    remedy="End a sequence where the context is full, with the stop_reason length, or refuse such a request.",
    needs=("SMP-003",),
)
async def sequence_stays_in_context(server: Server) -> None:
    """With a max_tokens beyond the context a sequence ends within the context, or the request is refused."""
    limit = await _context_length(server)
    sampler = await server.base_sampler()
    prompt = [TOKENS[index % len(TOKENS)] for index in range(limit - len(TOKENS))]
    result, exchange = await server.futures.attempt(sampler.sample_call(prompt, max_tokens=2 * len(TOKENS)))
    if result is not None:
        length = len(result.value.sequences[0].tokens)
        expect(length <= len(TOKENS), f"at most {len(TOKENS)} tokens in a context of {limit}", f"{length}", exchange)


@AREA.should(
    28,
    since="0.18.2",
    contract=("SupportedModel.max_context_length", "SampleRequest.prompt"),
    remedy="Refuse a prompt that is longer than max_context_length with a 4xx or a failure; do not cut it.",
    needs=("SMP-001",),
)
async def long_prompt_is_refused(server: Server) -> None:
    """A prompt that is longer than the context is refused."""
    limit = await _context_length(server)
    sampler = await server.base_sampler()
    prompt = [TOKENS[index % len(TOKENS)] for index in range(limit + len(TOKENS))]
    result, exchange = await server.futures.attempt(sampler.sample_call(prompt))
    expect(result is None, f"a refusal of {len(prompt)} tokens in a context of {limit}", "samples", exchange)


# This is the last one, because it ends some servers.
@AREA.must(
    99,
    contract="SampleRequest.prompt",
    remedy="Compare the tokens of a prompt with the size of the vocabulary when the request arrives.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "polls for the result of a bad prompt endlessly")],
)
async def unknown_token_is_refused(server: Server) -> None:
    """A token outside the vocabulary is refused by a failure or a 4xx, and later samples work."""
    sampler = await server.base_sampler()
    result, exchange = await server.futures.attempt(sampler.sample_call([*TOKENS[:-1], 10_000_000]))
    expect(result is None, "a refusal of token 10000000", "samples", exchange)
    await _expect_alive(server, sampler)


async def _context_length(server: Server) -> int:
    """Return the number of tokens in a context; raise NotApplicable if it is unknown, or too large for a test."""
    capabilities, _ = await server.client.call(get_server_capabilities())
    name = await server.base_model()
    for model in capabilities.supported_models:
        if model.model_name == name and model.max_context_length is not None:
            if model.max_context_length > MAX_CONTEXT:
                raise NotApplicable(f"a context of {model.max_context_length} tokens is too large for this test")
            return int(model.max_context_length)
    raise NotApplicable("the server does not name max_context_length")


async def _expect_alive(server: Server, sampler: OpenSampler) -> None:
    try:
        await sampler.sample()
    except Violation as error:
        raise Violation("samples after the refused request", error.received, error.exchange) from None
