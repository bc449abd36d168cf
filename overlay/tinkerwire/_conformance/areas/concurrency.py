"""Requirements on work at the same time: many operations, many samples, and several clients of a session."""

from __future__ import annotations

import asyncio

from tinkerwire_generated import models
from tinkerwire_generated.api.session import session_heartbeat

from ..checks.training_effect import OTHER_TOKENS, RATE, Rows, expect_change, expect_same, weighted
from ..client.futures import QueuedWork, Result
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import OpenSampler
from ..subject.server import Server
from ..subject.training_model import TOKENS, TrainingModel, logprobs_of, make_datum
from ..violation import expect

AREA = Area("CON", "concurrency", "Concurrency: many operations at once, and several clients of a session")
OPERATIONS = 20
FEW_SAMPLES = 50
MANY_SAMPLES = 200
POLLS = 50
RESULTS_TIMEOUT_S = 240.0
"""Time for which a test waits for all results."""
FAILS_UNDER_LOAD = Breakage("0.3.0", None, Feature.SAMPLE, "loses samples, or gets those of others, under load")
TRAIN_UNDER_LOAD = Breakage("0.3.0", None, Feature.TRAIN, "gets results of other operations under load")


@AREA.must(
    1,
    contract=("forward_backward 200", "retrieve_future 200"),
    remedy="Queue the operations of a model, and keep the result of each under its own request_id.",
    needs=("TRN-006",),
    breaks=[TRAIN_UNDER_LOAD],
    max_s=300.0,
)
async def many_operations_at_once(server: Server) -> None:
    """Twenty training operations that are submitted and polled at once end with their own outputs."""
    model = await server.model()
    data = [_rotated(index) for index in range(OPERATIONS)]
    expected = await model.logprobs(data)
    results = await _run_operations(server, model, data)
    _expect_outputs(server, expected, results)


@AREA.must(
    2,
    contract=("asample 200", "retrieve_future 200"),
    remedy="Queue samples that you cannot compute yet, or answer 429; do not drop or mix them.",
    needs=("SMP-001",),
    breaks=[FAILS_UNDER_LOAD],
    max_s=300.0,
)
async def many_samples_at_once(server: Server) -> None:
    """Fifty samples that are submitted and polled at once end, each with its own number and length of sequences."""
    sampler = await server.base_sampler()
    await _run_samples(server, sampler, FEW_SAMPLES)


@AREA.must(
    3,
    contract=("asample 200", "forward_backward 200"),
    remedy="Share the machine between sampling and training, so that neither waits for the end of the other.",
    needs=("CON-001", "CON-002"),
    breaks=[FAILS_UNDER_LOAD],
    max_s=300.0,
)
async def samples_and_operations_at_once(server: Server) -> None:
    """Two hundred samples and twenty training operations at once end with their own results."""
    model, sampler = await server.model(), await server.base_sampler()
    data = [_rotated(index) for index in range(OPERATIONS)]
    expected = await model.logprobs(data)
    results, _ = await asyncio.gather(_run_operations(server, model, data), _run_samples(server, sampler, MANY_SAMPLES))
    _expect_outputs(server, expected, results)


@AREA.must(
    4,
    contract=("forward_backward", "optim_step"),
    remedy="Keep the weights, gradients and optimizer of each model apart, also when they train at the same time.",
    needs=("TRN-029", "TRN-021"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains with the gradients of another model")],
)
async def models_train_at_once(server: Server) -> None:
    """Two models of a session that train at the same time in opposite directions do not disturb each other."""
    rising, falling = await server.new_model(), await server.new_model()
    before = await rising.logprobs(), await falling.logprobs()
    await asyncio.gather(_train(rising, 1.0), _train(falling, -1.0))
    await expect_change(server, rising, before[0], 1, "a higher log probability of the model that learns the example")
    await expect_change(server, falling, before[1], -1, "a lower one of the model that unlearns it")


@AREA.must(
    5,
    contract=("create_sampling_session 200", "CreateSamplingSessionResponse.sampling_session_id"),
    remedy="Give each sampling session an id of its own, also to those that are created at the same time.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets samples of another client")],
)
async def samplers_of_a_session_are_separate(server: Server) -> None:
    """Sampling sessions that two clients of a session create at once have different ids, and both sample."""
    samplers = await asyncio.gather(server.new_sampler(), server.new_sampler())
    ids = [sampler.id for sampler in samplers]
    expect(ids[0] != ids[1], "two different ids", ", ".join(ids), server.client.recent[-1])
    # Both start with the same seq_id, under which the other sampling session has another sample.
    results = await asyncio.gather(
        *(_sample(server, sampler, size) for sampler, size in zip(samplers, (1, 3), strict=True))
    )
    for result, size in zip(results, (1, 3), strict=True):
        _expect_sequences(result, size)


@AREA.must(
    6,
    contract=("create_model 200", "CreateModelResponse.model_id"),
    remedy="Give each model an id of its own, also to those that are created at the same time.",
    needs=("MOD-001", "TRN-002"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains the model of another client")],
)
async def models_of_a_session_are_separate(server: Server) -> None:
    """Models that two clients of a session create at once have different ids, and both train."""
    first, second = await asyncio.gather(server.new_model(), server.new_model())
    expect(first.id != second.id, "two different ids", f"{first.id} twice", server.client.recent[-1])
    await asyncio.gather(_train(first, 1.0), _train(second, 1.0))


@AREA.must(
    7,
    contract="retrieve_future 200",
    remedy="Answer any number of polls at once: a client polls for each of its operations.",
    needs=("FUT-007",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "waits for results that are ready")],
)
async def many_polls_at_once(server: Server) -> None:
    """Fifty polls at once for one result all get the same one."""
    model = await server.model()
    submission = await server.futures.submit(model.forward_call([make_datum()]))
    results = await asyncio.gather(*(server.futures.wait(submission) for _ in range(POLLS)))
    rows = [logprobs_of(result.value) for result in results if result.failure is None]
    expect(len(rows) == POLLS, f"{POLLS} results", len(rows), results[0].exchange)
    for row in rows:
        expect_same(server, rows[0], row, "the same result for each poll")


@AREA.must(
    8,
    contract=("ForwardBackwardRequest.seq_id", "forward_backward 200"),
    remedy="Look up and record a seq_id in one step, so that two copies of a request do not both run.",
    needs=("ORD-012", "TRN-035"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains twice with a batch if it retries a slow request")],
)
async def copies_at_once_count_once(server: Server) -> None:
    """Five copies of a forward_backward that arrive at once count once."""
    model = await server.new_model()
    before = await model.logprobs()
    request = server.client.encode(model.forward_backward_call([weighted(1.0)]))
    exchanges = await asyncio.gather(*(server.client.send(request) for _ in range(5)))
    accepted = [exchange for exchange in exchanges if exchange.status == 200]
    expect(bool(accepted), "a future", exchanges[0].describe(), exchanges[0])
    for exchange in accepted:
        await server.futures.wait(server.futures.read_submission("forward_backward", exchange))
    # Twice 1 would outweigh it, once does not.
    await model.forward_backward([weighted(-1.5)])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, -1, "gradients of five copies that count once")


@AREA.must(
    9,
    contract="session_heartbeat 200",
    remedy="Answer small requests while models work, from another thread or process.",
    needs=("CON-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "loses its session during long operations")],
    max_s=300.0,
)
async def heartbeats_are_answered_under_load(server: Server) -> None:
    """Heartbeats are answered while 20 training operations run."""
    model = await server.model()
    body = models.SessionHeartbeatRequest(session_id=await server.session())
    working = asyncio.ensure_future(_run_operations(server, model, [_rotated(index) for index in range(OPERATIONS)]))
    try:
        for _ in range(5):
            await server.client.call(session_heartbeat(body=body))
    finally:
        await working


@AREA.must(
    10,
    contract=("asample 200", "optim_step"),
    remedy="Sample the base model without the adapters that train on it.",
    needs=("TRN-020", "SMP-001"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples the base model with weights of a trained one")],
)
async def training_leaves_base_sampler_alone(server: Server) -> None:
    """Samples of the base model do not change while another model trains."""
    model, sampler = await server.new_model(), await server.base_sampler()
    before = await sampler.sample(max_tokens=1, temperature=0.0)
    during, _ = await asyncio.gather(sampler.sample(max_tokens=1, temperature=0.0), _train(model, 1.0, rate=1e-2))
    after = await sampler.sample(max_tokens=1, temperature=0.0)
    rows = [_sampled(response) for response in (before, during, after)]
    for tokens, logprobs in rows[1:]:
        # With two tokens that are almost equally probable, the same weights may sample either.
        if logprobs is not None and rows[0][1] is not None:
            expect_same(server, [rows[0][1]], [logprobs], "the logprobs of the base model")
        else:
            expect(tokens == rows[0][0], f"the tokens {rows[0][0]}", tokens, server.client.recent[-1])


def _sampled(response: models.SampleResponse) -> tuple[list[int], list[float] | None]:
    expect(len(response.sequences) == 1, "one sequence", len(response.sequences))
    sequence = response.sequences[0]
    logprobs = None if sequence.logprobs is None else [float(value) for value in sequence.logprobs]
    return [int(token) for token in sequence.tokens], logprobs


def _rotated(index: int) -> models.Datum:
    """Return an example in the shape of the others, a different one for each index below 128."""
    tokens = [*TOKENS[index % len(TOKENS) :], *TOKENS[: index % len(TOKENS)]]
    tokens[0] = OTHER_TOKENS[index // len(TOKENS) % len(OTHER_TOKENS)]
    return make_datum(tokens)


async def _train(model: TrainingModel, weight: float, rate: float = RATE) -> None:
    for _ in range(3):
        await model.forward_backward([weighted(weight)])
        await model.optim_step(learning_rate=rate)


async def _run_operations(server: Server, model: TrainingModel, data: list[models.Datum]) -> list[Result]:
    """Run a forward_backward for each datum at once."""
    # Submissions of a model are in order, as clients send them; only the results are waited for at once.
    submissions = [await server.futures.submit(model.forward_backward_call([datum])) for datum in data]
    return await asyncio.gather(*(server.futures.wait(submission, RESULTS_TIMEOUT_S) for submission in submissions))


def _expect_outputs(server: Server, expected: Rows, results: list[Result]) -> None:
    for row, result in zip(expected, results, strict=True):
        expect(result.failure is None, "an output", result.failure, result.exchange)
        expect_same(server, [row], logprobs_of(result.value), "the output of the datum of the operation")


async def _run_samples(server: Server, sampler: OpenSampler, number: int) -> None:
    """Run many samples at once, each with its own number and length of sequences."""
    sizes = [(1 + index % 4, 1 + index // 4 % 3) for index in range(number)]
    results = await asyncio.gather(*(_sample(server, sampler, length, count) for length, count in sizes))
    for result, (length, count) in zip(results, sizes, strict=True):
        _expect_sequences(result, length, count)


async def _sample(server: Server, sampler: OpenSampler, length: int, count: int = 1) -> Result:
    """Run a sample, as often as the server is too busy for it."""
    call = sampler.sample_call(max_tokens=length, num_samples=count)
    while True:
        exchange = await server.client.send_call(call)
        if exchange.status != 429:
            break
        await asyncio.sleep(1.0)
    submission: QueuedWork = server.futures.read_submission("asample", exchange)
    return await server.futures.wait(submission, RESULTS_TIMEOUT_S)


def _expect_sequences(result: Result, length: int, count: int = 1) -> None:
    expect(result.failure is None, "a sample", result.failure, result.exchange)
    sequences = result.value.sequences
    expect(len(sequences) == count, f"{count} sequences", len(sequences), result.exchange)
    for sequence in sequences:
        size = len(sequence.tokens)
        # Only sequences that a stop token ends are shorter.
        is_right = size == length if sequence.stop_reason == "length" else 0 < size <= length
        expect(is_right, f"{length} tokens", f"{size} tokens and {sequence.stop_reason}", result.exchange)
