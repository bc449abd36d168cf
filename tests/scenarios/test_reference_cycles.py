"""Operations leave no reference cycles, so that what a program drops is freed at once."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import tinkerwire as tw

DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints([1, 2, 3]),
    loss_fn_inputs={"target_tokens": [2, 3, 4], "weights": [1.0, 1.0, 1.0]},
)
PROMPT, PARAMS = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=2)
TIMES = 3


@pytest.fixture
def clients() -> Iterator[tuple[tw.TrainingClient, tw.SamplingClient]]:
    """Yield clients of an embedded server in this process, whose objects count, too."""
    with tw.ServiceClient(base_url="local") as service:
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4).result()
        yield training, training.save_weights_and_get_sampling_client("cycles")


def count_cyclic(work: Callable[[], object]) -> Counter[str]:
    """Return the classes of the objects of this project that only a collection of garbage frees after some work."""
    work()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(TIMES):
            work()
        gc.collect()
        classes = [type(item) for item in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    return Counter(f"{found.__module__}.{found.__name__}" for found in classes if "tinkerwire" in found.__module__)


def test_training_leaves_no_cycle(clients: tuple[tw.TrainingClient, tw.SamplingClient]) -> None:
    training, _ = clients

    def train() -> None:
        training.forward_backward([DATUM], "cross_entropy").result()
        training.optim_step(tw.AdamParams(learning_rate=1e-3)).result()

    assert not count_cyclic(train)


def test_sample_leaves_no_cycle(clients: tuple[tw.TrainingClient, tw.SamplingClient]) -> None:
    """The result of a sample that is dropped, and the server's caches of its run, take no memory."""
    _, sampling = clients
    assert not count_cyclic(lambda: sampling.sample(PROMPT, 1, PARAMS).result())


def test_awaited_sample_leaves_no_cycle(clients: tuple[tw.TrainingClient, tw.SamplingClient]) -> None:
    _, sampling = clients

    async def sample() -> None:
        await asyncio.gather(*(sampling.sample_async(PROMPT, 1, PARAMS) for _ in range(2)))

    assert not count_cyclic(lambda: asyncio.run(sample()))


def test_cancelled_sample_leaves_no_cycle(clients: tuple[tw.TrainingClient, tw.SamplingClient]) -> None:
    _, sampling = clients
    assert not count_cyclic(lambda: sampling.sample(PROMPT, 1, PARAMS).cancel())
