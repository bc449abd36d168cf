"""Delay from a sample that is ready at the server to the caller: `python delay_worker.py MODULE URL SAMPLES WORKERS`.

MODULE is `tinker` or `tinkerwire`. WORKERS coroutines take the samples one after the other. Prints one JSON object.
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


async def run(url, samples, workers):
    """Take all samples and return their delays in seconds, and the seconds in all."""
    service = client.ServiceClient(base_url=url, api_key="tml-bench")
    sampler = await service.create_sampling_client_async(
        base_model="stub/model", retry_config=client.RetryConfig(max_connections=workers)
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
    await asyncio.gather(*(work() for _ in range(workers)))
    return sorted(delays), time.monotonic() - start


def main():
    """Take the samples of the command line and print the figures."""
    url, samples, workers = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    delays, wall_s = asyncio.run(run(url, samples, workers))
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "p50_ms": statistics.median(delays) * 1000,
        "p90_ms": delays[int(len(delays) * 0.9)] * 1000,
        "p99_ms": delays[int(len(delays) * 0.99)] * 1000,
        "max_ms": delays[-1] * 1000,
        "per_s": samples / wall_s,
        "cpu_ms": (used.ru_utime + used.ru_stime) * 1000 / samples,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
