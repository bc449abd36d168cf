"""Train and sample through failures and kills of the server; compare with an undisturbed run, to the bit.

    python -m tests.rigs.chaos.run --steps 300 --samples 3000 --wire 0.38.0 --share 0.3 --kills 20 --seed 1

By default, ``make chaos`` runs each wire version at 10, 30 and 50 % of the requests, and writes docs/reliability.md.
"""

from __future__ import annotations

import argparse
import gc
import logging
import random
import resource
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import attrs
import numpy as np
from tests.rigs.chaos.proxy import KINDS, run_failure_proxy
from tests.rigs.official.report import DOCS, write_section
from tests.support.embedded import ServerProcess

import tinkerwire as tw

WIRES = ("0.4.1", "0.16.1", "0.25.0", "0.38.0")
SHARES = (0.1, 0.3, 0.5)
STEPS_PER_SAVE = 10
"""Steps between two sampling sessions."""
PATIENT = tw.RetryConfig(max_attempts=10_000, max_elapsed=3600.0, retry_delay_base=0.05, retry_delay_max=0.5)


@attrs.frozen
class Work:
    """The amount of work of one run, over one wire version."""

    wire: str
    steps: int
    samples: int


@attrs.define
class Outcome:
    """The outcome of one run.

    Args:
        state: weights and optimizer at the end, as bytes.
        texts: the tokens of all samples, in order.
        seconds: time of the run.
        problems: what differs from an undisturbed run, or was left.
        failures: number of requests by kind of failure.
        kills: number of kills.
        memory_mib: maximum memory of this process.
    """

    state: dict[str, bytes]
    texts: list[list[int]]
    seconds: float
    problems: list[str]
    failures: Counter[str]
    kills: int
    memory_mib: float


def train_and_sample(url: str, work: Work) -> list[list[int]]:
    """Do the work; return the tokens of all samples."""
    texts: list[list[int]] = []
    rounds = work.steps // STEPS_PER_SAVE
    with tw.ServiceClient(base_url=url, api_key="tml-chaos", retry=PATIENT, wire_version=work.wire) as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1)
        for step in range(work.steps):
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
                    for seed in range(step * 10_000, step * 10_000 + work.samples // rounds)
                ]
                texts += [sample.result().sequences[0].tokens for sample in samples]
        training.save_state("end").result()
    return texts


def run(work: Work, share: float, kills: int, seed: int) -> Outcome:
    """Run the work through the proxy, with kills at random moments, and check what is left."""
    rng = random.Random(seed)
    resources_before = _count_resources()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(folder, "--wire", work.wire, "--long-poll", "5")
        server.start()
        results: list[list[list[int]] | BaseException] = []
        finished = threading.Event()
        with run_failure_proxy(server.url, share, seed) as (url, proxy):

            def do_work() -> None:
                try:
                    results.append(train_and_sample(url, work))
                except BaseException as error:
                    results.append(error)
                finally:
                    finished.set()

            thread = threading.Thread(target=do_work)
            thread.start()
            kill_count = 0
            while kill_count < kills and not finished.wait(rng.uniform(0.1, 1.5)):
                server.kill()
                server.start()
                kill_count += 1
            thread.join()
        server.stop()
        (result,) = results
        seconds = time.monotonic() - started
        problems = [f"{type(result).__name__}: {result}"] if isinstance(result, BaseException) else []
        state = {} if problems else _read_state(Path(folder))
        problems += [] if problems else _check_journal(Path(folder), work)
    gc.collect()
    end = time.monotonic() + 10
    while _count_resources() > resources_before and time.monotonic() < end:
        time.sleep(0.1)
    pairs = zip(resources_before, _count_resources(), strict=True)
    problems += [f"left: {after - count} {name}" for (name, count), (_, after) in pairs if after > count]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    texts = [] if isinstance(result, BaseException) else result
    return Outcome(state, texts, seconds, problems, proxy.counts, kill_count, memory)


def _count_resources() -> list[tuple[str, int]]:
    """Return the numbers of threads and of open files, sockets included."""
    return [("threads", threading.active_count()), ("files", sum(1 for _ in Path("/proc/self/fd").iterdir()))]


def _read_state(folder: Path) -> dict[str, bytes]:
    (path,) = folder.glob("runs/*/weights/*.npz")
    with np.load(path) as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def _check_journal(folder: Path, work: Work) -> list[str]:
    """Check that each sample was drawn once, and that no operation is pending."""
    (path,) = folder.glob("journal-*.sqlite3")
    connection = sqlite3.connect(path)
    try:
        (samples,) = connection.execute("SELECT count(*) FROM results WHERE model = 'SampleResponse'").fetchone()
        (pending,) = connection.execute("SELECT count(*) FROM operations WHERE executed IS NULL").fetchone()
    finally:
        connection.close()
    requested = work.samples // (work.steps // STEPS_PER_SAVE) * (work.steps // STEPS_PER_SAVE)
    problems = [] if samples == requested else [f"{samples} samples were drawn for {requested}"]
    return problems if not pending else [*problems, f"{pending} operations are pending"]


def main(arguments: list[str]) -> int:
    """Run all cases; return 1 if one of them had a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--samples", type=int, default=600)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wire", action="append", choices=WIRES)
    parser.add_argument("--share", action="append", type=float)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    rows, failed = [], 0
    for wire in options.wire or WIRES:
        work = Work(wire, options.steps, options.samples)
        calm = run(work, 0.0, 0, 0)
        for share in options.share or SHARES:
            outcome = run(work, share, options.kills, options.seed)
            problems = [*calm.problems, *outcome.problems]
            problems += [] if outcome.state == calm.state else ["weights or optimizer differ"]
            problems += [] if outcome.texts == calm.texts else ["samples differ"]
            failed += bool(problems)
            rows.append(_render_row(work, share, calm, outcome, problems))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    write_section(DOCS / "reliability.md", "chaos", _render_report(options, rows), title="Reliability")
    return int(failed > 0)


def _render_row(work: Work, share: float, calm: Outcome, outcome: Outcome, problems: list[str]) -> str:
    injected = sum(outcome.failures[kind] for kind in KINDS)
    kinds = ", ".join(f"{kind} {outcome.failures[kind]}" for kind in KINDS)
    return (
        f"| {work.wire} | {share:.0%} | {outcome.kills} | {sum(outcome.failures.values())} | {injected}: {kinds} "
        f"| {calm.seconds:.0f} s | {outcome.seconds:.0f} s | {outcome.memory_mib:.0f} MiB "
        f"| {'; '.join(problems) or 'equal to the bit'} |"
    )


def _render_report(options: argparse.Namespace, rows: list[str]) -> str:
    table = "\n".join(rows)
    return f"""\
## Failures and kills

By `make chaos`: {options.steps} steps and {options.samples} samples through a proxy on the socket that injects failures
into a share of the requests, seed {options.seed}; the server is killed and started again at random moments. A 409 is
not injected into polls and saves, where it is a final response. After each run, the weights and the optimizer must be
equal to those of a run without failures to the bit, each sample drawn once, no operation pending, and no thread, socket
or file left.

| wire | failures | kills | requests | injected | without failures | with failures | peak memory | outcome |
|---|---|---|---|---|---|---|---|---|
{table}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
