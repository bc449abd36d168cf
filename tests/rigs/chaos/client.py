"""A process of clients that train and sample, each on its own model; prints a line of JSON for each at its end.

    python -m tests.rigs.chaos.client URL --first 0 --clients 5 --seconds 600 --pause 4

The operations of a client follow from its number, so that another run with as many steps repeats them.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import sys
import threading
import time

import attrs

import tinkerwire as tw

STEPS_PER_SAVE = 10
"""Steps between two sampling sessions."""
SAMPLES = 10
"""Samples from each sampling session."""
WIRE = "0.38.0"
PATIENT = tw.RetryConfig(max_attempts=100_000, max_elapsed=3600.0, retry_delay_base=0.1, retry_delay_max=2.0)


@attrs.define
class ClientResult:
    """The end of one client.

    Args:
        number: number of the client.
        steps: number of training steps.
        texts: the tokens of all samples.
        path: tinker:// path of the final state.
        problem: the error that ended the client, if any.
    """

    number: int
    steps: int = 0
    texts: list[list[int]] = attrs.field(factory=list)
    path: str = ""
    problem: str | None = None


def run_client(url: str, result: ClientResult, steps: float, options: argparse.Namespace) -> None:
    """Train and sample until the end of the steps or of the time."""
    pauses = random.Random(result.number)
    end = time.monotonic() + options.seconds
    # With tokens in place of the key, the client discovers whether the server uses them.
    wire = None if options.discovers else WIRE
    with tw.ServiceClient(base_url=url, api_key="tml-chaos", retry=PATIENT, wire_version=wire) as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=result.number)
        while result.steps < steps and time.monotonic() < end:
            tokens = [result.steps % 250, result.number, 8, 9]
            inputs = {"target_tokens": tokens[1:], "weights": [1.0] * 3}
            datum = tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)
            training.forward_backward([datum], "cross_entropy")
            metrics = training.optim_step(tw.AdamParams(learning_rate=1e-3)).result().metrics or {}
            result.steps += 1
            assert metrics["optimizer_step:max"] == result.steps, metrics
            if result.steps % STEPS_PER_SAVE == 0:
                path = training.save_weights_for_sampler(f"step-{result.steps}").result().path
                sampling = client.create_sampling_client(model_path=path)
                samples = [
                    sampling.sample(tw.ModelInput.from_ints([1, 2]), 1, tw.SamplingParams(max_tokens=4, seed=seed))
                    for seed in range(result.steps * 1000, result.steps * 1000 + SAMPLES)
                ]
                result.texts += [sample.result().sequences[0].tokens for sample in samples]
            time.sleep(pauses.uniform(0.0, 2 * options.pause))
        result.path = training.save_state("end").result().path


def count_samples(steps: int) -> int:
    """Return the number of samples of a client with a number of steps."""
    return steps // STEPS_PER_SAVE * SAMPLES


def main(arguments: list[str]) -> int:
    """Run the clients, each on a thread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--first", type=int, default=0, help="number of the first client")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--steps", type=int, nargs="+", help="steps of each client; by default the time is the limit")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--pause", type=float, default=0.0, help="mean seconds between two steps")
    parser.add_argument("--discovers", action="store_true", help="discover the wire version and the flags")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    results = [ClientResult(number) for number in range(options.first, options.first + options.clients)]

    def run(result: ClientResult, steps: float) -> None:
        try:
            run_client(options.url, result, steps, options)
        except Exception as error:
            result.problem = f"{type(error).__name__}: {error}"

    limits = options.steps or [math.inf] * len(results)
    threads = [threading.Thread(target=run, args=limited) for limited in zip(results, limits, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        sys.stdout.write(json.dumps(attrs.asdict(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
