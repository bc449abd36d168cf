"""Images from the client to the embedded server, in the body forms of each wire version."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.pictures import BLUE, RED, draw_image
from tinkerwire import types
from tinkerwire.local import EmbeddedServer, FaultInjection, Quirks, embedded_transport

TOKENS = 70
"""Number of tokens of an image of 300 x 200 pixels."""


def create_prompt(colour: tuple[int, int, int], expected_tokens: int | None = TOKENS) -> tw.ModelInput:
    """Create an input of an image between two tokens of text."""
    image = types.ImageChunk(data=draw_image(300, 200, colour), format="png", expected_tokens=expected_tokens)
    return tw.ModelInput(chunks=[tw.EncodedTextChunk(tokens=[1]), image, tw.EncodedTextChunk(tokens=[2])])


def create_datum(colour: tuple[int, int, int], answer: int) -> tw.Datum:
    """Create a datum whose last target is the answer."""
    length = create_prompt(colour).length
    targets = [0] * (length - 1) + [answer]
    return tw.Datum(
        model_input=create_prompt(colour),
        loss_fn_inputs={"target_tokens": targets, "weights": [0.0] * (length - 1) + [1.0]},
    )


@pytest.mark.parametrize("version", ["0.9.0", "0.38.0"])
def test_model_learns_to_name_colours(version: str) -> None:
    """A model that is trained on images samples the answer of each image, from JSON and from protobuf."""
    with EmbeddedServer(wire_version=version, seed=1) as server:
        transport = embedded_transport(server)
        with tw.ServiceClient(base_url="local", transport=transport, wire_version=version) as service:
            training = service.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1)
            data = [create_datum(RED, ord("r")), create_datum(BLUE, ord("b"))]
            for _ in range(25):
                training.forward_backward(data, "cross_entropy").result()
                training.optim_step(tw.AdamParams(learning_rate=1e-2)).result()
            sampling = training.save_weights_and_get_sampling_client()
            params = tw.SamplingParams(max_tokens=1, temperature=0.0)
            answers = [
                sampling.sample(create_prompt(colour, None), num_samples=1, sampling_params=params).result()
                for colour in (RED, BLUE)
            ]
            assert [bytes(answer.sequences[0].tokens) for answer in answers] == [b"r", b"b"]
            logprobs = asyncio.run(sampling.compute_logprobs_async(create_prompt(RED)))
            assert len(logprobs) == TOKENS + 2
            assert [index for index, value in enumerate(logprobs) if value is not None] == [TOKENS + 1]
            with pytest.raises(tw.BadRequestError, match="expected_tokens must be 70"):
                sampling.sample(create_prompt(RED, 63), num_samples=1, sampling_params=params).result()


@pytest.mark.parametrize("mode", ["explained", "terse"])
def test_wrong_number_of_tokens_fails_one_sample(mode: str) -> None:
    """The error comes at once, after one request, and the other samples of the client go on."""
    requests = FaultInjection()
    with EmbeddedServer(quirks=Quirks(expected_tokens=mode), fault_injection=requests) as server:
        # Each delay of 0 s counts a request.
        requests.delay_next(0.0, 10, only="asample")
        with tw.ServiceClient(base_url="local", transport=embedded_transport(server)) as service:
            sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
            params = tw.SamplingParams(max_tokens=1)
            futures = [
                sampling.sample(create_prompt(RED, tokens), num_samples=1, sampling_params=params)
                for tokens in (TOKENS, 63, None)
            ]
            with pytest.raises(tw.BadRequestError, match="63"):
                futures[1].result()
            assert [len(future.result().sequences) for future in (futures[0], futures[2])] == [1, 1]
            assert requests.counts["delay"] == len(futures)
