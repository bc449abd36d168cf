"""Mutations of batched polls and of cancellation."""

from __future__ import annotations

from typing import Any

from tinkerwire._server.futures.completion_log import CompletionLog, CopyCompletions
from tinkerwire._server.handlers import futures as handlers
from tinkerwire_generated.models import FutureFailed, FutureFinished

from . import patches
from .mutation import Group

GROUP = Group("Batched polls")
LONG_S = 6.0


def _change_wait(change: Any) -> None:
    patches.replace(
        handlers,
        "_wait_for_completions",
        lambda original: lambda completions, cursor, timeout: original(completions, cursor, change(timeout)),
    )


def _change_cancel(change: Any) -> None:
    patches.replace_handler("cancel_future", lambda original: lambda state, request: change(original, state, request))


@GROUP.mutation("BAT-001")
def finished_is_failed() -> None:
    """Finished samples are reported as failed."""
    handlers._to_wire = lambda entry: FutureFailed(request_id=entry.request_id)  # type: ignore[assignment]


@GROUP.mutation("BAT-002")
def samples_reported_once() -> None:
    """A finished sample is reported once, whatever the cursor."""

    def make(original: Any) -> Any:
        async def wait_after(self: Any, cursor: Any, timeout: Any) -> Any:
            reported, following = await original(self, cursor, timeout)
            self.acknowledge(following, set())
            return reported, following

        return wait_after

    patches.replace(CopyCompletions, "wait_after", make)


@GROUP.mutation("BAT-003", "BAT-009")
def cursor_ignored() -> None:
    """Every poll reports all finished samples, whatever the cursor."""
    CopyCompletions.acknowledge = lambda *_: None  # type: ignore[assignment,method-assign]
    patches.replace(CopyCompletions, "wait_after", lambda original: lambda self, _, timeout: original(self, 0, timeout))


@GROUP.mutation("BAT-004")
def failed_is_finished() -> None:
    """Failed samples are reported as finished."""
    handlers._to_wire = lambda entry: FutureFinished(  # type: ignore[assignment]
        request_id=entry.request_id, response_payload_uncompressed_size=entry.size_bytes
    )


@GROUP.mutation("BAT-005")
def timeout_zero_is_held() -> None:
    """A batched poll with timeout 0 is held for 6 s."""
    _change_wait(lambda timeout: timeout or LONG_S)


@GROUP.mutation("BAT-006")
def batched_polls_not_held() -> None:
    """A batched poll is never held."""
    _change_wait(lambda _: 0.0)


@GROUP.mutation("BAT-001")
def samples_of_all_sessions() -> None:
    """A batched poll reports the samples of all sampling sessions."""
    kept: list[Any] = []

    def make(original: Any) -> Any:
        def for_copy(self: Any, number: Any) -> Any:
            kept.append(self)
            kept.append(original(kept[0], number))
            return kept[-1]

        return for_copy

    patches.replace(CompletionLog, "for_copy", make)


@GROUP.mutation("BAT-007")
def samples_of_another_session() -> None:
    """A batched poll that does not wait reports those of another sampling session if its own had no samples."""
    finished: list[Any] = []

    def on_finished(original: Any) -> Any:
        def on_finished(self: Any, *args: Any) -> None:
            finished.append(self)
            original(self, *args)

        return on_finished

    def wait_after(original: Any) -> Any:
        async def wait_after(self: Any, cursor: Any, timeout: Any) -> Any:
            is_own = timeout or not finished or any(other is self for other in finished)
            return await original(self if is_own else finished[-1], cursor, timeout)

        return wait_after

    patches.replace(CopyCompletions, "on_finished", on_finished)
    patches.replace(CopyCompletions, "wait_after", wait_after)


@GROUP.mutation("BAT-008")
def copies_share_samples() -> None:
    """A poll for a copy of a client reports the samples of all copies."""
    patches.replace(CompletionLog, "for_copy", lambda original: lambda self, _: original(self, 0))


@GROUP.mutation("BAT-009")
def retrieved_ids_ignored() -> None:
    """retrieved_request_ids is ignored."""
    patches.replace(
        CopyCompletions, "acknowledge", lambda original: lambda self, cursor, _: original(self, cursor, set())
    )


@GROUP.mutation("BAT-011")
def size_too_large() -> None:
    """The size of each finished sample is a gigabyte."""

    def make(original: Any) -> Any:
        return lambda **fields: original(**{**fields, "response_payload_uncompressed_size": 10**9})

    patches.replace(handlers, "FutureFinished", make)


@GROUP.mutation("BAD-019", "BAT-012")
def cancellation_crashes() -> None:
    """cancel_future is answered with 500."""
    patches.respond("cancel_future", 500)


@GROUP.mutation("BAT-013")
def cancellation_of_all() -> None:
    """cancel_future cancels all work of the server."""

    def change(original: Any, state: Any, request: Any) -> Any:
        response = original(state, request)
        state.futures._fail_all(lambda _: True, "mutated")
        return response

    _change_cancel(change)


@GROUP.mutation("BAT-014")
def unknown_cancellation_crashes() -> None:
    """cancel_future of an unknown request_id is answered with 500."""
    patches.respond("cancel_future", 500, when=patches.contains(b"no-such"))
