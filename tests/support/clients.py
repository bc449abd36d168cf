"""Parts that tests of the client share: a retry policy without long waits, data and waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import tinkerwire as tw
from support.scripted import TEST_TIMEOUT_S

KEY = "tml-secret-0123456789"
FAST = tw.RetryConfig(retry_delay_base=0.001, retry_delay_max=0.01)
PROMPT = tw.ModelInput.from_ints([1, 2])
PARAMS = tw.SamplingParams(max_tokens=4)
ADAM = tw.AdamParams(learning_rate=1e-3)


class Pending(Protocol):
    """Future or client whose creation is an operation."""

    def result(self, timeout: float | None = None) -> object:
        """Wait for the end of the operation and return its result."""


def datum(*tokens: int) -> tw.Datum:
    """Return a small example that its tokens identify."""
    inputs = list(tokens) or [1, 2]
    targets = [token + 1 for token in inputs]
    loss_fn_inputs = {"target_tokens": targets, "weights": [1.0] * len(inputs)}
    return tw.Datum(model_input=tw.ModelInput.from_ints(inputs), loss_fn_inputs=loss_fn_inputs)


def wait_until(condition: Callable[[], bool], description: str) -> None:
    """Wait for a condition that no request shows; fail after a long time."""
    end = time.monotonic() + TEST_TIMEOUT_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"did not happen: {description}")
        time.sleep(0.005)


def loop_threads() -> list[threading.Thread]:
    """Return the threads of the client."""
    names = ("tinkerwire-loop", "asyncio_")
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]


@contextmanager
def open_client(url: str, **options: object) -> Iterator[tw.ServiceClient]:
    """Open a client with the fast policy for the block; discover the dialect only if ``wire_version`` is None.

    The end of the block does not wait for operations, since tests keep the server from answering.
    """
    defaults = {"base_url": url, "api_key": KEY, "retry": FAST, "wire_version": "0.16.1", "exit_timeout": 0.0}
    with tw.ServiceClient(**{**defaults, **options}) as client:  # type: ignore[arg-type]
        yield client
