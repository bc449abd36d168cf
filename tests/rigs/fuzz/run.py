"""The long run of the fuzz test: new seeds until the time is over; those that fail are added to seeds.txt.

PYTHONPATH=tests python -m rigs.fuzz.run            an hour, or FUZZ_SECONDS
PYTHONPATH=tests python -m rigs.fuzz.run SEED ...   these cases
"""

from __future__ import annotations

import logging
import os
import random
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rigs.fuzz.cases import Problem, run_case
from rigs.fuzz.server import run_mutating_server

SEEDS = Path(__file__).with_name("seeds.txt")
THREADS = 4


def read_kept_seeds() -> list[int]:
    """Return the seeds that once found a bug."""
    lines = (line.partition("#")[0].strip() for line in SEEDS.read_text().splitlines())
    return [int(line) for line in lines if line]


def run_cases(seeds: Iterable[int]) -> Iterator[tuple[int, Problem | None]]:
    """Run cases on several threads; yield each seed with its problem."""
    with run_mutating_server() as server, ThreadPoolExecutor(THREADS) as pool:

        def run(seed: int) -> tuple[int, Problem | None]:
            return seed, run_case(server, seed)

        yield from pool.map(run, seeds)


def main(arguments: list[str]) -> int:
    """Run the given seeds, or new ones until FUZZ_SECONDS are over; return 1 when a case had a problem."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    started, limit = time.monotonic(), float(os.environ.get("FUZZ_SECONDS", "3600"))
    count, failed = 0, 0

    def seeds() -> Iterator[int]:
        while time.monotonic() < started + limit:
            yield random.getrandbits(48)

    chosen_seeds = [int(argument) for argument in arguments]
    source = iter(chosen_seeds) if chosen_seeds else seeds()
    while True:
        # In parts, because a pool takes all seeds of an iterator at once.
        part = [seed for _, seed in zip(range(200), source, strict=False)]
        if not part:
            break
        for seed, problem in run_cases(part):
            count += 1
            if problem is not None:
                failed += 1
                sys.stdout.write(f"seed {seed}: {problem.text}\n")
                if not chosen_seeds:
                    with SEEDS.open("a") as file:
                        file.write(f"{seed}  # {problem.text.strip().splitlines()[-1][:90]}\n")
        sys.stdout.write(f"{time.monotonic() - started:.0f} s: {count} cases, {failed} with a problem\n")
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
