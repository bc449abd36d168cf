"""Requirements on sampling sessions: their creation, their description, and copies of a client."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample, create_sampling_session, get_sampler, join_sampling_session
from tinkerwire_generated.constants import SEQ_IDS_PER_COPY

from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import OpenSampler
from ..subject.server import Server
from ..subject.training_model import TOKENS
from ..violation import NotApplicable, Violation, expect

AREA = Area("SPL", "samplers", "Sampling sessions: creation, description and copies")
UNKNOWN_SAMPLER = "no-such-sampler"
UNUSED_SEQ_ID = 777_777


@AREA.must(
    1,
    contract=("create_sampling_session 200", "CreateSamplingSessionResponse.sampling_session_id"),
    remedy="Give each sampling_session_seq_id of a session a sampling session of its own.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets samples of another sampling client")],
)
async def sessions_differ(server: Server) -> None:
    """Sampling sessions with different sampling_session_seq_ids have different ids."""
    first, second = await server.new_sampler(), await server.new_sampler()
    expect(first.id != second.id, "two ids", f"{first.id} twice", server.client.recent[-1])


@AREA.should(
    2,
    contract=("CreateSamplingSessionRequest.sampling_session_seq_id", "create_sampling_session 200"),
    remedy="Answer a repeated create_sampling_session like the first: its response may have been lost.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "has no sampling client if one response is lost")],
)
async def creation_can_be_repeated(server: Server) -> None:
    """A repeated create_sampling_session returns a sampling session that can be sampled from."""
    session_id = await server.session()
    number = server.take_sampler_seq_id(session_id)
    body = models.CreateSamplingSessionRequest(
        session_id=session_id, sampling_session_seq_id=number, base_model=await server.base_model()
    )
    call = create_sampling_session(body=body)
    # With a new idempotency key each time, as the official SDK repeats a request after a timeout.
    await server.client.call(call)
    repeated, _ = await server.client.call(call)
    await OpenSampler(server.client, repeated.sampling_session_id).sample()


@AREA.must(
    3,
    contract=("create_sampling_session 404", "CreateSamplingSessionRequest.base_model"),
    remedy="Refuse a base_model that the server does not have with a 4xx.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets samples of another model, or retries endlessly")],
)
async def unknown_base_is_refused(server: Server) -> None:
    """A sampling session on a base model that does not exist is refused, or its samples are."""
    session_id = await server.session()
    body = models.CreateSamplingSessionRequest(
        session_id=session_id,
        sampling_session_seq_id=server.take_sampler_seq_id(session_id),
        base_model="no-such-owner/no-such-model",
    )
    call = create_sampling_session(body=body)
    exchange = await server.client.send_call(call)
    if exchange.status == 200:
        sampler = OpenSampler(server.client, server.client.read(call, exchange).sampling_session_id)
        result, exchange = await server.futures.attempt(sampler.sample_call())
        expect(result is None, "a refusal", "samples", exchange)
    else:
        _expect_refusal(exchange)


@AREA.must(
    4,
    contract=("asample 404", "SampleRequest.sampling_session_id"),
    remedy="Refuse a sample in a sampling session that does not exist with 404.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "retries endlessly, or gets samples of another model")],
)
async def unknown_session_is_refused(server: Server) -> None:
    """A sample in a sampling session that does not exist is refused."""
    sampler = OpenSampler(server.client, UNKNOWN_SAMPLER)
    # A number that no sampling session has used, so that a conflict is not taken for the refusal.
    result, exchange = await server.futures.attempt(sampler.sample_call(seq_id=UNUSED_SEQ_ID))
    expect(result is None, "a refusal", "samples", exchange)


@AREA.should(
    5,
    operations=("get_sampler",),
    contract=("get_sampler 200", "GetSamplerResponse.base_model"),
    remedy="Answer GET samplers/ID with the base model of the sampling session.",
    needs=("SMP-001",),
    breaks=[Breakage("0.9.0", None, Feature.SAMPLE, "raises in get_tokenizer of a sampling client")],
)
async def sampler_has_base_model(server: Server) -> None:
    """The sampler that get_sampler returns has its base model, and no path if it is on the base model."""
    sampler = await server.base_sampler()
    info, exchange = await server.client.call(get_sampler(sampler.id))
    name = await server.base_model()
    expect(info.base_model == name, f"the base model {name}", f"{info.base_model}", exchange)
    expect(not info.model_path, "no path", f"{info.model_path}", exchange)
    expect(info.sampler_id == sampler.id, f"the id {sampler.id}", f"{info.sampler_id}", exchange)


@AREA.should(
    6,
    operations=("get_sampler",),
    contract=("get_sampler 200", "GetSamplerResponse.model_path"),
    remedy="Answer GET samplers/ID with the path of the weights, too, if the sampling session is on saved weights.",
    needs=("SPL-005",),
    breaks=[Breakage("0.38.0", None, Feature.SAMPLE, "cannot create a sampling client on saved weights")],
)
async def sampler_has_path(server: Server) -> None:
    """The sampler that get_sampler returns for saved weights has its base model and a path."""
    _, sampler = await server.trained_sampler()
    info, exchange = await server.client.call(get_sampler(sampler.id))
    name = await server.base_model()
    expect(info.base_model == name, f"the base model {name}", f"{info.base_model}", exchange)
    has_path = bool(info.model_path) and str(info.model_path).startswith("tinker://")
    expect(has_path, "a path that begins with tinker://", f"{info.model_path}", exchange)


@AREA.should(
    7,
    operations=("get_sampler",),
    contract="get_sampler 404",
    remedy="Answer GET samplers/ID of an unknown sampling session with 404.",
    needs=("SPL-005",),
)
async def unknown_sampler_is_refused(server: Server) -> None:
    """An unknown id is refused by get_sampler with a 4xx."""
    _expect_refusal(await server.client.send_call(get_sampler(UNKNOWN_SAMPLER)))


@AREA.must(
    8,
    since="0.14.0",
    contract="SampleRequest.seq_id",
    remedy="Take seq_ids of 64 bits in any order: copies of a client start at multiples of 1000000000.",
    needs=("SMP-001",),
    breaks=[Breakage("0.14.0", None, Feature.SAMPLE, "cannot sample in other processes than the first")],
)
async def copies_have_their_seq_ids(server: Server) -> None:
    """Samples under the seq_ids of two copies of a client, and then under the next of the first, are accepted."""
    sampler = await server.new_sampler()
    for seq_id in (0, 999_999_999 * SEQ_IDS_PER_COPY, 7 * SEQ_IDS_PER_COPY, 7 * SEQ_IDS_PER_COPY + 1, 1):
        await sampler.sample(seq_id=seq_id)


@AREA.should(
    9,
    operations=("join_sampling_session",),
    contract=("join_sampling_session 200", "JoinSamplingSessionResponse.client_counter"),
    remedy="Answer each join_sampling_session with the next number, from 1.",
    needs=("SMP-001",),
    breaks=[Breakage("0.32.0", None, Feature.SAMPLE, "gets samples of another process, if client/config asks to join")],
)
async def copies_have_numbers(server: Server) -> None:
    """Each join_sampling_session returns another number above 0."""
    sampler = await server.new_sampler()
    body = models.JoinSamplingSessionRequest(sampling_session_id=sampler.id)
    numbers = []
    for _ in range(3):
        # A new call has a new idempotency key, so that it does not repeat the first.
        joined, exchange = await server.client.call(join_sampling_session(body=body))
        numbers.append(joined.client_counter)
        expect(joined.client_counter > 0, "a number above 0", f"{joined.client_counter}", exchange)
    expect(len(set(numbers)) == 3, "3 different numbers", f"{numbers}", server.client.recent[-1])


@AREA.should(
    10,
    operations=("join_sampling_session",),
    contract="join_sampling_session 404",
    remedy="Refuse join_sampling_session for a sampling session that does not exist with 404.",
    needs=("SPL-009",),
)
async def unknown_session_has_no_copies(server: Server) -> None:
    """An unknown sampling session is refused by join_sampling_session with a 4xx."""
    body = models.JoinSamplingSessionRequest(sampling_session_id=UNKNOWN_SAMPLER)
    _expect_refusal(await server.client.send_call(join_sampling_session(body=body)))


@AREA.may(
    11,
    contract="SampleRequest.model_path",
    remedy="Sample from the weights at model_path if a request has no sampling_session_id.",
    needs=("SMP-004",),
)
async def path_needs_no_session(server: Server) -> None:
    """A sample that names model_path, and no sampling session, yields what a session on these weights yields."""
    model, sampler = await server.trained_sampler()
    expected = list((await sampler.sample(temperature=0)).sequences[0].tokens)
    try:
        path = await model.save_for_sampler(server.new_name())
    except Violation as error:
        raise NotApplicable(f"the weights cannot be saved: {error}") from None
    body = models.SampleRequest(
        prompt=models.ModelInput.from_ints(list(TOKENS)),
        sampling_params=models.SamplingParams(max_tokens=4, seed=1, temperature=0),
        model_path=path,
    )
    result, exchange = await server.futures.attempt(asample(body=body))
    if result is None:
        raise NotApplicable(f"the server samples in sampling sessions only: {exchange.describe()}")
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == expected, f"{expected}", f"{tokens}", exchange)


def _expect_refusal(exchange: Exchange) -> None:
    expect(exchange.is_client_error, "a 4xx", exchange.describe(), exchange)
