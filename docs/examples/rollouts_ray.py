"""Rollouts in Ray actors; one actor is killed on the way, and its part is sampled again.

python rollouts_ray.py URL ACTORS SAMPLES
"""

import os
import sys

import ray

import tinkerwire as tw

PROMPT = tw.ModelInput.from_ints(list(b"to be or not"))
PARAMS = tw.SamplingParams(max_tokens=8)
PARTS_PER_ACTOR = 10


@ray.remote(max_restarts=-1, max_task_retries=-1, num_cpus=0)
class RolloutActor:
    """Samples with a copy of the client; Ray restarts the actor and repeats its call if its process dies."""

    def __init__(self, sampling: tw.SamplingClient) -> None:
        """Keep the client."""
        self.sampling = sampling

    def roll_out(self, samples: int) -> int:
        """Return the number of samples that have a token."""
        futures = [self.sampling.sample(PROMPT, 1, PARAMS) for _ in range(samples)]
        return sum(bool(future.result().sequences[0].tokens) for future in futures)


def main(url: str, actors: int, samples: int) -> None:
    """Sample in all actors at once, and print the number of samples."""
    # The client is pickled without its API key, which each process reads from TINKER_API_KEY.
    keys = {name: value for name, value in os.environ.items() if name == "TINKER_API_KEY"}
    ray.init(runtime_env={"env_vars": keys}, include_dashboard=False, log_to_driver=False)
    with tw.ServiceClient(base_url=url) as client:
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result()
        pool = [RolloutActor.remote(sampling) for _ in range(actors)]
        part = samples // (actors * PARTS_PER_ACTOR)
        parts = [actor.roll_out.remote(part) for _ in range(PARTS_PER_ACTOR) for actor in pool]
        ray.wait(parts, num_returns=len(parts) // 3)
        ray.kill(pool[0], no_restart=False)
        print(sum(ray.get(parts)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
