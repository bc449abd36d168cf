"""Requirements on bodies: tags, null, defaults, sizes and text."""

from __future__ import annotations

from typing import Any

import orjson

from tinkerwire_generated import models

from ...checks.session_requests import expect_session, plain_session_request, session_body, try_session
from ...discovery.probes import UNKNOWN_ID
from ...requirement import Breakage, Feature
from ...subject.sampler import OpenSampler
from ...subject.server import Server
from ...subject.training_model import TOKENS, TrainingModel, make_datum
from ...violation import expect
from .area import AREA

TAGGED_SINCE = "0.18.2"
"""The first wire version whose clients always send the type of a chunk."""
LARGE_BATCH = 150_000
"""Tokens of a batch with 450,000 numbers; clients of the oldest versions send up to 500,000 in one request."""
TEXT = 'größe 日本 🙂 "quoted" \\ \u2028'


@AREA.must(
    20,
    until=TAGGED_SINCE,
    contract="EncodedTextChunk.type",
    remedy="Read a chunk without type as encoded_text if it has tokens.",
    needs=("SMP-001",),
    breaks=[Breakage("0.4.1", "0.4.1", Feature.SAMPLE, "raises on every sample")],
)
async def chunk_needs_no_type(server: Server) -> None:
    """A chunk of tokens without its type is accepted."""
    sampler = await server.base_sampler()
    await _sample(server, sampler, {"prompt": {"chunks": [{"tokens": list(TOKENS)}]}})


@AREA.must(
    21,
    contract="SampleRequest.type",
    remedy="Accept requests without the field type; the path names the operation.",
    needs=("SMP-001",),
    breaks=[Breakage("0.4.1", "0.4.1", Feature.SAMPLE, "raises on every sample")],
)
async def request_needs_no_type(server: Server) -> None:
    """A request without its type is accepted."""
    sampler = await server.base_sampler()
    await _sample(server, sampler, {}, without=("type",))


@AREA.must(
    22,
    contract=("SamplingParams.seed", "SampleRequest.prompt_logprobs"),
    remedy="Treat null as the absence of a field that may be null.",
    needs=("SMP-001",),
    breaks=[Breakage("0.4.1", "0.4.1", Feature.SAMPLE, "raises on samples with an argument of None")],
)
async def null_is_absence(server: Server) -> None:
    """A field that may be null is accepted as null."""
    sampler = await server.base_sampler()
    params = {"max_tokens": 4, "seed": None, "stop": None}
    await _sample(
        server, sampler, {"sampling_params": params, "prompt_logprobs": None, "base_model": None, "model_path": None}
    )


@AREA.must(
    23,
    contract=("SampleRequest.num_samples", "SamplingParams"),
    remedy="Use the defaults of the contract for absent fields: one sample, temperature 1, all tokens.",
    needs=("SMP-001",),
    breaks=[Breakage("0.4.1", "0.4.1", Feature.SAMPLE, "raises, as it leaves out defaults")],
)
async def absent_fields_have_defaults(server: Server) -> None:
    """A sample without any optional field has one sequence of at most max_tokens tokens."""
    sampler = await server.base_sampler()
    response = await _sample(server, sampler, {"sampling_params": {"max_tokens": 4}}, without=("num_samples",))
    count = len(response.sequences)
    expect(count == 1, "one sequence", f"{count} sequences")
    expect(len(response.sequences[0].tokens) <= 4, "at most 4 tokens", len(response.sequences[0].tokens))


@AREA.should(
    24,
    contract=("SamplingParams.temperature", "SamplingParams.top_k", "SamplingParams.top_p"),
    remedy="Treat an absent field as one with the default value of the contract.",
    needs=("SMP-009",),
)
async def defaults_are_those_of_contract(server: Server) -> None:
    """A sample with the defaults spelled out has the tokens of one without them, for the same seed."""
    sampler = await server.base_sampler()
    bare = await _sample(server, sampler, {"sampling_params": {"max_tokens": 8, "seed": 3}})
    spelled = {"max_tokens": 8, "seed": 3, "temperature": 1.0, "top_k": -1, "top_p": 1.0}
    full = await _sample(server, sampler, {"sampling_params": spelled})
    first, second = ([list(sequence.tokens) for sequence in response.sequences] for response in (bare, full))
    expect(first == second, f"the tokens {first}", second)


@AREA.must(
    25,
    contract="CreateSessionRequest.tags",
    remedy="Read bodies as UTF-8, with all characters that JSON allows.",
    needs=("SES-001",),
)
async def text_is_unicode(server: Server) -> None:
    """A body may have any text, escaped or as UTF-8."""
    body = session_body(server, tags=[TEXT])
    for content in (orjson.dumps(body), _escaped(body)):
        await expect_session(server, plain_session_request(server, content))


@AREA.must(
    26,
    contract="forward_backward",
    remedy="Accept bodies of at least 5 MB; proxies in front of the server need the same limit.",
    needs=("TRN-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises on large batches")],
)
async def large_body_is_read(server: Server) -> None:
    """A batch of 450,000 numbers is read before its unknown model is rejected."""
    model = TrainingModel(server.client, UNKNOWN_ID, server.saved_paths)
    tokens = [TOKENS[index % len(TOKENS)] for index in range(1000)]
    call = model.forward_backward_call([make_datum(tokens) for _ in range(LARGE_BATCH // len(tokens))], seq_id=1)
    exchange = await server.client.send_call(call)
    is_read = exchange.response is not None and exchange.status < 500 and exchange.status not in (413, 431)
    expect(is_read, "a response about the model", exchange.describe(), exchange)


@AREA.may(
    27,
    contract="create_session 422",
    remedy="Reject unknown fields with 422 and their names; they are spelling mistakes, or newer than the server.",
    needs=("SES-001",),
)
async def unknown_field_is_rejected(server: Server) -> None:
    """A request with an unknown field is rejected."""
    exchange = await try_session(server, plain_session_request(server, session_body(server, no_such_field=1)))
    expect(exchange.is_client_error, "422", exchange.describe(), exchange)


async def _sample(
    server: Server, sampler: OpenSampler, fields: dict[str, Any], without: tuple[str, ...] = ()
) -> models.SampleResponse:
    """Sample with a body that is written here, not by a client."""
    body: dict[str, Any] = {
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": list(TOKENS)}]},
        "sampling_params": {"max_tokens": 4, "seed": 1},
        "num_samples": 1,
        "sampling_session_id": sampler.id,
        "seq_id": sampler.take_seq_id(),
        "type": "sample",
        **fields,
    }
    for name in without:
        del body[name]
    request = server.client.json_request("POST", "asample", body)
    result = await server.futures.wait(await server.futures.submit_request("asample", request))
    expect(result.failure is None, "a sample", result.failure, result.exchange)
    response: models.SampleResponse = result.value
    return response


def _escaped(body: dict[str, Any]) -> bytes:
    from json import dumps  # noqa: PLC0415  # orjson does not escape

    return dumps(body).encode()
