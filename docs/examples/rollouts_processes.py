"""Rollouts in other processes of one machine.

python rollouts_processes.py URL spawn|fork PROCESSES SAMPLES
"""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import tinkerwire as tw

PROMPT = tw.ModelInput.from_ints(list(b"to be or not"))
PARAMS = tw.SamplingParams(max_tokens=8)


def roll_out(sampling: tw.SamplingClient, samples: int) -> int:
    """Return the number of tokens of the samples; runs in another process, with a copy of the client."""
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(samples)]
    return sum(len(future.result().sequences[0].tokens) for future in futures)


def main(url: str, method: str, processes: int, samples: int) -> None:
    """Sample in all processes at once, and print the number of tokens."""
    with tw.ServiceClient(base_url=url) as client:
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result()
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(processes, context) as pool:
            # The client is pickled without its API key, which each process reads from TINKER_API_KEY.
            tokens = list(pool.map(roll_out, [sampling] * processes, [samples // processes] * processes))
    print(sum(tokens))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
