"""A training loop that survives a dead server and a dead client.

python resilient_loop.py URL PROGRESS_FILE STEPS

A dead server costs time only: requests are resent until it is back. After the death of this program, start it again,
such as by ``until python resilient_loop.py ...; do sleep 1; done``: it resumes from its last checkpoint.
"""

import json
import sys
from pathlib import Path

import tinkerwire as tw

CHECKPOINT_STEPS = 5
DAY_S = 86_400
PATIENT = tw.RetryConfig(max_attempts=DAY_S, max_elapsed=DAY_S, progress_timeout=DAY_S, retry_delay_max=2.0)


def create_batch(step: int) -> list[tw.Datum]:
    """Return the data of one step, the same in every run."""
    text = f"step {step} of {step * step}".encode()
    targets = {"target_tokens": list(text[1:]), "weights": [1.0] * (len(text) - 1)}
    return [tw.Datum(model_input=tw.ModelInput.from_ints(list(text[:-1])), loss_fn_inputs=targets)]


def main(url: str, progress: Path, steps: int) -> None:
    """Train to the last step, and print the loss."""
    with tw.ServiceClient(base_url=url, retry=PATIENT) as client:
        done = 0
        if progress.exists():
            done, path = json.loads(progress.read_text())
            training = client.create_training_client_from_state_with_optimizer(path).result()
        else:
            training = client.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1).result()
        for step in range(done, steps):
            training.forward_backward(create_batch(step), "cross_entropy")
            training.optim_step(tw.AdamParams(learning_rate=1e-3)).result()
            if (step + 1) % CHECKPOINT_STEPS == 0:
                path = training.save_state(f"step-{step + 1}").result().path
                # The new file replaces the old one at once, so that each moment has a whole one.
                unfinished = progress.with_suffix(".new")
                unfinished.write_text(json.dumps([step + 1, path]))
                unfinished.replace(progress)
        print(repr(training.forward(create_batch(0), "cross_entropy").result().metrics["loss:sum"]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
