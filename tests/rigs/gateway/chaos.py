"""Train, save, resume and sample through the gateway, with failures on both sides of it and kills of it.

    python -m tests.rigs.gateway.chaos

The work is done twice with each pair of wire versions: without failures directly at a server, and through the gateway.
Before and after the gateway is a proxy that injects failures, and the gateway is killed with -9 and started again on
its port, with its state file, at random moments. Weights, optimizer, samples and logprobs must be equal to the bit,
each sample drawn once, and no operation pending. The report goes to docs/gateway.md; exit code 1 if a run differs.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import attrs
from tests.rigs.chaos.proxy import KINDS, run_failure_proxy
from tests.rigs.chaos.state import check_journal, read_checkpoint
from tests.rigs.official.report import DOCS, write_section
from tests.support.embedded import ListeningProcess, ServerProcess

import tinkerwire as tw

PAIRS = (("0.38.0", "0.16.1"), ("0.16.1", "0.38.0"), ("0.38.0", "0.4.1"), ("0.4.1", "0.38.0"))
"""Wire versions of client and server."""
SHARE = 0.1
STEPS, SAMPLES_PER_ROUND, STEPS_PER_ROUND = 30, 10, 5
KILLS = 10
KILL_PAUSE_S = (0.2, 2.0)
MAX_SECONDS = 1200
SEED = 1
PATIENT = tw.RetryConfig(max_attempts=10_000, max_elapsed=3600.0, retry_delay_base=0.05, retry_delay_max=0.5)


@attrs.define
class Outcome:
    """The end of one run.

    Args:
        state: weights and optimizer at the end, as bytes.
        samples: tokens and logprobs of all samples, in order.
        outputs: logprobs of all training steps.
        rounds: number of rounds done.
    """

    path: str = ""
    state: dict[str, bytes] = attrs.field(factory=dict)
    samples: list[tuple[list[int], list[float]]] = attrs.field(factory=list)
    outputs: list[bytes] = attrs.field(factory=list)
    rounds: int = 0
    seconds: float = 0.0
    kills: int = 0
    failures: Counter[str] = attrs.field(factory=Counter)
    problems: list[str] = attrs.field(factory=list)


def do_work(url: str, wire: str, outcome: Outcome, *, loads_optimizer: bool) -> None:
    """Train in rounds; after each, sample from saved weights, and continue with a new model from the saved state."""
    with tw.ServiceClient(base_url=url, api_key="tml-chaos", retry=PATIENT, wire_version=wire) as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=SEED)
        for start in range(0, STEPS, STEPS_PER_ROUND):
            for step in range(start, start + STEPS_PER_ROUND):
                tokens = [step % 250, 7, 8, 9]
                inputs = {"target_tokens": tokens[1:], "weights": [1.0] * 3}
                datum = tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)
                output = training.forward_backward([datum], "cross_entropy")
                training.optim_step(tw.AdamParams(learning_rate=1e-3)).result()
                outcome.outputs.append(output.result().loss_fn_outputs[0]["logprobs"].to_numpy().tobytes())
            path = training.save_weights_for_sampler(f"sampler-{start}").result().path
            sampling = service.create_sampling_client(model_path=path)
            prompt = tw.ModelInput.from_ints([1, 2])
            samples = [
                sampling.sample(prompt, 1, tw.SamplingParams(max_tokens=4, seed=start * 1000 + number))
                for number in range(SAMPLES_PER_ROUND)
            ]
            sequences = [sample.result().sequences[0] for sample in samples]
            outcome.samples += [(list(one.tokens), list(one.logprobs or ())) for one in sequences]
            outcome.path = training.save_state(f"state-{start}").result().path
            if loads_optimizer:
                training = service.create_training_client_from_state_with_optimizer(outcome.path)
            else:
                training = service.create_training_client_from_state(outcome.path)
            outcome.rounds += 1


def run(client_wire: str, server_wire: str, *, is_direct: bool = False, options: argparse.Namespace) -> Outcome:
    """Do the work through the gateway and two proxies, or directly at the server without failures."""
    outcome = Outcome()
    started = time.monotonic()
    # Wire 0.4.1 loads weights only.
    loads_optimizer = "0.4.1" not in (client_wire, server_wire)
    with tempfile.TemporaryDirectory() as name:
        server = ServerProcess(Path(name, "server"), "--wire", server_wire, "--long-poll", "5")
        server.start()
        try:
            if is_direct:
                do_work(server.url, server_wire, outcome, loads_optimizer=loads_optimizer)
            else:
                state = str(Path(name, "gateway.sqlite3"))
                with run_failure_proxy(server.url, options.share, options.seed) as (near_server, behind):
                    gateway = ListeningProcess("gateway", "--to", near_server, "--state", state)
                    gateway.start()
                    with run_failure_proxy(gateway.url, options.share, options.seed + 1) as (near_client, before):

                        def work() -> None:
                            do_work(near_client, client_wire, outcome, loads_optimizer=loads_optimizer)

                        _work_with_kills(work, gateway, options, outcome)
                    gateway.stop()
                outcome.failures = before.counts + behind.counts
        except Exception as error:
            outcome.problems.append(f"{type(error).__name__}: {error}")
        finally:
            server.stop()
        outcome.seconds = time.monotonic() - started
        if not outcome.problems:
            outcome.state = read_checkpoint(Path(name, "server"), outcome.path)
            outcome.problems += check_journal(Path(name, "server"), len(outcome.samples))
    return outcome


def _work_with_kills(
    work: Callable[[], None], gateway: ListeningProcess, options: argparse.Namespace, outcome: Outcome
) -> None:
    def run_work() -> None:
        try:
            work()
        except Exception as error:
            outcome.problems.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=run_work, daemon=True)
    thread.start()
    rng = random.Random(options.seed)
    # Spread over the rounds, of which the last ones may be short.
    for done in sorted(rng.randrange(STEPS // STEPS_PER_ROUND) for _ in range(options.kills)):
        while outcome.rounds < done and thread.is_alive():
            time.sleep(0.02)
        time.sleep(rng.uniform(*KILL_PAUSE_S))
        if not thread.is_alive():
            break
        gateway.kill()
        gateway.start()
        outcome.kills += 1
    thread.join(MAX_SECONDS)
    if thread.is_alive():
        outcome.problems.append(f"the work did not end within {MAX_SECONDS} s")


def compare(calm: Outcome, outcome: Outcome) -> list[str]:
    """Return what differs between two runs, and what was wrong in either."""
    problems = [*calm.problems, *outcome.problems]
    for name in ("state", "samples", "outputs"):
        if getattr(calm, name) != getattr(outcome, name):
            problems.append(f"{name} differ")
    return problems


def main() -> int:
    """Run all pairs, write the report, and return 1 if a run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--share", type=float, default=SHARE, help="share of the requests that meet a failure")
    parser.add_argument("--kills", type=int, default=KILLS, help="kills of the gateway in each run")
    parser.add_argument("--pairs", nargs="+", metavar="CLIENT:SERVER", help="wire versions; printed only")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pairs = [tuple(pair.split(":")) for pair in options.pairs] if options.pairs else PAIRS
    rows, has_failed = [], False
    for client_wire, server_wire in pairs:
        calm = run(client_wire, server_wire, is_direct=True, options=options)
        outcome = run(client_wire, server_wire, options=options)
        problems = compare(calm, outcome)
        has_failed = has_failed or bool(problems)
        injected = sum(outcome.failures[kind] for kind in KINDS)
        rows.append(
            f"| {client_wire} | {server_wire} | {sum(outcome.failures.values())} | {injected} | {outcome.kills} | "
            f"{calm.seconds:.0f} s | {outcome.seconds:.0f} s | {'; '.join(problems) or 'equal to the bit'} |"
        )
        sys.stdout.write(rows[-1] + "\n")
        sys.stdout.flush()
    if not options.pairs:
        write_section(DOCS / "gateway.md", "chaos", _render(rows, options), title="The gateway")
    return int(has_failed)


def _render(rows: list[str], options: argparse.Namespace) -> str:
    table = "\n".join(rows)
    return f"""\
## Failures and kills

Made by `make gateway-chaos`, seed {options.seed}: tinkerwire trains for {STEPS} steps through the gateway. After every
{STEPS_PER_ROUND} steps it draws {SAMPLES_PER_ROUND} samples from saved weights, and continues with a new model from the
saved state. Two proxies, one on each side of the gateway, each inject failures into {options.share:.0%} of the
requests, of the kinds of [Reliability](reliability.md). The gateway is killed with -9 at random moments, and started
again with its state file. Weights, optimizer, samples and logprobs must be equal to the bit to those of a run without
failures directly at the server, each sample drawn once, and no operation pending.

| client | server | requests | failures | kills | without failures | through the gateway | outcome |
|---|---|---|---|---|---|---|---|
{table}
"""


if __name__ == "__main__":
    sys.exit(main())
