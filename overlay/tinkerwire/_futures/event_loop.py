"""Event loop thread on which all requests run, used from the user's threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

from .logger import log

T = TypeVar("T")
SETTLE_TIMEOUT_S = 1.0
"""Seconds that a thread waits for the current callback of the loop."""
LOCK_TIMEOUT_S = 0.1
"""Seconds that the loop waits for a lock; others hold it for microseconds, unless a signal handler interrupts them."""
SHUTDOWN_TIMEOUT_S = 5.0
"""Seconds that the stopping loop waits for tasks that ignore their cancellation."""
FORK_PAUSE_S = 10.0
"""Time that a fork waits for the current step of the loop, which may itself wait for the thread that forks."""


class LoopThread:
    """Event loop on a daemon thread: started for the first user, stopped after the last.

    Coroutines start in the order of their calls, from any thread.
    """

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child, which has the parent's memory but not its thread."""
        # Reentrant, because signal handlers and finalizers use clients too.
        self._lock = threading.RLock()
        # A list rather than a number: a signal handler cannot come between the two halves of an append.
        self._users: list[None] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: _CallQueue | None = None
        self._thread: threading.Thread | None = None
        self._opened: dict[str, tuple[threading.Thread, _CallQueue, asyncio.AbstractEventLoop]] = {}
        """The thread and its loop, stored in one step that a signal handler cannot interrupt."""
        self._ending: threading.Thread | None = None
        self.opening_lock = threading.RLock()
        """Held by a thread that opens a client and imports modules for it, which a fork must not copy half imported."""
        self._forking: dict[int, tuple[bool, threading.Event]] = {}

    def acquire(self) -> None:
        """Count one user more, and start the thread for the first user."""
        with self._lock:
            self._users.append(None)
            if self._loop is None:
                self._open()

    def _open(self) -> None:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="tinkerwire-loop", daemon=True)
        thread.start()
        # Stored only once the thread runs: a signal handler may come in before and wait for a result.
        opened = self._opened.setdefault("loop", (thread, _CallQueue(loop), loop))
        self._thread, self._calls, self._loop = opened
        if self._loop is not loop:
            # A signal handler has opened another loop in the meantime.
            loop.call_soon_threadsafe(loop.stop)

    def release(self, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """Count one user less, and stop the thread after the last one without waiting for it; called on the loop."""
        if not self._lock.acquire(timeout=lock_timeout_s):
            # The thread that holds the lock may be waiting, in a signal handler, for what the loop has to do next;
            # therefore further attempts do not wait.
            asyncio.get_running_loop().call_later(LOCK_TIMEOUT_S, self.release, 0.0)
            return
        try:
            if self._users:
                self._users.pop()
            if self._users or self._loop is None:
                return
            self._opened.clear()
            loop, self._loop, self._ending, self._thread = self._loop, None, self._thread, None
            loop.call_soon_threadsafe(loop.stop)
        finally:
            self._lock.release()

    def pause_for_fork(self) -> None:
        """Hold the loop between two callbacks, and keep clients from being opened, until :meth:`resume_after_fork`.

        Called before a fork: in the midst of a callback it would leave the child with what the loop was importing
        half imported, and with the locks that the loop held locked.
        """
        is_held, resumed = self.opening_lock.acquire(timeout=FORK_PAUSE_S), threading.Event()
        self._forking[threading.get_ident()] = (is_held, resumed)
        loop, paused = self._loop, threading.Event()
        if loop is None or self.is_current_thread:
            return

        def hold() -> None:
            paused.set()
            resumed.wait(FORK_PAUSE_S)

        try:
            loop.call_soon_threadsafe(hold)
        except RuntimeError:  # the loop has ended in the meantime
            return
        paused.wait(FORK_PAUSE_S)

    def resume_after_fork(self) -> None:
        """Resume the loop in the parent after a fork."""
        is_held, resumed = self._forking.pop(threading.get_ident(), (False, None))
        if is_held:
            self.opening_lock.release()
        if resumed is not None:
            resumed.set()

    def join(self) -> None:
        """Wait until a stopped thread has ended, with its sockets and tasks; must not be called on that thread."""
        ending = self._ending
        if ending is not None and ending is not threading.current_thread():
            ending.join(2 * SHUTDOWN_TIMEOUT_S)

    @property
    def is_current_thread(self) -> bool:
        """Return whether the caller runs on the loop's thread, which must not be blocked."""
        return threading.current_thread() is self._thread

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> concurrent.futures.Future[T]:
        """Run the coroutine of ``work`` on the loop; cancelling the future cancels it.

        The coroutine is created on the loop, so that a signal handler that raises leaves no unstarted coroutine.

        Raises:
            RuntimeError: the loop has no user.
        """
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.call(partial(run_for, future, work))
        return future

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, after those of all earlier calls.

        Raises:
            RuntimeError: the loop has no user.
        """
        if self.is_current_thread and self._loop is not None and self._calls is not None:
            # Without the lock, which the loop must not wait for: a finalizer may come here in the midst of anything.
            self._calls.add(function)
            return
        # Under the lock, so that what is accepted reaches the loop before its stop does.
        with self._lock:
            if self._loop is not None and self._calls is not None:
                self._calls.add(function)
                return
        raise RuntimeError("no client is open in this process; create a ServiceClient first")

    def settle(self) -> None:
        """Wait, for a second at most, until the loop has ended the callback that it is in, as of a future's result."""
        if self.is_current_thread:
            return
        settled = threading.Event()
        with suppress(RuntimeError):  # the loop has ended
            self.call(settled.set)
            settled.wait(SETTLE_TIMEOUT_S)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not _run_until_stopped(loop) and self._loop is loop:
                pass
        finally:
            loop.run_until_complete(_cancel_remaining())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> bool:
    """Run the loop until it stops; return False if a user's function on it tried to end the process."""
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt) as error:
        log.error(
            "%r on the client's thread does not end the program; raise it in the thread that waits for the result",
            error,
            exc_info=error,
        )
        return False
    return True


class _CallQueue:
    """Calls for a loop, in order. One wakeup of the loop serves all calls that arrive before it runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._functions: deque[Callable[[], object]] = deque()
        # Two counters rather than a flag: a signal handler may interrupt `add` anywhere, and wait for a call of its
        # own. A wakeup is counted after the loop has it, so that a mistake causes a wakeup too many, never one too few.
        self._wakeups = 0
        self._runs = 0

    def add(self, function: Callable[[], object]) -> None:
        """Call a function on the loop; on any thread."""
        self._functions.append(function)
        if self._wakeups <= self._runs:
            self._loop.call_soon_threadsafe(self._run, context=Context())
            self._wakeups += 1

    def _run(self) -> None:
        # Before the first call: a function that is added from now on may come too late for this run.
        self._runs += 1
        functions = self._functions
        try:
            while functions:
                functions.popleft()()
        finally:
            if functions:  # after an error
                self.add(functions.popleft())


def run_for(future: concurrent.futures.Future[T], work: Callable[[], Coroutine[Any, Any, T]]) -> None:
    """Run a coroutine for a future, whose cancellation cancels the coroutine; on the loop."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work())
    link = _Link(future, task, loop)
    task.add_done_callback(link.end)
    future.add_done_callback(link.cancel)


class _Link(Generic[T]):
    """Link of a future for threads with the task that computes its result."""

    __slots__ = ("future", "loop", "task")

    def __init__(
        self, future: concurrent.futures.Future[T], task: asyncio.Task[T], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.future = future
        self.task: asyncio.Task[T] | None = task
        """The task until its end: the future refers to the link for longer."""
        self.loop = loop

    def end(self, task: asyncio.Task[T]) -> None:
        """Pass the outcome of the task to the future."""
        self.task = None
        if task.cancelled():
            self.future.cancel()
        if not self.future.set_running_or_notify_cancel():
            return
        error = task.exception()
        if error is None:
            self.future.set_result(task.result())
        else:
            self.future.set_exception(error)

    def cancel(self, _: object) -> None:
        """Cancel the task of a cancelled future."""
        # Not at once, as asyncio does since Python 3.14: what has begun can close what it was given.
        task = self.task
        if task is not None and self.future.cancelled():
            self.loop.call_soon_threadsafe(task.cancel)


async def _cancel_remaining() -> None:
    """Cancel the remaining tasks after each has made its first step, where it may set a better error."""
    await asyncio.sleep(0)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=SHUTDOWN_TIMEOUT_S)


LOOP = LoopThread()
"""The process's loop."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOOP.pause_for_fork, after_in_parent=LOOP.resume_after_fork, after_in_child=LOOP.reset_after_fork
    )
