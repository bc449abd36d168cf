"""Delay from a sample that is ready at the server to the caller.

python delay_worker.py MODULE URL SAMPLES CALLERS IN_FLIGHT [SECONDS]

MODULE is `tinker` or `tinkerwire`. CALLERS coroutines take the samples one after the other, and the client keeps at
most IN_FLIGHT of them in flight. After SECONDS, the samples that remain are cancelled. Prints one JSON object.
"""

import asyncio
import json
import resource
import statistics
import sys
import time

client = __import__(sys.argv[1])
if not hasattr(client, "RetryConfig"):
    from tinker.lib.retry_handler import RetryConfig

    client.RetryConfig = RetryConfig

CLOCK_US = 2**31
"""The server counts microseconds modulo this."""


async def run(url, samples, callers, in_flight, seconds):
    """Take all samples and return their delays in seconds, and the seconds in all."""
    service = client.ServiceClient(base_url=url, api_key="tml-bench")
    sampler = await service.create_sampling_client_async(
        base_model="stub/model", retry_config=client.RetryConfig(max_connections=in_flight)
    )
    prompt = client.types.ModelInput.from_ints([1, 2, 3])
    params = client.types.SamplingParams(max_tokens=1)
    delays, remaining = [], iter(range(samples))

    async def work():
        for _ in remaining:
            response = await sampler.sample_async(prompt, num_samples=1, sampling_params=params)
            ready_us = next(iter(response.sequences[0].tokens))
            delays.append((time.monotonic() * 1e6 - ready_us) % CLOCK_US / 1e6)

    start = time.monotonic()
    work_of_all = asyncio.gather(*(work() for _ in range(callers)))
    done, _ = await asyncio.wait({work_of_all}, timeout=seconds)
    wall_s = time.monotonic() - start
    for finished in done:
        finished.result()  # raises what has failed
    return sorted(delays), wall_s


def main():
    """Take the samples of the command line and print the figures."""
    url, samples, callers, in_flight = sys.argv[2], *map(int, sys.argv[3:6])
    seconds = float(sys.argv[6]) if sys.argv[6:] else None
    delays, wall_s = asyncio.run(run(url, samples, callers, in_flight, seconds))
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "p50_ms": statistics.median(delays) * 1000,
        "p90_ms": delays[int(len(delays) * 0.9)] * 1000,
        "p99_ms": delays[int(len(delays) * 0.99)] * 1000,
        "max_ms": delays[-1] * 1000,
        "finished": len(delays),
        "per_s": len(delays) / wall_s,
        "cpu_ms": (used.ru_utime + used.ru_stime) * 1000 / len(delays),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
