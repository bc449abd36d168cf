"""Advice: programs that waste time and programs that do not, against the embedded server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tinkerwire as tw
from client.trace.conftest import NANO
from client.trace.test_report import sample, write_trace
from support.clients import datum
from tinkerwire._trace.advice import Advice, find_advice
from tinkerwire._trace.reading import Trace
from tinkerwire.local import EmbeddedServer, FaultInjection

ADAM = tw.AdamParams(learning_rate=1e-3)
BATCH = [datum(1, 2, 3)] * 4
PROMPT = tw.ModelInput.from_ints([1, 2, 3, 4, 5])
PARAMS = tw.SamplingParams(max_tokens=3)
STEPS = 5
Advise = Callable[..., dict[str, Advice]]


@pytest.fixture
def advise(traced: Callable[..., Trace]) -> Advise:
    """Return a function that runs a program, and returns the advice about it by rule."""

    def run(program: Callable[[tw.ServiceClient], object], **options: object) -> dict[str, Advice]:
        return {advice.rule: advice for advice in find_advice(traced(program, **options))}

    return run


def pipelined(service: tw.ServiceClient) -> None:
    """Train as one should: both calls of a step before either result."""
    training = service.create_lora_training_client(NANO, rank=4)
    for _ in range(STEPS):
        batch, step = training.forward_backward(BATCH, "cross_entropy"), training.optim_step(ADAM)
        batch.result()
        step.result()
    sampling = training.save_weights_and_get_sampling_client()
    tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)]).result()


def test_good_program_gets_no_advice(advise: Advise) -> None:
    assert advise(pipelined) == {}


def test_awaited_forward_backward(advise: Advise) -> None:
    """The figures are the number of steps and the time from result to optim_step."""

    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for _ in range(STEPS):
            training.forward_backward(BATCH, "cross_entropy").result()
            training.optim_step(ADAM).result()

    (advice,) = advise(program).values()
    assert advice.rule == "forward_backward awaited before optim_step"
    assert advice.text.startswith(f"In {STEPS} of {STEPS} steps, ")
    assert advice.seconds > 0


def test_sample_after_sample(advise: Advise) -> None:
    def program(service: tw.ServiceClient) -> None:
        sampling = service.create_sampling_client(base_model=NANO)
        for _ in range(12):
            sampling.sample(PROMPT, 1, PARAMS).result()

    (advice,) = advise(program).values()
    assert advice.rule == "samples asked one by one"
    assert advice.text.startswith("12 of 12 samples ")


def test_conversation_gets_no_advice(advise: Advise) -> None:
    """Each prompt continues the sample before it: the samples depend on each other."""

    def program(service: tw.ServiceClient) -> None:
        sampling = service.create_sampling_client(base_model=NANO)
        tokens = [1, 2, 3]
        for _ in range(15):
            response = sampling.sample(tw.ModelInput.from_ints(tokens), 1, PARAMS).result()
            tokens = [*tokens, *response.sequences[0].tokens]

    assert advise(program) == {}


def train_with_calls(batches: list[list[tw.Datum]], losses: list[str]) -> Callable[[tw.ServiceClient], None]:
    """Return a program that calls forward_backward several times in each step."""

    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for _ in range(STEPS):
            futures = [
                training.forward_backward(batch, loss)  # type: ignore[arg-type]
                for batch, loss in zip(batches, losses, strict=True)
            ]
            step = training.optim_step(ADAM)
            tw.gather(futures).result()
            step.result()

    return program


def test_small_batches(advise: Advise) -> None:
    (advice,) = advise(train_with_calls([[datum(1, 2)]] * 4, ["cross_entropy"] * 4)).values()
    assert advice.rule == "batches too small"
    assert "typically 4 with 4 datums" in advice.text
    assert "4 of 128 datums" in advice.text


def test_batches_that_do_not_fit_together_get_no_advice(advise: Advise) -> None:
    """Two calls of 100 datums need two requests in any case."""
    assert advise(train_with_calls([[datum(1, 2)] * 100] * 2, ["cross_entropy"] * 2)) == {}


def test_batches_with_different_losses_get_no_advice(advise: Advise) -> None:
    rl_datum = tw.Datum(
        model_input=tw.ModelInput.from_ints([1, 2]),
        loss_fn_inputs={"target_tokens": [2, 3], "logprobs": [-1.0, -1.0], "advantages": [1.0, 1.0]},
    )
    batches = [[datum(1, 2)], [rl_datum]]
    assert advise(train_with_calls(batches, ["cross_entropy", "importance_sampling"])) == {}


def test_many_chunks(advise: Advise) -> None:
    limits = tw.ChunkLimits(max_datums=2)
    program = train_with_calls([[datum(1, 2)] * 16], ["cross_entropy"])
    (advice,) = advise(program, chunk_limits=limits).values()
    assert advice.rule == "too many chunks"
    assert "16 datums in 8 requests" in advice.text
    assert "max_datums=2" in advice.text


def test_one_low_limit_beside_a_high_one(advise: Advise) -> None:
    limits = tw.ChunkLimits(max_values=1_000_000, max_body_bytes=2_000)
    program = train_with_calls([[datum(1, 2)] * 32], ["cross_entropy"])
    (advice,) = advise(program, chunk_limits=limits).values()
    assert advice.rule == "too many chunks"
    assert "max_body_bytes=2,000" in advice.text


def test_server_that_allows_no_datums_gets_one_a_request(path: Path) -> None:
    """As the client sends them: the report does not divide by zero."""
    split = [
        "split",
        0.0,
        4,
        12,
        4,
        1,
        500_000,
        1,
        0,
        0,
        "cross_entropy",
        "send",
        0.0,
        1,
        9,
        "response",
        0.0,
        1,
        200,
        0,
    ]
    batch = sample(0.0, 1.0, split, kind="ForwardBackward", model_id="m")
    advice = find_advice(write_trace(path, [batch] * 3))
    assert advice == []


def test_chunks_that_the_limits_require_get_no_advice(advise: Advise) -> None:
    assert advise(train_with_calls([[datum(1, 2)] * 300], ["cross_entropy"])) == {}


def save_every(interval: int) -> Callable[[tw.ServiceClient], None]:
    """Return a program that saves its state after so many steps, and waits for it."""

    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for number in range(2 * STEPS):
            batch, step = training.forward_backward(BATCH, "cross_entropy"), training.optim_step(ADAM)
            batch.result()
            step.result()
            if number % interval == 0:
                training.save_state(f"step-{number}").result()

    return program


def test_state_saved_in_every_step(advise: Advise) -> None:
    (advice,) = advise(save_every(1)).values()
    assert advice.rule == "state saved in every step"
    assert f"{2 * STEPS} of {2 * STEPS} steps" in advice.text


def test_state_saved_sometimes_gets_no_advice(advise: Advise) -> None:
    assert advise(save_every(5)) == {}


def test_samplers_without_samples(advise: Advise) -> None:
    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for number in range(STEPS):
            futures = [training.forward_backward(BATCH, "cross_entropy"), training.optim_step(ADAM)]
            sampling = training.save_weights_and_get_sampling_client()
            tw.gather(futures).result()  # type: ignore[type-var]
            sampling.result()
            if number == 0:
                sampling.sample(PROMPT, 1, PARAMS).result()

    (advice,) = advise(program).values()
    assert advice.rule == "samplers without samples"
    assert advice.text.startswith(f"{STEPS - 1} of {STEPS} calls ")


def test_saves_of_the_same_weights(advise: Advise) -> None:
    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for number in range(STEPS):
            training.save_state(f"copy-{number}").result()

    (advice,) = advise(program).values()
    assert advice.rule == "weights saved that had not changed"
    assert advice.text.startswith(f"{STEPS - 1} saves (SaveWeights) ")


def sample_many(service: tw.ServiceClient) -> None:
    """Ask for 40 samples at once."""
    sampling = service.create_sampling_client(base_model=NANO)
    tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(40)]).result()


def narrow() -> tw.RetryConfig:
    """Return a policy with two samples in flight."""
    return tw.RetryConfig(max_connections=2, retry_delay_base=0.001, retry_delay_max=0.01, max_attempts=100)


def test_low_concurrency(advise: Advise) -> None:
    (advice,) = advise(sample_many, retry=narrow()).values()
    assert advice.rule == "concurrency below what the server allows"
    assert "max_connections=2" in advice.text


def test_low_concurrency_of_a_busy_server_gets_no_advice(advise: Advise) -> None:
    """The server rejected samples: it allows no more."""
    faults = FaultInjection(seed=2, p_429=0.3, only={"asample"})
    assert advise(sample_many, server=EmbeddedServer(fault_injection=faults), retry=narrow()) == {}
    assert faults.counts["429"] > 0
