"""State that the steps of the flow share: the client under test, results of earlier steps, and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

RANK = 8
SEED = 11
# Small ids: they are in the vocabulary of every server that the flow meets, byte-level ones included.
LINES = [[65 + (i * step) % 26 for i in range(24)] for step in (1, 3, 5, 7)]


class Blocked(Exception):
    """A required earlier step failed."""


class Skipped(Exception):
    """The client does not have this step; the message gives the reason."""


class Wrong(Exception):
    """The server responded, but the response is wrong."""


class Flow:
    """One run of the flow: the client under test, the server, and the results so far.

    ``settings`` are for the service client.
    """

    def __init__(
        self, client: ModuleType, base_url: str, base_model: str | None, timeout_s: float, **settings: Any
    ) -> None:
        self.client = client
        self.types: Any = client.types
        self.base_model = base_model
        self.timeout_s = timeout_s
        self.service: Any = client.ServiceClient(base_url=base_url, api_key="tml-flow", **settings)
        self.numbers: dict[str, list[float]] = {}
        """Numbers of the results, by name; see :mod:`tests.rigs.official.steps_numbers`."""
        self._results: dict[str, Any] = {}

    def keep(self, **results: Any) -> None:
        """Store results for later steps by name."""
        self._results.update(results)

    def has(self, name: str) -> bool:
        """Check whether an earlier step stored a result."""
        return name in self._results

    def __getitem__(self, name: str) -> Any:
        """Return a result of an earlier step; raise Blocked if it is missing."""
        if name not in self._results:
            raise Blocked(f"needs {name}")
        return self._results[name]

    def datum(self, line: Sequence[int], **inputs: Any) -> Any:
        """Return a datum that predicts each token of `line` from those before it."""
        targets = np.asarray(line[1:], dtype=np.int64)
        return self.types.Datum(
            model_input=self.types.ModelInput.from_ints(list(line[:-1])),
            loss_fn_inputs={"target_tokens": targets, **inputs},
        )

    def supervised(self, lines: Sequence[Sequence[int]] = LINES) -> list[Any]:
        """Return datums for cross_entropy, every token with weight 1."""
        return [self.datum(line, weights=np.ones(len(line) - 1, dtype=np.float32)) for line in lines]

    def loss(self, training: Any) -> float:
        """Return the mean negative logprob of LINES under the model that `training` holds now."""
        output = self.wait(training.forward(self.supervised(), "cross_entropy"))
        return -float(np.mean(np.concatenate(logprobs_of(output, [len(line) - 1 for line in LINES]))))

    def train(self, training: Any, steps: int = 1) -> None:
        """Do optimizer steps on LINES, submitted without waiting in between."""
        adam = self.types.AdamParams(learning_rate=5e-3)
        futures = []
        for _ in range(steps):
            futures.append(training.forward_backward(self.supervised(), "cross_entropy"))
            futures.append(training.optim_step(adam))
        for future in futures:
            self.wait(future)

    def wait(self, future: Any) -> Any:
        """Return the result of a future."""
        return future.result(timeout=self.timeout_s)


Step = Callable[[Flow], str]


def expect(is_true: bool, finding: str) -> None:
    """Raise Wrong with the finding unless the condition holds."""
    if not is_true:
        raise Wrong(finding)


def expect_refused(subject: str, work: Callable[[], Any]) -> str:
    """Return the error of `work`; raise Wrong if it does not fail."""
    try:
        result = work()
    except TimeoutError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise Wrong(f"{subject} was accepted: {result!r}")


def logprobs_of(output: Any, lengths: Sequence[int]) -> list[np.ndarray]:
    """Return the logprobs of a forward or forward_backward result, checked for number, shape and range."""
    outputs = output.loss_fn_outputs
    expect(len(outputs) == len(lengths), f"{len(outputs)} outputs for {len(lengths)} datums")
    arrays = []
    for number, (fields, length) in enumerate(zip(outputs, lengths, strict=True)):
        expect("logprobs" in fields, f"output {number} has {sorted(fields)} and no logprobs")
        array = np.asarray(fields["logprobs"].to_numpy())
        expect(array.shape == (length,), f"logprobs of datum {number}: shape {array.shape}, not ({length},)")
        expect(bool(np.isfinite(array).all()), f"logprobs of datum {number} are not all finite: {array}")
        expect(bool((array <= 1e-6).all()), f"a logprob of datum {number} is above zero: {array.max()}")
        arrays.append(array)
    return arrays


def near(actual: float, expected: float, tolerance: float, label: str) -> None:
    """Raise Wrong unless two numbers agree within the tolerance."""
    expect(math.isclose(actual, expected, rel_tol=0, abs_tol=tolerance), f"{label}: {actual}, expected {expected}")
