"""Train and sample through failures and kills of the server; compare with an undisturbed run, to the bit."""

from __future__ import annotations

import gc
import itertools
import logging
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import attrs
from tests.rigs.chaos.memory import GROWTH_MIB, check_level, read_memory_mib
from tests.rigs.chaos.proxy import KINDS, LATE_S, STALL_S, STATUSES, run_failure_proxy
from tests.rigs.chaos.settings import Settings
from tests.rigs.chaos.state import check_journal, read_checkpoint
from tests.support.embedded import ServerProcess

import tinkerwire as tw

WIRES = ("0.4.1", "0.16.1", "0.25.0", "0.38.0")
SHARES = (0.1, 0.3, 0.5)
STEPS_PER_SAVE = 10
"""Steps between two sampling sessions."""
MAX_SECONDS = 3000
"""Time limit of one run."""
PATIENT = tw.RetryConfig(max_attempts=10_000, max_elapsed=3600.0, retry_delay_base=0.05, retry_delay_max=0.5)


@attrs.frozen
class Case:
    """One run: the work, and the failures that it meets.

    Args:
        wire: wire version.
        steps: number of training steps.
        samples: number of samples.
        share: share of the requests that meet a failure.
        kills: number of kills of the server.
        seed: seed of the failures and of the moments of the kills.
    """

    wire: str
    steps: int
    samples: int
    share: float = 0.0
    kills: int = 0
    seed: int = 0

    @property
    def samples_per_round(self) -> int:
        """Number of samples from each sampling session."""
        return self.samples * STEPS_PER_SAVE // self.steps


@attrs.define
class Outcome:
    """The outcome of one run.

    Args:
        case: the run.
        path: tinker:// path of the final state.
        state: weights and optimizer at the end, as bytes.
        texts: the tokens of all samples, in order.
        seconds: time of the run.
        problems: what differs from the expected state, or was left.
        failures: number of requests by kind of failure.
        kills: number of kills.
        memory_mib: memory of the process after each round.
    """

    case: Case
    path: str = ""
    state: dict[str, bytes] = attrs.field(factory=dict)
    texts: list[list[int]] = attrs.field(factory=list)
    seconds: float = 0.0
    problems: list[str] = attrs.field(factory=list)
    failures: Counter[str] = attrs.field(factory=Counter)
    kills: int = 0
    memory_mib: list[float] = attrs.field(factory=list)


def train_and_sample(url: str, case: Case, outcome: Outcome) -> None:
    """Do the work; add the tokens of all samples and the memory to the outcome."""
    with tw.ServiceClient(base_url=url, api_key="tml-chaos", retry=PATIENT, wire_version=case.wire) as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1)
        for step in range(case.steps):
            tokens = [step % 250, 7, 8, 9]
            inputs = {"target_tokens": tokens[1:], "weights": [1.0] * 3}
            datum = tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)
            training.forward_backward([datum], "cross_entropy")
            metrics = training.optim_step(tw.AdamParams(learning_rate=1e-3)).result().metrics or {}
            assert metrics["optimizer_step:max"] == step + 1, metrics
            if (step + 1) % STEPS_PER_SAVE == 0:
                path = training.save_weights_for_sampler(f"step-{step + 1}").result().path
                sampling = client.create_sampling_client(model_path=path)
                samples = [
                    sampling.sample(tw.ModelInput.from_ints([1, 2]), 1, tw.SamplingParams(max_tokens=4, seed=seed))
                    for seed in range(step * 10_000, step * 10_000 + case.samples_per_round)
                ]
                outcome.texts += [sample.result().sequences[0].tokens for sample in samples]
                del sampling, samples
                gc.collect()
                outcome.memory_mib.append(read_memory_mib())
        outcome.path = training.save_state("end").result().path


def run(case: Case) -> Outcome:
    """Run the work through the proxy, with kills at random moments, and check what is left."""
    resources_before = _count_resources()
    started = time.monotonic()
    outcome = Outcome(case)
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(folder, "--wire", case.wire, "--long-poll", "5")
        server.start()
        with run_failure_proxy(server.url, case.share, case.seed) as (url, proxy):

            def do_work() -> None:
                try:
                    train_and_sample(url, case, outcome)
                except Exception as error:
                    outcome.problems.append(f"{type(error).__name__}: {error}")

            thread = threading.Thread(target=do_work, daemon=True)
            thread.start()
            for pause in _draw_pauses(case, outcome, thread):
                time.sleep(pause)
                server.kill()
                server.start()
                outcome.kills += 1
            thread.join(MAX_SECONDS)
        if thread.is_alive():
            outcome.problems.append("the work did not end")
        server.stop()
        outcome.seconds = time.monotonic() - started
        if not outcome.problems:
            outcome.state = read_checkpoint(Path(folder), outcome.path)
            outcome.problems += check_journal(Path(folder), len(outcome.texts))
    gc.collect()
    end = time.monotonic() + 10
    while _count_resources() > resources_before and time.monotonic() < end:
        time.sleep(0.1)
    pairs = zip(resources_before, _count_resources(), strict=True)
    outcome.problems += [f"left: {after - count} {name}" for (name, count), (_, after) in pairs if after > count]
    outcome.problems += check_level("client", outcome.memory_mib)
    outcome.failures = proxy.counts
    return outcome


def _draw_pauses(case: Case, outcome: Outcome, thread: threading.Thread) -> Iterator[float]:
    """Wait for each moment of a kill, spread over the samples; yield a further pause in seconds."""
    rng = random.Random(case.seed)
    rounds = sorted(rng.randrange(case.steps // STEPS_PER_SAVE) for _ in range(case.kills))
    for number in rounds:
        while len(outcome.memory_mib) < number and thread.is_alive():
            time.sleep(0.05)
        if not thread.is_alive():
            return
        yield rng.uniform(0.05, 2.0)


def _count_resources() -> list[tuple[str, int]]:
    """Return the numbers of threads and of open files, sockets included."""
    return [("threads", threading.active_count()), ("files", sum(1 for _ in Path("/proc/self/fd").iterdir()))]


def run_cases(settings: Settings) -> tuple[str, bool]:
    """Run each wire version at each share, several at a time; return the report and whether all runs were equal."""
    cases = [Case(wire, settings.steps, settings.samples) for wire in WIRES]
    cases += [
        attrs.evolve(case, share=share, kills=settings.kills, seed=settings.seed)
        # The longest runs start first, so that the last ones are short.
        for share, case in itertools.product(sorted(SHARES, reverse=True), cases)
    ]
    context = get_context("spawn")
    with ProcessPoolExecutor(settings.workers, context, logging.disable, max_tasks_per_child=1) as pool:
        outcomes = {(outcome.case.wire, outcome.case.share): outcome for outcome in pool.map(run, cases)}
    rows, is_equal = [], True
    for wire, share in itertools.product(WIRES, SHARES):
        calm, outcome = outcomes[wire, 0.0], outcomes[wire, share]
        problems = [*calm.problems, *outcome.problems]
        problems += [] if outcome.state == calm.state else ["weights or optimizer differ"]
        problems += [] if outcome.texts == calm.texts else ["samples differ"]
        is_equal &= not problems
        rows.append(_render_row(calm, outcome, problems))
    return _render_report(settings, rows, _render_kinds(outcomes.values())), is_equal


def _render_row(calm: Outcome, outcome: Outcome, problems: list[str]) -> str:
    injected = sum(outcome.failures[kind] for kind in KINDS)
    memory = outcome.memory_mib
    memory_text = f"{memory[len(memory) // 3]:.0f}, {memory[-1]:.0f} MiB" if memory else ""
    return (
        f"| {outcome.case.wire} | {outcome.case.share:.0%} | {outcome.kills} | {sum(outcome.failures.values())} "
        f"| {injected} | {calm.seconds:.0f} s | {outcome.seconds:.0f} s | {memory_text} "
        f"| {'; '.join(problems) or 'equal to the bit'} |"
    )


def _render_kinds(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a row for each kind of failure: its requests at each share, in all wire versions together."""
    counts = {share: Counter[str]() for share in SHARES}
    for outcome in outcomes:
        if outcome.case.share:
            counts[outcome.case.share].update(outcome.failures)
    return [f"| {kind} | {' | '.join(str(counts[share][kind]) for share in SHARES)} |" for kind in KINDS]


def _render_report(settings: Settings, rows: list[str], kinds: list[str]) -> str:
    table, kinds_table = "\n".join(rows), "\n".join(kinds)
    return f"""\
### Failures and kills

{settings.steps} steps and {settings.samples} samples in each run, through a proxy on the socket that injects failures
into a share of the requests, seed {settings.seed}, {settings.workers} runs at a time. The server is killed with -9 and
started again at random moments. After each run, the weights and the optimizer must be equal to those of a run without
failures to the bit, each sample drawn once, no operation pending, and no thread, socket or file left. The memory of the
client, with the proxy in its process, may grow by at most {GROWTH_MIB:.0f} MiB from the end of the first third of the
run to its end.

| wire | failures | kills | requests | injected | without failures | with failures | memory, third and end | outcome |
|---|---|---|---|---|---|---|---|---|
{table}

The kinds of failures, as numbers of requests. "Before" and "after" are before and after the server acted; a duplicate
is sent twice at once or {LATE_S} s later; a stall lasts {STALL_S:.0f} s. The statuses are
{", ".join(map(str, STATUSES))}, without 409 for polls and saves, where it is a final response.

| kind | {" | ".join(f"{share:.0%}" for share in SHARES)} |
|---|{"---|" * len(SHARES)}
{kinds_table}
"""
