"""CPU of a trace: 2,000 samples at once with and without one, by turns in one process, against the stub of the bench.

python -m tests.rigs.bench.trace_cost [PAIRS]

Prints the ratio of the CPU of each pair, their median and the ratio of the sums. Batches of one process are compared,
because processes differ by more than a trace costs. The CPU is that of all threads, and includes writing the file.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.rigs.bench.stub import stub_server

import tinkerwire

SAMPLES = 2_000
PROMPT_TOKENS = 1_000
SAMPLE_TOKENS = 256


def measure_cpu_ms(sampling: tinkerwire.SamplingClient, recorder: Any) -> float:
    """Return the CPU milliseconds per sample of one batch, recorded or not."""
    operations = sampling._connection.operations
    operations.recorder = recorder
    prompt, params = list(range(PROMPT_TOKENS)), tinkerwire.SamplingParams(max_tokens=SAMPLE_TOKENS)
    gc.collect()
    start = time.process_time()
    futures = [
        sampling.sample(tinkerwire.ModelInput.from_ints(prompt), num_samples=1, sampling_params=params)
        for _ in range(SAMPLES)
    ]
    for future in futures:
        sequence = future.result().sequences[0]
        if len(sequence.tokens) != SAMPLE_TOKENS or len(sequence.logprobs or ()) != SAMPLE_TOKENS:
            raise SystemExit("the stub returned another sample")
    if recorder is not None:
        recorder.flush()
    return (time.process_time() - start) * 1000 / SAMPLES


def main() -> None:
    """Measure the pairs."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    os.environ["TINKER_TELEMETRY"] = "0"
    with stub_server() as urls, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.trace")
        retry = tinkerwire.RetryConfig(max_connections=SAMPLES)
        with tinkerwire.ServiceClient(base_url=urls.newest, api_key="tml-bench", retry=retry, trace=path) as service:
            sampling = service.create_sampling_client(base_model="stub/model")
            recorder = service._connection.operations.recorder
            measure_cpu_ms(sampling, recorder)  # warm up
            recorded, bare = [], []
            for number in range(pairs):
                for is_recorded in (number % 2 == 0, number % 2 == 1):
                    figure = measure_cpu_ms(sampling, recorder if is_recorded else None)
                    (recorded if is_recorded else bare).append(figure)
                sys.stdout.write(f"without {bare[-1]:.4f} ms, with {recorded[-1]:.4f} ms\n")
                sys.stdout.flush()
        ratios = [one / other for one, other in zip(recorded, bare, strict=True)]
        size = path.stat().st_size / (SAMPLES * (pairs + 1))
    sys.stdout.write(
        f"ratio of pairs: median {statistics.median(ratios):.4f}, least {min(ratios):.4f}, most {max(ratios):.4f}; "
        f"ratio of sums {sum(recorded) / sum(bare):.4f}; least without {min(bare):.4f} ms, least with "
        f"{min(recorded):.4f} ms; {size:.0f} bytes of trace per sample\n"
    )


if __name__ == "__main__":
    main()
