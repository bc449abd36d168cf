"""Requirements on media types: JSON, protobuf, compression."""

from __future__ import annotations

import attrs
import zstandard

from tinkerwire_base.call import JSON, PROTOBUF, WireRequest

from ...checks.differences import largest_difference
from ...checks.session_requests import expect_session, session_request
from ...client.futures import HELD_POLL_TIMEOUT_S, is_unready
from ...requirement import Breakage, Feature
from ...subject.sampler import LOGPROB_TOLERANCE
from ...subject.server import Server
from ...subject.training_model import TrainingModel, logprobs_of, make_datum
from ...violation import Blocked, NotApplicable, Violation, expect
from .area import AREA

PROTOBUF_RESULTS_SINCE = "0.18.2"
PROTOBUF_BATCHES_SINCE = "0.25.0"
"""The first version whose clients send batches as protobuf only, and read samples as protobuf only."""
ZSTD_SINCE = "0.22.7"


@AREA.should(
    41,
    contract="create_session",
    remedy="Ignore parameters of Content-Type and the case of its name, such as charset=utf-8.",
    needs=("SES-001",),
)
async def media_type_may_have_parameters(server: Server) -> None:
    """A JSON request may name its charset, and accept any media type."""
    request = session_request(server)
    headers = {**request.headers, "content-type": "Application/JSON; charset=utf-8", "accept": "*/*"}
    await expect_session(server, attrs.evolve(request, headers=headers))


@AREA.should(
    42,
    contract="create_session",
    remedy="Answer a body of another media type with 415.",
    needs=("SES-001",),
)
async def other_media_type_is_rejected(server: Server) -> None:
    """A body that is text and not JSON is rejected with a status from 400 to 499."""
    request = session_request(server)
    headers = {**request.headers, "content-type": "text/plain"}
    exchange = await server.client.send(attrs.evolve(request, headers=headers, content=b"hello"))
    expect(exchange.is_client_error, "415", exchange.describe(), exchange)


@AREA.must(
    43,
    since=PROTOBUF_BATCHES_SINCE,
    contract="retrieve_future 200",
    remedy="Send results of samples and batches as protobuf; clients of this version do not read them as JSON.",
    breaks=[Breakage("0.38.0", None, Feature.SAMPLE, "raises ValueError on every sample")],
)
async def samples_are_protobuf(server: Server) -> None:
    """The result of a sample is protobuf if the poll accepts it."""
    sampler = await server.base_sampler()
    try:
        result = await server.futures.wait(await sampler.submit())
    except Violation as error:
        if error.exchange is None or error.exchange.status != 200 or error.exchange.media_type != JSON:
            raise Blocked(f"a sample: {error}", error.exchange) from error
        exchange = error.exchange
    else:
        exchange = result.exchange
        if result.failure is not None:
            raise Blocked(f"a sample: {result.failure}", exchange)
    expect(exchange.media_type == PROTOBUF, PROTOBUF, exchange.media_type, exchange)


@AREA.should(
    44,
    until=PROTOBUF_BATCHES_SINCE,
    contract="retrieve_future 200",
    remedy="Send a result as JSON if the Accept header of the poll has no application/x-protobuf.",
    needs=("FUT-002",),
    breaks=[Breakage("0.3.0", "0.16.1", Feature.TRAIN, "cannot read the results")],
)
async def json_results_on_demand(server: Server) -> None:
    """The result of a batch is JSON if the poll accepts only JSON."""
    model = await server.model()
    submission = await server.futures.submit(model.forward_call([make_datum()]))
    await server.futures.wait(submission)
    request = server.futures.poll_request(submission.request_id, submission.result_type)
    request = attrs.evolve(request, headers={**request.headers, "accept": JSON})
    exchange = await server.client.send(request, HELD_POLL_TIMEOUT_S)
    expect(exchange.media_type == JSON and not is_unready(exchange), JSON, exchange.describe(), exchange)
    server.futures.read(submission, exchange)


@AREA.must(
    45,
    contract="retrieve_future 200",
    remedy="Send all results except those of samples and batches as JSON, whatever the poll accepts.",
    needs=("FUT-002",),
    breaks=[Breakage("0.38.0", None, Feature.TRAIN, "raises ValueError in place of the result")],
)
async def other_results_are_json(server: Server) -> None:
    """The result of an operation that is neither a sample nor a batch is JSON."""
    model = await server.model()
    submission = await server.futures.submit(model.optim_step_call(learning_rate=0.0))
    result = await server.futures.wait(submission)
    expect(result.exchange.media_type == JSON, JSON, result.exchange.media_type, result.exchange)


@AREA.should(
    46,
    since=PROTOBUF_BATCHES_SINCE,
    contract="forward_backward 422",
    remedy="Reject a body that is not a protobuf message of the contract with 400 or 422.",
    needs=("TRN-001",),
)
async def wrong_protobuf_is_rejected(server: Server) -> None:
    """A batch that is not a valid protobuf message is rejected with a status from 400 to 499."""
    model = await server.new_model()
    request = server.client.encode(model.forward_backward_call([make_datum()]))
    for content in (b"\xff\xff\xff\xff", (request.content or b"")[:-3]):
        exchange = await server.client.send(attrs.evolve(request, content=content))
        expect(exchange.is_client_error, "400 or 422", exchange.describe(), exchange)


@AREA.must(
    47,
    since=ZSTD_SINCE,
    contract=("ClientConfigResponse.proto_compress_fwdbwd", "forward_backward"),
    remedy="Read batches with Content-Encoding: zstd if the flag proto_compress_fwdbwd is set.",
    needs=("MOD-001",),
    breaks=[Breakage("0.38.0", None, Feature.TRAIN, "raises on every batch")],
)
async def compressed_batch_is_read(server: Server) -> None:
    """A batch that is compressed by zstd has the result of one that is not, if client/config asks for zstd."""
    model = await server.new_model()
    plain, packed = _compressed_batch(server, model), _compressed_batch(server, model)
    headers = {name: value for name, value in plain.headers.items() if name != "content-encoding"}
    content = zstandard.ZstdDecompressor().decompressobj().decompress(plain.content or b"")
    plain = attrs.evolve(plain, headers=headers, content=content)
    try:
        expected = await server.futures.wait(await server.futures.submit_request("forward_backward", plain))
    except Violation as error:
        raise Blocked(f"a batch without compression: {error}", error.exchange) from error
    result = await server.futures.wait(await server.futures.submit_request("forward_backward", packed))
    expect(result.failure is None, "a result", result.failure, result.exchange)
    if expected.failure is not None:
        raise Blocked(f"a batch without compression: {expected.failure}", expected.exchange)
    first, second = (logprobs_of(item.value) for item in (result, expected))
    is_same = largest_difference(first, second) <= LOGPROB_TOLERANCE
    expect(is_same, f"the logprobs {second}", f"{first}", result.exchange)


@AREA.should(
    48,
    since=ZSTD_SINCE,
    contract="forward_backward",
    remedy="Reject a body that is not valid zstd with 400.",
    needs=("PRO-047",),
)
async def wrong_compression_is_rejected(server: Server) -> None:
    """A body that is not valid zstd, despite its header, is rejected with a status from 400 to 499."""
    request = _compressed_batch(server, await server.new_model())
    exchange = await server.client.send(attrs.evolve(request, content=b"not zstd at all"))
    if not exchange.is_client_error:
        raise Violation("400", exchange.describe(), exchange)


def _compressed_batch(server: Server, model: TrainingModel) -> WireRequest:
    """Return a compressed request; raise NotApplicable if the client config does not ask for that."""
    if not server.client.dialect.config.proto_compress_fwdbwd:
        raise NotApplicable("client/config does not ask for compression")
    request = server.client.encode(model.forward_backward_call([make_datum()]))
    if request.headers.get("content-encoding") != "zstd":
        raise NotApplicable("client/config does not ask for protobuf")
    return request
