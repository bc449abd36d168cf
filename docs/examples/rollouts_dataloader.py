"""Rollouts in the workers of torch's DataLoader.

python rollouts_dataloader.py URL WORKERS SAMPLES
"""

import sys

import torch
from torch.utils.data import DataLoader, Dataset

import tinkerwire as tw

PARAMS = tw.SamplingParams(max_tokens=8)


class Rollouts(Dataset[torch.Tensor]):
    """A sample for each prompt; each worker has a copy of the client."""

    def __init__(self, sampling: tw.SamplingClient, prompts: list[list[int]]) -> None:
        """Keep the client and the prompts."""
        self.sampling = sampling
        self.prompts = prompts

    def __len__(self) -> int:
        """Return the number of prompts."""
        return len(self.prompts)

    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        """Return the samples of a batch, which are all in flight at once."""
        prompts = [tw.ModelInput.from_ints(self.prompts[index]) for index in indices]
        futures = [self.sampling.sample(prompt, 1, PARAMS) for prompt in prompts]
        return [torch.tensor(future.result().sequences[0].tokens) for future in futures]


def main(url: str, workers: int, samples: int) -> None:
    """Sample every prompt once, and print the number of tokens."""
    with tw.ServiceClient(base_url=url) as client:
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result()
        prompts = [list(f"prompt {number}".encode()) for number in range(samples)]
        loader = DataLoader(Rollouts(sampling, prompts), batch_size=16, num_workers=workers, collate_fn=list)
        print(sum(len(tokens) for batch in loader for tokens in batch))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
