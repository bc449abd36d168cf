"""Mutations that mix up work which runs at the same time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextvars import ContextVar
from typing import Any

import numpy as np

from tinkerwire._server.engine import training as engine
from tinkerwire._server.futures.store import FutureStore
from tinkerwire._server.handlers import sampling
from tinkerwire._server.http.idempotency import IdempotencyCache
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering import seq_ids

from . import patches
from .mutation import Group

GROUP = Group("Concurrency")
MAX_POLLS = 30
SHORT_S = 0.05


@GROUP.mutation("CON-001", "LOS-001", "LOS-010", "LOS-020", "LOS-030", "ORD-001")
def outputs_of_previous() -> None:
    """A forward_backward of one datum returns the output of the one before."""
    previous: list[Any] = [None]

    def make(original: Any) -> Any:
        def forward_backward(self: Any, examples: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, examples, *args, **settings)
            last, previous[0] = previous[0], result
            return last if last is not None and len(last.outputs) == len(result.outputs) == 1 else result

        return forward_backward

    patches.replace(engine.LoraModel, "forward_backward", make)


@GROUP.mutation(
    *("CON-002", "CON-005", "CON-010", "LGP-001", "LGP-002", "LGP-003", "LGP-004", "LGP-005", "LGP-008"),
    *("SMP-004", "SMP-009", "SMP-010", "SMP-012", "SMP-016", "SWT-004"),
)
def samples_of_previous() -> None:
    """A sample returns the sequences of the one before."""
    previous: list[Any] = [None]

    def make(original: Any) -> Any:
        def to_response(body: Any, samples: Any) -> Any:
            response = original(body, samples)
            last, previous[0] = previous[0], response
            return last or response

        return to_response

    patches.replace(sampling, "_to_response", make)


@GROUP.mutation(
    *("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "BAD-021", "BAT-001", "CON-005", "LGP-001"),
    *("LGP-003", "RUN-009", "RUN-011", "SPL-001", "SPL-002", "SPL-006", "SPL-008", "SPL-011", "SWT-001"),
)
def one_sampling_session_for_all() -> None:
    """create_sampling_session always returns the first sampling session."""
    seen: list[str] = []

    def make(original: Any) -> Any:
        def create(sampling_session_id: str) -> Any:
            seen.append(sampling_session_id)
            return original(sampling_session_id=seen[0])

        return create

    patches.replace(sampling, "CreateSamplingSessionResponse", make)


@GROUP.mutation("CON-008")
def simultaneous_copies_run() -> None:
    """Copies of a forward_backward that arrive at once all run, because each is looked up before one is recorded."""
    running: Counter[bytes] = Counter()
    is_copy = ContextVar("is_copy", default=False)

    async def handle(request: Any, go_on: Any) -> Any:
        if patches.operation_of(request) != "forward_backward":
            return await go_on(request)
        running[request.content] += 1
        try:
            await asyncio.sleep(SHORT_S)
            is_copy.set(running[request.content] > 1)
            return await go_on(request)
        finally:
            running[request.content] -= 1

    def find(original: Any) -> Any:
        return lambda *args: None if is_copy.get() else original(*args)

    def put(original: Any) -> Any:
        def put(self: Any, number: Any, job: Any) -> None:
            if number > self.last_released:
                original(self, number, job)
            else:
                self._release(job)

        return put

    patches.around(handle)
    patches.replace(seq_ids.SeqIdLog, "find", find)
    patches.replace(seq_ids.ReorderBuffer, "put", put)
    patches.replace(IdempotencyCache, "find", find)


@GROUP.mutation("CON-007")
def polls_limited() -> None:
    """The polls for a future are answered with 429 after the thirtieth."""
    polls: Counter[str] = Counter()

    def make(original: Any) -> Any:
        def get(self: Any, request_id: str) -> Any:
            polls[request_id] += 1
            if polls[request_id] > MAX_POLLS:
                raise HttpError(429, "mutated")
            return original(self, request_id)

        return get

    patches.replace(FutureStore, "get", make)


@GROUP.mutation("TRN-002")
def base_weights_trained() -> None:
    """A step changes the weights of the base model."""

    def make(original: Any) -> Any:
        def optim_step(self: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, *args, **settings)
            for table in vars(self.base).values():
                for value in table.values() if isinstance(table, dict) else ():
                    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                        value.setflags(write=True)
                        np.multiply(value, 1.05, out=value)
            return result

        return optim_step

    patches.replace(engine.LoraModel, "optim_step", make)


@GROUP.mutation("CON-006", "MOD-005")
def models_at_once_share_an_id() -> None:
    """A create_model that arrives while another one is not answered gets the future of that one."""
    last: dict[str, Any] = {}

    async def handle(request: Any, go_on: Any) -> Any:
        if not patches.matches("create_model", request):
            return await go_on(request)
        if last.get("open"):
            return await last["open"]
        last["open"] = asyncio.ensure_future(go_on(request))
        try:
            await asyncio.sleep(0.005)
            return await last["open"]
        finally:
            last["open"] = None

    patches.around(handle)


@GROUP.mutation("ORD-002", "ORD-003", "ORD-012", "ORD-013", "PRO-009")
def copies_at_once_run() -> None:
    """Copies of an operation that arrive within 50 ms of it run, too."""
    accepted: dict[Any, float] = {}

    def make(original: Any) -> Any:
        def find(self: Any, number: Any, key: Any, fingerprint: Any) -> Any:
            found = original(self, number, key, fingerprint)
            if found is None:
                accepted[id(self), number] = time.monotonic()
                return None
            return None if time.monotonic() - accepted.get((id(self), number), 0.0) < SHORT_S else found

        return find

    def put(self: Any, number: int, job: Any) -> None:
        with self._lock:
            self.last_released = max(self.last_released, number)
            self._release(job)

    patches.replace(seq_ids.SeqIdLog, "find", make)
    seq_ids.ReorderBuffer.put = put  # type: ignore[method-assign]
    IdempotencyCache.find = lambda *_: None  # type: ignore[assignment,method-assign]
